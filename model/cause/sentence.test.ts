import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, cidr, elementPath, hostName, ipv4, peerName } from "../cell/identifiers.ts";
import { causes as schema } from "../contract/causes.ts";
import { faultIn } from "../contract/schema.ts";
import type { Json } from "../json/json.ts";
import { type Cause, type CauseFacts, type CauseKind, kindsOf } from "./cause.ts";
import { remedy } from "./remedy.ts";
import { sentence, sentenceOf } from "./sentence.ts";
import { rulesText } from "./words.ts";

/*
 * The one test of sentences: an example of every kind of cause, how it reads, and what would lift it. Every other test goes by
 * kinds and facts.
 */
const [host, other] = [hostName("h1"), hostName("h2")];
const [web, disk] = [elementPath("shop/web"), elementPath("shop/disk")];
const controller = peerName("controller.shop");
const said: Cause = { kind: "said", by: peerName("storage-manager"), sentence: "no server has room for it" };
const because = [said];
const foreign = { domain: "bank.cells.internal", path: "bank/db" };
const db = "//bank.cells.internal/bank/db";
const back = (name: string): string =>
  `bring the host back, and a machine that still runs there goes on without a restart; or, if its power is off for certain, \`cells host dead ${name} --power-is-off\``;
const upgradeRemedy =
  "apply the root specification with the old image's name again, or with that of a better image; nothing is touched until then";
const oneByOne = "nothing needs to be done: service VMs are upgraded one at a time";

type Example<Kind extends CauseKind> = readonly [facts: CauseFacts[Kind], sentence: string, remedy: string | null];
const examples: { readonly [Kind in CauseKind]: Example<Kind> } = {
  said: [{ by: peerName("placer"), sentence: "there is no host" }, "there is no host", null],

  "waits-for": [{ element: disk, because }, "waits for shop/disk: no server has room for it", null],
  "next-start": [{ vm: web }, "takes effect at the next start of shop/web", null],
  "switched-off": [
    { target: "shop/web" },
    'x.desiredState is "off"',
    '`cells start shop/web`, which writes x.desiredState "on"',
  ],
  grows: [
    { from: 64, to: 200, vm: web, because: [{ kind: "said", by: peerName("host.h1"), sentence: "QEMU refuses" }] },
    "grows from 64 to 200 MiB, while shop/web runs: QEMU refuses",
    "nothing needs to be done: it goes on by itself",
  ],
  "grows-next-start": [
    { vm: web, target: "shop/web", from: 64, to: 200, since: "file" },
    "grows from 64 to 200 MiB at the next start of shop/web: the file that it runs with has no room for more",
    "`cells restart shop/web`",
  ],
  "no-image": [
    { image: "tyni", sentence: 'no image "tyni"; there are: tiny' },
    'no image "tyni"; there are: tiny',
    "let the operator add it (`cells image add tyni FILE`), and it goes on by itself; or name another one in x.import",
  ],
  "no-storage": [
    { sentence: "no storage server has room for 70 MiB: s1 has 50 MiB free, 0 MiB promised" },
    "no storage server has room for 70 MiB: s1 has 50 MiB free, 0 MiB promised",
    "delete volumes that nobody needs, or let the operator give the storage servers more room, and it goes on by itself",
  ],
  "asked-next-start": [
    { vm: web, target: "shop/web", interface: elementPath("shop/card") },
    "its liveness probes begin at the next start of shop/web: it was started without shop/card, which x.liveness.interface names",
    "`cells restart shop/web`; or leave x.liveness.interface out, and the first that it has is asked",
  ],
  "held-for-copy": [
    { domain: "primary.cells.internal", path: "primary/volumes/a1", target: "shop/disk" },
    'it is held until primary.cells.internal has made its copy "primary/volumes/a1"',
    "let primary.cells.internal have a VolumeCopy of it at primary/volumes/a1, which may be deleted once it is made; or give its data up: `cells delete shop/disk --drop-held`",
  ],
  deleting: [{}, "it is being deleted", null],

  "service-unreachable": [
    { service: peerName("storage-manager.2") },
    "Storage Manager 2 is not reachable",
    "nothing needs to be done: it goes on as soon as the service answers",
  ],
  "service-asked": [{ service: peerName("address-manager") }, "waits for the IP Address Manager", null],
  "document-too-long": [
    { to: peerName("host.h1"), key: "vm/c1-1", characters: 30, most: 20 },
    "host h1 cannot be told of it: the document vm/c1-1 has 30 characters, and at most 20 can be sent",
    null,
  ],
  "host-unreachable": [
    { host, unknown: true },
    "host h1 is not reachable: whether it still runs there is not known",
    back("h1"),
  ],
  "host-declared-dead": [
    { host, since: "2026-11-21T20:40:07Z" },
    "host h1 was declared dead at 2026-11-21T20:40:07Z; its machines are not started elsewhere until it comes back, or its power is known to be off: then say so with `cells host dead h1`",
    back("h1"),
  ],
  "host-doubts-store": [
    { host, controller },
    "host h1 says that the store of this cell's controller was lost or is older, and no service does: what it has stays as it is, until an operator has looked at the host and says `cells orphans release controller.shop`",
    "look at what h1 runs, then `cells orphans release controller.shop`",
  ],
  "host-lost-store": [
    { host },
    "host h1 has lost its store and may still run it: look there, then `cells orphans release host.h1`",
    "look at what h1 runs, then `cells orphans release host.h1`",
  ],
  "host-replaced": [
    { host },
    "another machine has the name h1 by now, and the former one may still run it: make sure that its power is off, then `cells orphans release host.h1`",
    "make sure that the former machine's power is off, then `cells orphans release host.h1`",
  ],

  "asks-for-host": [{}, "asks for a host", null],
  "no-host": [
    {
      refusals: [
        { host, why: "9 MiB do not fit", lifts: "ask for 8", kind: "memory" },
        { host: other, why: "not reachable", lifts: "the host answers again" },
      ],
      said: null,
    },
    "no host can hold it: h1: 9 MiB do not fit; h2: not reachable",
    "h1: ask for 8",
  ],
  "cannot-leave": [
    { host, refusals: [{ host: other, why: "9 MiB do not fit", lifts: "ask for 8", kind: "memory" }] },
    "it is to leave h1, and runs on there: no other host can hold it: h2: 9 MiB do not fit",
    "h2: ask for 8; it goes by itself then",
  ],
  "leaves-after": [
    { host, vm: elementPath("root/core2/vm") },
    "it leaves h1 once root/core2/vm is well",
    "nothing needs to be done: services of the cloud move one at a time",
  ],
  "leaves-with-its-host": [
    { host },
    "it runs on at h1: it is the root controller's, which another host starts when h1 is off",
    "switch h1 off in order once it is the last one there: another host takes it over",
  ],
  "connects-volumes": [{}, "connects its volumes", null],
  "waits-for-lease": [{ element: disk, because }, "waits to connect shop/disk: no server has room for it", null],
  starts: [{ host }, "starts at h1", null],
  stops: [{ host }, "stops at h1", "nothing needs to be done: the next incarnation starts once it is gone"],
  "about-to-start": [{}, "is about to start", null],
  ended: [{ how: "crashed", detail: "signal 9" }, "crashed: signal 9", null],
  "guest-boots": [
    {},
    "its guest boots: waits for the first answer of its agent",
    "nothing needs to be done: it is ready as soon as its guest's agent answers",
  ],
  "guest-late": [
    { target: "shop/web", seconds: 300 },
    "its guest has not come up: its agent did not answer within 300 s",
    'look into it with `cells console shop/web`; where its image has no agent, write x.ready "started"',
  ],
  unconfirmed: [
    { by: peerName("host.h1"), attributes: ["x.liveness.port", "x.liveness.failures"] },
    "waits until host h1 confirms x.liveness.port, x.liveness.failures",
    "nothing needs to be done: it is ready as soon as host h1 confirms it",
  ],
  before: [
    { because: [{ kind: "ended", how: "exited", detail: null }] },
    "before: its guest powered off by itself",
    null,
  ],
  "not-restarted": [
    { target: "shop/web" },
    "it stays off because x.restartOnFailure is false",
    "`cells start shop/web`; and with x.restartOnFailure true it is started again by itself",
  ],
  "silent-left": [
    {},
    "it is left as it is because x.restartOnFailure is false",
    "look into it with `cells console`; with x.restartOnFailure true it is started again by itself",
  ],
  "backs-off": [
    { seconds: 2, failures: 3 },
    "starts again after 2 s",
    "nothing needs to be done: it starts again within 2 s",
  ],
  "waits-its-turn": [
    { perMinute: 1, atOnce: 10, queue: { place: 2, of: 3, seconds: 60, own: true } },
    "waits its turn to start: the cell may start 1 machine a minute, and 10 at once after a while without any; this one is number 2 of 3 in the queue",
    "nothing needs to be done: its turn comes within about 60 s; raise x.limits.vmStartsPerMinute of the cell, to have it start sooner",
  ],
  "all-or-none": [
    { stage: "resting", elements: [web, disk], more: 3, seconds: 10 },
    "all-or-none: not everything could be had (shop/web, shop/disk and 3 more), so nothing is held; asked for again after 10 s",
    'make room for shop/web, shop/disk and 3 more, or write x.policy.deploy "as-possible"; it asks again by itself',
  ],
  "disk-unavailable": [{ element: disk, because }, "its disk shop/disk: no server has room for it", null],
  "may-run-at": [
    { host, because: [{ kind: "host-unreachable", host }] },
    "may run at host h1, which says that it was told to run it: host h1 is not reachable",
    back("h1"),
  ],
  "forgotten-runs": [
    { hosts: [host, other] },
    "host h1, h2 may run an incarnation of it that this cell's controller has forgotten: it is to end it first, or its power to be off: then say so with `cells host dead h1 --power-is-off`",
    "bring h1 back, or `cells host dead h1 --power-is-off`",
  ],
  "restored-unheard": [
    { hosts: [host] },
    "the store of this cell's controller was put back, and it may run at host h1, which is not heard: if its power is off, say so with `cells host dead h1 --power-is-off`, or, where that knows no such host, let a machine join as h1",
    "bring h1 back, or `cells host dead h1 --power-is-off`, or let a machine join as h1",
  ],

  "enrolment-refused": [
    { services: [peerName("presence.2")], because: [{ ...said, sentence: "the token was spent" }] },
    "presence.2 cannot enrol: the token was spent",
    "switch it off and on: the next incarnation has a new token, and its roles the keys on its data volume",
  ],
  "services-malformed": [{ detail: "x.data has no services" }, "x.data has no services", null],
  "service-name-taken": [
    { service: peerName("presence.1"), vm: web, numbered: true },
    `"presence.1" is already a service of shop/web, and a name is one VM's: take the role out of one of them, or give it another number`,
    "take the role out of one of them, or give it another number",
  ],
  "no-interface": [
    {},
    "waits for an interface: nobody could reach its services without one",
    "give it a VirtualInterface",
  ],
  "not-on-management": [{}, "the root cell no longer lets this cell use the management network", null],

  "address-asked": [{}, "gets its address", null],
  "subnet-full": [
    { element: elementPath("shop/net"), cidr: cidr("10.0.0.0/29") },
    "shop/net (10.0.0.0/29) has no free address: remove an interface, or make the subnet larger",
    "remove an interface, or make the subnet larger",
  ],
  "range-taken": [
    { cidr: cidr("10.0.0.0/29"), vms: [elementPath("shop/web")] },
    "another subnet has its range 10.0.0.0/29, of which shop/web still has an address",
    "`cells stop shop/web`, and so each machine in it: it gets another range as soon as none uses this one",
  ],
  "address-outside": [
    {
      element: elementPath("shop/net"),
      address: ipv4("10.0.1.1"),
      cidr: cidr("10.0.0.0/29"),
      first: ipv4("10.0.0.2"),
      last: ipv4("10.0.0.6"),
    },
    "10.0.1.1 is no usable address of shop/net (10.0.0.0/29): use one from 10.0.0.2 to 10.0.0.6",
    "use an address from 10.0.0.2 to 10.0.0.6",
  ],
  "address-taken": [
    { element: web, address: ipv4("10.0.0.2") },
    "10.0.0.2 is in use by shop/web",
    "use another address, or let shop/web have another one",
  ],
  "name-failed": [{ name: "web.shop", because }, "its name web.shop: no server has room for it", null],

  "foreign-wrong-type": [
    { ...foreign, type: "VM", wanted: "volume" },
    `${db} is a VM, and a volume is needed here`,
    "name a volume of bank.cells.internal",
  ],
  "foreign-own-cell": [
    foreign,
    `${db} is not visible: bank.cells.internal is this cell itself`,
    'write it as a path of this document, "<ref:/bank/db>"',
  ],
  "no-directory": [
    foreign,
    `${db} is not visible from this cell: this installation has no directory of cells`,
    "submit what it names as a part of this cell",
  ],
  "directory-unreachable": [
    foreign,
    `${db} is not visible: the directory is not reachable`,
    "nothing needs to be done here: it is asked again as soon as the directory answers",
  ],
  "foreign-hidden": [
    foreign,
    `${db} is not visible: bank.cells.internal shows no such element to this cell`,
    "in the cell bank.cells.internal, let there be an element bank/db with x.public true; nothing needs to be done here",
  ],
  "other-storage-manager": [
    { ...foreign, theirs: 1, own: 2 },
    `${db} is kept by Storage Manager 1 and this cell's volumes by Storage Manager 2: a volume can be copied or connected only where one has both`,
    "make this cell with x.services.storageManager 1, or bank.cells.internal with 2: that is fixed when a cell is made",
  ],
  "not-granted": [
    { ...foreign, grant: "copy", to: "shop.cells.internal" },
    `${db} is visible, but bank.cells.internal does not let this cell copy it`,
    'let bank.cells.internal have a VolumeGrant of it with x.grant "copy" and x.cell "<ref://shop.cells.internal/>"',
  ],
  "controller-of-own-cell-only": [
    {},
    "a controller is reached from inside its own cell only",
    "let the other end be a subnet, a VM or an interface of this cell",
  ],
  "not-agreed": [
    { ...foreign, element: web, shown: false },
    `bank.cells.internal has no rule in effect that opens the same between shop/web and ${db}, so nothing passes`,
    "write x.public true at shop/web (or at what it belongs to), so that bank.cells.internal can name it, and let bank.cells.internal have a NetworkRule with the same protocol and port between its bank/db and this cell's shop/web",
  ],

  "removal-not-in-force": [
    { because: [{ kind: "rules-unconfirmed", host }] },
    "its removal is not in force yet: host h1 is not reachable and has not confirmed it: it goes on with the rules that it had",
    "bring the host back, or, if its power is off for certain, `cells host dead h1 --power-is-off`",
  ],
  "rules-unconfirmed": [
    { host },
    "host h1 is not reachable and has not confirmed it: it goes on with the rules that it had",
    "bring the host back, or, if its power is off for certain, `cells host dead h1 --power-is-off`",
  ],
  "rules-refused": [
    { host, because: [{ ...said, sentence: "too many ranges" }] },
    "host h1 cannot put it in force: too many ranges",
    "change the rules as it says",
  ],
  "rules-older": [
    { host, version: 0, wanted: 3 },
    "host h1 has none of the cell's rules in force, and not yet version 3",
    "nothing needs to be done: the host is putting it in force",
  ],
  "more-hosts": [{ count: 2 }, "and 2 more hosts", null],

  "upgrade-kept": [{ vm: web }, "kept until shop/web has proved itself with its new boot volume", null],
  "upgrade-went-back": [
    { vm: web, volume: "shop/boot", because: [{ kind: "ended", how: "crashed", detail: null }] },
    "shop/web did not come up with shop/boot: crashed",
    upgradeRemedy,
  ],
  "upgrade-over": [
    {},
    `it runs from its old boot volume, and the upgrade has stopped. To go on, ${upgradeRemedy}`,
    upgradeRemedy,
  ],
  "upgrade-tried": [{ vm: web }, "shop/web is tried with it", oneByOne],
  "upgrade-stopped": [{ vm: web }, "the upgrade has stopped at shop/web, which went back", upgradeRemedy],
  "upgrade-one-at-a-time": [{ vm: web }, "service VMs are upgraded one at a time, shop/web now", oneByOne],
  "upgrade-next": [{}, "its turn is next", oneByOne],
  "upgrade-awaits": [{ vm: web, until: "on" }, "waits until shop/web is switched on", "switch shop/web on"],
  "upgrade-comes-last": [{ vm: web }, "waits for shop/web: the VM of the root controller comes last", oneByOne],
  "upgrade-timed-out": [{ seconds: 240 }, "it was not up after 240 s", null],

  unguarded: [
    { service: peerName("ha-manager.2"), number: 2, cell: cellName("shop") },
    "ha-manager.2, which looks after the machines of shop, is gone: none of them starts elsewhere when its host is lost",
    "whoever has declared shop gives its CellController another x.services.haManager, of those that there are; or the operator gives a service VM the role ha-manager with number 2 again",
  ],
  "no-cell-manager": [
    {},
    "this installation runs as processes and has no Cell Manager to make child cells: submit the child as a cell of its own, or run the cloud in its own VMs (`cells up` with another profile)",
    "submit the child as a cell of its own, or run the cloud in its own VMs (`cells up` with another profile)",
  ],
  "child-malformed": [
    {},
    "its x.cell is no cell: write a component of type Cell, or a document with one, with a DNS label as its name",
    "write a component of type Cell, or a document with one, with a DNS label as its name",
  ],
  "child-named-root": [
    { name: "root" },
    "no child cell is named root: give it another x.name",
    "give it another x.name",
  ],
  "store-older": [
    { controller, peers: [peerName("placer"), peerName("directory")] },
    "the store of this cell's controller was lost or is older than what placer and 1 more holds: nothing is changed or started until its newer store is back, or an operator lets this one count with `cells orphans release controller.shop`",
    "put the newer store back, or `cells orphans release controller.shop`",
  ],
};
const all = Object.entries(examples).map(([kind, [facts, words, lifts]]) => ({
  cause: { kind, ...facts } as Cause,
  words,
  lifts,
}));

test("every kind of cause has its sentence, and says what would lift it where somebody can", () => {
  for (const { cause, words, lifts } of all) {
    assert.equal(sentence(cause), words, cause.kind);
    assert.equal(remedy(cause), lifts, cause.kind);
  }
});

test("several causes are one sentence each, with what is behind them; none are nothing to say", () => {
  const waits: Cause = { kind: "waits-for", element: disk, because };
  assert.equal(
    sentenceOf([waits, { kind: "no-interface" }]),
    `${sentence(waits)}; ${sentence({ kind: "no-interface" })}`,
  );
  assert.equal(sentenceOf([]), null);
  assert.equal(sentence({ kind: "waits-for", element: disk }), "waits for shop/disk");
  assert.equal(kindsOf([waits, { kind: "no-interface" }]), "waits-for(said), no-interface");
});

test("a cause of a later version is told by its kind, and does not end whoever reads it", () => {
  const later = { kind: "never-heard-of", element: disk } as unknown as Cause;
  assert.equal(sentence(later), "never-heard-of");
  assert.equal(remedy(later), null);
});

test("every kind is in the published schema with its facts, and does not pass without them", () => {
  for (const { cause } of all) {
    const value = JSON.parse(JSON.stringify(cause)) as { [name: string]: Json };
    assert.equal(faultIn(schema, [value]), null, cause.kind);
    const wrong = Object.fromEntries(Object.entries(value).map(([name, fact]) => [name, name === "kind" ? fact : {}]));
    if (Object.keys(value).length > 1) assert.notEqual(faultIn(schema, [wrong]), null, cause.kind);
  }
});

test("what would give a VM a host is the change that its Placer names, else what the first host says", () => {
  const refusals = [{ host, why: "it is full", lifts: "ask for less", kind: "memory" as const }];
  const cause: Cause = { kind: "no-host", refusals, said: null };
  assert.equal(remedy(cause), "h1: ask for less");
  const rules = [
    { kind: "memory", hosts: 3 },
    { kind: "of-a-later-version", hosts: 1 },
  ];
  assert.equal(remedy({ ...cause, advice: { rules, change: "write `x.memory 64`" } }), "write `x.memory 64`");
  assert.match(remedy({ ...cause, advice: { rules, change: null } }) ?? "", /let one more host join/);
  assert.equal(rulesText(rules), "of 4 hosts that it may know of 3 are without the memory, 1 is of-a-later-version");
});
