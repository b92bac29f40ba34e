import type { Cause, CauseFacts, CauseKind } from "./cause.ts";
import { andRoughly, noChange, serviceNamed, upgradeRemedy } from "./words.ts";

/** What would lift a cause, in words; null: nobody can say, or what is behind it says so. */
export function remedy(cause: Cause): string | null {
  const own = Object.hasOwn(remedies, cause.kind)
    ? (remedies[cause.kind] as (facts: Cause) => string | null)
    : undefined;
  const found = own?.(cause) ?? null;
  if (found !== null || !("because" in cause)) return found;
  for (const each of cause.because ?? []) {
    const behind = remedy(each);
    if (behind !== null) return behind;
  }
  return null;
}

const hostBack = (host: string): string =>
  `bring the host back, and a machine that still runs there goes on without a restart; or, if its power is off for certain, \`cells host dead ${host} --power-is-off\``;
const release = (peer: string): string => `\`cells orphans release ${peer}\``;
const nothing = (then: string): string => `nothing needs to be done: ${then}`;
const upgradesGoOn = nothing("service VMs are upgraded one at a time");

type Remedies = { readonly [Kind in CauseKind]?: (facts: CauseFacts[Kind]) => string | null };
const remedies: Remedies = {
  "switched-off": ({ target }) => `\`cells start ${target}\`, which writes x.desiredState "on"`,
  grows: () => nothing("it goes on by itself"),
  "grows-next-start": ({ target }) => `\`cells restart ${target}\``,
  "no-image": ({ image, damaged }) =>
    `let the operator ${damaged === true ? "replace" : "add"} it (\`cells image add ${image} FILE${damaged === true ? " --replace" : ""}\`), and it goes on by itself; or name another one in x.import`,
  "no-storage": () =>
    "delete volumes that nobody needs, or let the operator give the storage servers more room, and it goes on by itself",
  "asked-next-start": ({ target }) =>
    `\`cells restart ${target}\`; or leave x.liveness.interface out, and the first that it has is asked`,
  "held-for-copy": ({ domain, path, target }) =>
    `let ${domain} have a VolumeCopy of it at ${path}, which may be deleted once it is made; or give its data up: \`cells delete ${target} --drop-held\``,
  "service-unreachable": () => nothing("it goes on as soon as the service answers"),
  "host-unreachable": ({ host }) => hostBack(host),
  "host-declared-dead": ({ host }) => hostBack(host),
  "host-doubts-store": ({ host, controller }) => `look at what ${host} runs, then ${release(controller)}`,
  "host-lost-store": ({ host }) => `look at what ${host} runs, then ${release(`host.${host}`)}`,
  "host-replaced": ({ host }) => `make sure that the former machine's power is off, then ${release(`host.${host}`)}`,

  "no-host": ({ refusals: [first], advice }) => {
    if (advice !== undefined) return advice.change ?? noChange;
    return first === undefined ? null : `${first.host}: ${first.lifts}`;
  },
  "cannot-leave": ({ refusals: [first] }) =>
    `${first === undefined ? "let another host join" : `${first.host}: ${first.lifts}`}; it goes by itself then`,
  "leaves-after": () => nothing("services of the cloud move one at a time"),
  "leaves-with-its-host": ({ host }) =>
    `switch ${host} off in order once it is the last one there: another host takes it over`,
  "guest-boots": () => nothing("it is ready as soon as its guest's agent answers"),
  "guest-late": ({ target }) =>
    `look into it with \`cells console ${target}\`; where its image has no agent, write x.ready "started"`,
  unconfirmed: ({ by }) => nothing(`it is ready as soon as ${serviceNamed(by)} confirms it`),
  stops: () => nothing("the next incarnation starts once it is gone"),
  "not-restarted": ({ target }) =>
    `\`cells start ${target}\`; and with x.restartOnFailure true it is started again by itself`,
  "silent-left": () => "look into it with `cells console`; with x.restartOnFailure true it is started again by itself",
  "backs-off": ({ seconds }) => nothing(`it starts again within ${seconds} s`),
  "waits-its-turn": ({ queue }) => {
    if (queue === undefined) return null;
    const raise = queue.own
      ? "raise x.limits.vmStartsPerMinute of the cell, to have it start sooner"
      : "whoever made the cell can raise x.limits.vmStartsPerMinute in its CellController's x.cell, to have it start sooner";
    return `${nothing(`its turn comes within about ${queue.seconds} s`)}; ${raise}`;
  },
  "all-or-none": ({ stage, elements, more }) => {
    const room = `make room for ${andRoughly(elements, more) || "what it lacks"}, or write x.policy.deploy "as-possible"`;
    return stage === "asking" ? room : `${room}; it asks again by itself`;
  },
  "forgotten-runs": ({ hosts: [host] }) => `bring ${host} back, or \`cells host dead ${host} --power-is-off\``,
  "restored-unheard": ({ hosts: [host] }) =>
    host === undefined
      ? nothing("it goes on when the Placer answers")
      : `bring ${host} back, or \`cells host dead ${host} --power-is-off\`, or let a machine join as ${host}`,

  "enrolment-refused": () =>
    "switch it off and on: the next incarnation has a new token, and its roles the keys on its data volume",
  "service-name-taken": ({ numbered }) =>
    `take the role out of one of them${numbered ? ", or give it another number" : ""}`,
  "no-interface": () => "give it a VirtualInterface",
  "subnet-full": () => "remove an interface, or make the subnet larger",
  "range-taken": ({ vms: [first] }) =>
    first === undefined
      ? nothing("it gets another one")
      : `\`cells stop ${first}\`, and so each machine in it: it gets another range as soon as none uses this one`,
  "address-outside": ({ first, last }) => `use an address from ${first} to ${last}`,
  "address-taken": ({ element }) => `use another address, or let ${element} have another one`,

  "foreign-wrong-type": ({ domain, wanted }) =>
    `name ${wanted === "volume" ? "a volume" : "a subnet, a VM or an interface"} of ${domain}`,
  "foreign-own-cell": ({ path }) => `write it as a path of this document, "<ref:/${path}>"`,
  "no-directory": () => "submit what it names as a part of this cell",
  "directory-unreachable": () => "nothing needs to be done here: it is asked again as soon as the directory answers",
  "foreign-hidden": ({ domain, path }) =>
    `in the cell ${domain}, let there be an element ${path} with x.public true; nothing needs to be done here`,
  "other-storage-manager": ({ theirs, own, domain }) =>
    `make this cell with x.services.storageManager ${theirs}, or ${domain} with ${own}: that is fixed when a cell is made`,
  "not-granted": ({ domain, grant, to }) =>
    `let ${domain} have a VolumeGrant of it with x.grant "${grant}" and x.cell "<ref://${to}/>"`,
  "controller-of-own-cell-only": () => "let the other end be a subnet, a VM or an interface of this cell",
  "not-agreed": ({ domain, path, element, shown }) => {
    const first = shown
      ? ""
      : `write x.public true at ${element} (or at what it belongs to), so that ${domain} can name it, and `;
    return `${first}let ${domain} have a NetworkRule with the same protocol and port between its ${path} and this cell's ${element}`;
  },

  "rules-unconfirmed": ({ host }) =>
    `bring the host back, or, if its power is off for certain, \`cells host dead ${host} --power-is-off\``,
  "rules-refused": () => "change the rules as it says",
  "rules-older": () => nothing("the host is putting it in force"),

  "upgrade-went-back": () => upgradeRemedy,
  "upgrade-over": () => upgradeRemedy,
  "upgrade-tried": () => upgradesGoOn,
  "upgrade-stopped": () => upgradeRemedy,
  "upgrade-one-at-a-time": () => upgradesGoOn,
  "upgrade-next": () => upgradesGoOn,
  "upgrade-awaits": ({ vm, until }) => (until === "on" ? `switch ${vm} on` : upgradesGoOn),
  "upgrade-comes-last": () => upgradesGoOn,

  unguarded: ({ number, cell }) =>
    `whoever has declared ${cell} gives its CellController another x.services.haManager, of those that there are; or the operator gives a service VM the role ha-manager with number ${number} again`,
  "no-cell-manager": () =>
    "submit the child as a cell of its own, or run the cloud in its own VMs (`cells up` with another profile)",
  "child-malformed": () => "write a component of type Cell, or a document with one, with a DNS label as its name",
  "child-named-root": () => "give it another x.name",
  "store-older": ({ controller }) => `put the newer store back, or ${release(controller)}`,
};

/** Those that say what would lift them; all others leave that to what is behind them. */
export const kindsWithRemedy: readonly CauseKind[] = Object.keys(remedies) as CauseKind[];
