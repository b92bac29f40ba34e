import type { Cause, CauseFacts, CauseKind, EndKind, Foreign } from "./cause.ts";
import { andRoughly, refusedText, serviceNamed, upgradeRemedy } from "./words.ts";

/*
 * Causes as sentences: the one place where a cause becomes words. They follow from the cause alone, so that a client can make
 * them as well as a controller. What would lift it: `remedy.ts`.
 */

/** All of it, each with what is behind it; null: there is nothing to say. */
export const sentenceOf = (causes: readonly Cause[]): string | null => causes.map(sentence).join("; ") || null;

/** One cause with what is behind it. */
export function sentence(cause: Cause): string {
  const behind = "because" in cause && cause.because !== undefined ? sentenceOf(cause.because) : null;
  const own = wordsOf(cause);
  return behind === null ? own : `${own}: ${behind}`;
}

// A newer version may have written what an older one reads.
const wordsOf = (cause: Cause): string =>
  Object.hasOwn(words, cause.kind) ? (words[cause.kind] as (facts: Cause) => string)(cause) : cause.kind;

const shownAt = ({ domain, path }: Foreign): string => `//${domain}/${path}`;
const wantedForeign = { volume: "a volume", addresses: "a subnet, a VM or an interface" } as const;
const rateOf = ({ perMinute, atOnce }: CauseFacts["waits-its-turn"]): string =>
  `the cell may start ${perMinute} ${perMinute === 1 ? "machine" : "machines"} a minute, and ${atOnce} at once after a while without any`;

const endings: { readonly [Kind in EndKind]: (detail: string | null) => string } = {
  exited: (detail) => withDetail("its guest powered off by itself", detail),
  crashed: (detail) => withDetail("crashed", detail),
  stopped: (detail) => withDetail("was stopped at its host", detail),
  "not started": (detail) => withDetail("could not start", detail),
  silent: (detail) => detail ?? "did not answer its liveness probes",
  "host died": (detail) => detail ?? "the power of its host is known to be off",
};
const withDetail = (what: string, detail: string | null): string => (detail === null ? what : `${what}: ${detail}`);

const allOrNone = ({ stage, elements, more, seconds }: CauseFacts["all-or-none"]): string => {
  const names = andRoughly(elements, more);
  if (stage === "asking") return `all-or-none: waits until ${names} can be had too`;
  const back = `all-or-none: not everything could be had${names === "" ? "" : ` (${names})`}, so nothing is held`;
  return stage === "resting" ? `${back}; asked for again after ${seconds} s` : `${back}; waits until all of it is gone`;
};

const awaited = {
  on: "is switched on",
  settled: "has ended or started",
  itself: "runs and its host has settled on one boot volume",
  well: "is well, since Presence decides by majority",
} as const;

type Words = { readonly [Kind in CauseKind]: (facts: CauseFacts[Kind]) => string };
const words: Words = {
  said: ({ sentence }) => sentence,

  "waits-for": ({ element }) => `waits for ${element}`,
  "next-start": ({ vm }) => `takes effect at the next start of ${vm}`,
  "switched-off": () => 'x.desiredState is "off"',
  grows: ({ from, to, vm }) => `grows from ${from} to ${to} MiB${vm === undefined ? "" : `, while ${vm} runs`}`,
  "grows-next-start": ({ vm, from, to, since }) => {
    const why =
      since === "ide"
        ? "a guest looks at the size of an IDE disk only then"
        : "the file that it runs with has no room for more";
    return `grows from ${from} to ${to} MiB at the next start of ${vm}: ${why}`;
  },
  "no-image": ({ sentence }) => sentence,
  "no-storage": ({ sentence }) => sentence,
  "asked-next-start": ({ vm, interface: at }) =>
    `its liveness probes begin at the next start of ${vm}: it was started without ${at}, which x.liveness.interface names`,
  "held-for-copy": ({ domain, path }) => `it is held until ${domain} has made its copy "${path}"`,
  deleting: () => "it is being deleted",

  "service-unreachable": ({ service }) => `${serviceNamed(service)} is not reachable`,
  "service-asked": ({ service }) => `waits for ${serviceNamed(service)}`,
  "document-too-long": ({ to, key, characters, most }) =>
    `${serviceNamed(to)} cannot be told of it: the document ${key} has ${characters} characters, and at most ${most} can be sent`,
  "host-unreachable": ({ host, unknown }) =>
    `host ${host} is not reachable${unknown ? ": whether it still runs there is not known" : ""}`,
  "host-declared-dead": ({ host, since }) =>
    `host ${host} was declared dead at ${since}; its machines are not started elsewhere until it comes back, or its power is known to be off: then say so with \`cells host dead ${host}\``,
  "host-doubts-store": ({ host, controller }) =>
    `host ${host} says that the store of this cell's controller was lost or is older, and no service does: what it has stays ` +
    `as it is, until an operator has looked at the host and says \`cells orphans release ${controller}\``,
  "host-lost-store": ({ host }) =>
    `host ${host} has lost its store and may still run it: look there, then \`cells orphans release host.${host}\``,
  "host-replaced": ({ host }) =>
    `another machine has the name ${host} by now, and the former one may still run it: make sure that its power is off, then \`cells orphans release host.${host}\``,

  "asks-for-host": () => "asks for a host",
  "no-host": (refusing) =>
    refusing.refusals.length === 0
      ? (refusing.said ?? "no host can hold it")
      : `no host can hold it: ${refusedText(refusing)}`,
  "cannot-leave": ({ host, ...refusing }) =>
    `it is to leave ${host}, and runs on there: no other host can hold it${refusing.refusals.length === 0 ? "" : `: ${refusedText(refusing)}`}`,
  "leaves-after": ({ host, vm }) => `it leaves ${host} once ${vm} is well`,
  "leaves-with-its-host": ({ host }) =>
    `it runs on at ${host}: it is the root controller's, which another host starts when ${host} is off`,
  "connects-volumes": () => "connects its volumes",
  "waits-for-lease": ({ element }) => `waits to connect ${element}`,
  starts: ({ host }) => `starts at ${host}`,
  stops: ({ host }) => `stops at ${host}`,
  "about-to-start": () => "is about to start",
  ended: ({ how, detail }) => endings[how](detail),
  "guest-boots": () => "its guest boots: waits for the first answer of its agent",
  "guest-late": ({ seconds }) => `its guest has not come up: its agent did not answer within ${seconds} s`,
  unconfirmed: ({ by, attributes }) => `waits until ${serviceNamed(by)} confirms ${attributes.join(", ")}`,
  before: () => "before",
  "not-restarted": () => "it stays off because x.restartOnFailure is false",
  "silent-left": () => "it is left as it is because x.restartOnFailure is false",
  "backs-off": ({ seconds }) => `starts again after ${seconds} s`,
  "waits-its-turn": (facts) => {
    const place =
      facts.queue === undefined ? "" : `; this one is number ${facts.queue.place} of ${facts.queue.of} in the queue`;
    return `waits its turn to start: ${rateOf(facts)}${place}`;
  },
  "all-or-none": allOrNone,
  "disk-unavailable": ({ element }) => `its disk ${element}`,
  "may-run-at": ({ host }) => `may run at host ${host}, which says that it was told to run it`,
  "forgotten-runs": ({ hosts }) =>
    `host ${hosts.join(", ")} may run an incarnation of it that this cell's controller has forgotten: it is to end it first, or its power to be off: then say so with \`cells host dead ${hosts[0]} --power-is-off\``,
  "restored-unheard": ({ hosts }) =>
    hosts.length === 0
      ? "the store of this cell's controller was put back, and the Placer has not said yet at which hosts it may run"
      : `the store of this cell's controller was put back, and it may run at host ${hosts.join(", ")}, which is not heard: ` +
        `if its power is off, say so with \`cells host dead ${hosts[0]} --power-is-off\`, or, where that knows no such host, ` +
        `let a machine join as ${hosts[0]}`,

  "enrolment-refused": ({ services }) => `${services.join(", ")} cannot enrol`,
  "services-malformed": ({ detail }) => detail,
  "service-name-taken": ({ service, vm, numbered }) =>
    `"${service}" is already a service of ${vm}, and a name is one VM's: take the role out of one of them` +
    (numbered ? ", or give it another number" : ""),
  "no-interface": () => "waits for an interface: nobody could reach its services without one",
  "not-on-management": () => "the root cell no longer lets this cell use the management network",

  "address-asked": () => "gets its address",
  "subnet-full": ({ element, cidr }) =>
    `${element} (${cidr}) has no free address: remove an interface, or make the subnet larger`,
  "range-taken": ({ cidr, vms }) =>
    vms.length === 0
      ? `another subnet has its range ${cidr}: it gets another one`
      : `another subnet has its range ${cidr}, of which ${vms.slice(0, 3).join(", ")} ${vms.length > 3 ? `and ${vms.length - 3} more ` : ""}still ${vms.length === 1 ? "has an address" : "have addresses"}`,
  "address-outside": ({ element, address, cidr, first, last }) =>
    `${address} is no usable address of ${element} (${cidr}): use one from ${first} to ${last}`,
  "address-taken": ({ element, address }) => `${address} is in use by ${element}`,
  "name-failed": ({ name }) => `its name ${name}`,

  "foreign-wrong-type": (cause) =>
    `${shownAt(cause)} is a ${cause.type}, and ${wantedForeign[cause.wanted]} is needed here`,
  "foreign-own-cell": (cause) => `${shownAt(cause)} is not visible: ${cause.domain} is this cell itself`,
  "no-directory": (cause) =>
    `${shownAt(cause)} is not visible from this cell: this installation has no directory of cells`,
  "directory-unreachable": (cause) => `${shownAt(cause)} is not visible: the directory is not reachable`,
  "foreign-hidden": (cause) => `${shownAt(cause)} is not visible: ${cause.domain} shows no such element to this cell`,
  "other-storage-manager": (cause) =>
    `${shownAt(cause)} is kept by Storage Manager ${cause.theirs} and this cell's volumes by Storage Manager ${cause.own}: a volume can be copied or connected only where one has both`,
  "not-granted": (cause) =>
    `${shownAt(cause)} is visible, but ${cause.domain} does not let this cell ${cause.grant} it`,
  "controller-of-own-cell-only": () => "a controller is reached from inside its own cell only",
  "not-agreed": (cause) =>
    `${cause.domain} has no rule in effect that opens the same between ${cause.element} and ${shownAt(cause)}, so nothing passes`,

  "removal-not-in-force": () => "its removal is not in force yet",
  "rules-unconfirmed": ({ host }) =>
    `host ${host} is not reachable and has not confirmed it: it goes on with the rules that it had`,
  "rules-refused": ({ host }) => `host ${host} cannot put it in force`,
  "rules-older": ({ host, version, wanted }) =>
    `host ${host} has ${version === 0 ? "none of the cell's rules" : `version ${version} of the cell's rules`} in force, and not yet version ${wanted}`,
  "more-hosts": ({ count }) => `and ${count} more hosts`,

  "upgrade-kept": ({ vm }) => `kept until ${vm} has proved itself with its new boot volume`,
  "upgrade-went-back": ({ vm, volume }) => `${vm} did not come up with ${volume}`,
  "upgrade-over": () => `it runs from its old boot volume, and the upgrade has stopped. To go on, ${upgradeRemedy}`,
  "upgrade-tried": ({ vm }) => `${vm} is tried with it`,
  "upgrade-stopped": ({ vm }) => `the upgrade has stopped at ${vm}, which went back`,
  "upgrade-one-at-a-time": ({ vm }) => `service VMs are upgraded one at a time, ${vm} now`,
  "upgrade-next": () => "its turn is next",
  "upgrade-awaits": ({ vm, until }) => `waits until ${vm} ${awaited[until]}`,
  "upgrade-comes-last": ({ vm }) => `waits for ${vm}: the VM of the root controller comes last`,
  "upgrade-timed-out": ({ seconds }) => `it was not up after ${seconds} s`,

  unguarded: ({ service, cell }) =>
    `${service}, which looks after the machines of ${cell}, is gone: none of them starts elsewhere when its host is lost`,
  "no-cell-manager": () =>
    "this installation runs as processes and has no Cell Manager to make child cells: submit the child as a cell of its own, or run the cloud in its own VMs (`cells up` with another profile)",
  "child-malformed": () =>
    "its x.cell is no cell: write a component of type Cell, or a document with one, with a DNS label as its name",
  "child-named-root": ({ name }) => `no child cell is named ${name}: give it another x.name`,
  "store-older": ({ controller, peers: [first = "", ...others] }) =>
    `the store of this cell's controller was lost or is older than what ${first}${others.length === 0 ? "" : ` and ${others.length} more`} holds: nothing is changed or started ` +
    `until its newer store is back, or an operator lets this one count with \`cells orphans release ${controller}\``,
};
