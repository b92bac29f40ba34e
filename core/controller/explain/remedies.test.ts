import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Cause, CauseKind } from "../../../model/cause/cause.ts";
import { kindsWithRemedy, remedy } from "../../../model/cause/remedy.ts";
import { cidr, hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { presenceKey } from "../../documents/presence.ts";
import type { ActualVm } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { rootMeans } from "../model/root.testing.ts";
import { shop, World } from "../world.testing.ts";
import { notHere } from "./remedies-not-here.testing.ts";
import { askedAt, beside, endsAs, grown, parts, unaskable, web, worldWith } from "./remedy-worlds.testing.ts";

/*
 * What is said to lift a cause is done, and the cause is gone: for every kind that says something, or the table says which other
 * test does it, or why none can. A new kind with a remedy is a line in this table, or the first test fails. Where another value
 * makes a volume anew, its name is given along, as the refusal asks.
 */
interface Way {
  /** Of the remedy, what is followed. */
  readonly says: RegExp;
  readonly follow: (world: World) => void;
}
interface Followed {
  /** A world in which an element has the cause. */
  readonly arise: () => World;
  readonly ways: readonly Way[];
}
const [h1, h1Peer] = [hostName("h1"), peerName("host.h1")];
const storageManager = peerName("storage-manager");
const directory = peerName("directory");

/** As the commands of that name do. */
const start = (changes: JsonObject) => (world: World) =>
  void world.put(
    shop({ ...changes, ...web({ ...(changes.web as JsonObject), "x.desiredState": "on", "x.restart": 1 }) }),
  );
const crashed: Partial<ActualVm> = { power: "off", ended: "crashed", phase: "failed", reason: "its QEMU ended" };
const guestSays = (world: World, guest: ActualVm["guest"]): World => endsAs(world, { guest } as Partial<ActualVm>);
const guestIs = (guest: ActualVm["guest"]): World => guestSays(worldWith(web({ "x.ready": "booted" })), guest);
const hostIsBack = (world: World): void => {
  world.silent.clear();
  world.settle();
};
const byItself = (follow: (world: World) => void): readonly Way[] => [{ says: /^nothing needs to be done/, follow }];

const silentHost = (): World => {
  const world = worldWith({});
  world.silent.add(h1Peer);
  return world.settle();
};
const death = { host: h1, generation: 3, incarnation: 0, declaredAt: Date.UTC(2026, 10, 21), reporters: 3 };
const declare = (world: World, value: object): World => {
  for (const member of ["presence.1", "presence.3"].map(peerName))
    world.step({ kind: "actual", from: member, key: presenceKey.death(h1), value: toJson(value) });
  return world.settle();
};
const deadHost = (): World => {
  const world = worldWith({});
  world.withdraw(h1Peer);
  return declare(world, death);
};

const card = (more: JsonObject): JsonObject => ({ webCard: { ...parts().webCard, ...more } });
const backCard: JsonObject = {
  "x.type": "VirtualInterface",
  "x.vm": "<ref:/shop/web>",
  "x.subnet": "<ref:/shop/back>",
};
/** A range of its own, in which an interface has got the first address, and another one asks for that by name. */
const fixed: JsonObject = { front: { ...parts().front, "x.cidr": "10.64.0.0/29" } };
const second = (address: string): JsonObject => ({ ...parts().webCard, "x.vifName": "second", "x.address": address });
/** Five interfaces beside the one that the subnet of the database has. */
const full = Object.fromEntries([1, 2, 3, 4, 5].map((number) => [`more${number}`, backCard]));

const rule = (port: number): JsonObject => ({ second: { ...parts().toDb, "x.port2": port } });
const policyAt = (say: "failed" | "working"): World => {
  const world = worldWith({});
  const version = world.policy(h1Peer)?.version ?? 0;
  world.policiesAt.set(h1, () => ({ version, phase: say, reason: say === "failed" ? "too many ranges" : null }));
  world.put(shop(rule(80)));
  return world.settle();
};
const hostTakesRules = (world: World): void => {
  world.policiesAt.clear();
  hostIsBack(world);
};

const bank = "bank.cells.internal/bank";
const toBank = (address1: string): JsonObject => ({
  toBank: { ...parts().toDb, "x.address1": address1, "x.address2": `<ref://${bank}/db>` },
});
const addresses = { uid: "b-1", shows: { kind: "addresses", type: "VM", networks: ["10.64.9.2/32"] } };
const golden = { uid: "b-7", shows: { kind: "volume", type: "Volume", sizeMiB: 64, server: "s1" } };
const copyOfBank: JsonObject = { foreign: { "x.type": "VolumeCopy", "x.image": `<ref://${bank}/golden>` } };
const foreign = (changes: JsonObject, shown: Readonly<Record<string, object>>): World => {
  const world = new World({ directory: true });
  for (const [path, want] of Object.entries(shown)) world.shown.set(`${bank}/${path}`, want as never);
  world.put(shop(changes));
  return world.settle();
};
const shows = (path: string, want: object) => (world: World) => {
  world.shown.set(`${bank}/${path}`, want as never);
  world.settle();
};

const storeIs = (world: World, forked: boolean): World => {
  world.step({ kind: "forked", peer: storageManager, forked, itForked: false });
  return world.settle();
};
const kid = { "x.type": "CellController", "x.cell": { web: { "x.type": "Cell" } } };
const serviceVm = (roles: JsonObject): JsonObject => ({
  "x.type": "VM",
  "x.memory": 160,
  "x.desiredState": "on",
  "x.data": { service: { roles } },
});
const authority = peerName("authority");
const serviceWith = (power: string): JsonObject => ({
  service: { ...serviceVm({ placer: {} }), "x.desiredState": power },
  serviceCard: { ...backCard, "x.vm": "<ref:/shop/service>" },
});
const enrolment = (world: World, value: JsonObject | null): World => {
  const [key] = world.desired.get(authority)?.keys() ?? [];
  world.step({ kind: "actual", from: authority, key: `controller.shop/${key}`, value });
  return world.settle();
};
const machines = (count: number): JsonObject =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`m${at}`, { "x.type": "VM", "x.memory": 16, "x.desiredState": "on" }]),
  );
const queued = (): World => worldWith({ ...machines(14), "x.limits.vmStartsPerMinute": 1 });
const tooMany = web({ "x.memory": 8192 });
const allOrNone: JsonObject = { ...tooMany, "x.policy.deploy": "all-or-none" };

const followed: Readonly<Record<string, Followed>> = {
  "switched-off": {
    arise: () => worldWith(web({ "x.desiredState": "off" })),
    ways: [{ says: /`cells start shop\/web`/, follow: start({}) }],
  },
  grows: {
    arise: () => grown(1000),
    ways: byItself((world) => {
      const connection = world.uidOf("shop/webBoot");
      endsAs(world, { disks: [{ connection, sizeMiB: 200, reason: null }] });
    }),
  },
  "asked-next-start": {
    arise: unaskable,
    ways: [
      {
        says: /`cells restart shop\/web`/,
        follow: (world) => void world.put(shop({ ...beside, ...web({ ...askedAt("shop/late"), "x.restart": 1 }) })),
      },
      {
        says: /or leave x\.liveness\.interface out, and the first that it has is asked/,
        follow: (world) => {
          world.ended.set(`${world.uidOf("shop/web")}@${world.vm("shop/web")?.document.incarnation}`, {});
          world.put(shop({ ...beside, ...web({ "x.liveness.protocol": "icmp" }) }));
        },
      },
    ],
  },
  "grows-next-start": {
    arise: () => grown(100),
    ways: [
      {
        says: /`cells restart shop\/web`/,
        follow: (world) => {
          // The file has room once no QEMU has it open.
          world.volumesAre.set(world.uidOf("shop/webDisk"), { roomMiB: 1000 });
          world.put(shop({ webDisk: { ...parts().webDisk, "x.size": 200 }, ...web({ "x.restart": 1 }) }));
          world.settle();
        },
      },
    ],
  },
  "service-unreachable": {
    arise: () => {
      const world = new World();
      world.silent.add(storageManager);
      world.put(shop());
      return world.settle();
    },
    ways: byItself(hostIsBack),
  },
  "host-unreachable": {
    arise: silentHost,
    ways: [{ says: /^bring the host back/, follow: hostIsBack }],
  },
  "host-declared-dead": {
    arise: deadHost,
    ways: [
      {
        says: /^bring the host back/,
        follow: (world) => {
          hostIsBack(world);
          declare(world, { ...death, returned: 4 });
        },
      },
    ],
  },
  "no-host": {
    arise: () => worldWith(tooMany),
    ways: [{ says: /^h1: ask for at most \d+ MiB/, follow: (world) => void world.put(shop()) }],
  },
  "guest-boots": { arise: () => guestIs("booting"), ways: byItself((world) => void guestSays(world, "up")) },
  "guest-late": {
    arise: () => guestIs("late"),
    ways: [
      { says: /look into it with `cells console shop\/web`/, follow: (world) => void guestSays(world, "up") },
      {
        says: /where its image has no agent, write x\.ready "started"/,
        follow: (world) => void world.put(shop(web({ "x.ready": "started" }))),
      },
    ],
  },
  unconfirmed: { arise: () => guestIs(undefined), ways: byItself((world) => void guestSays(world, "up")) },
  stops: {
    arise: () => {
      const world = worldWith({});
      world.slowStops.add(h1);
      world.put(shop(web({ "x.restart": 1 })));
      return world.settle();
    },
    ways: byItself((world) => {
      world.slowStops.clear();
      world.settle();
    }),
  },
  "not-restarted": {
    arise: () => endsAs(worldWith(web({ "x.restartOnFailure": false })), crashed),
    ways: [{ says: /`cells start shop\/web`/, follow: start(web({ "x.restartOnFailure": false })) }],
  },
  "silent-left": {
    arise: () =>
      endsAs(worldWith(web({ "x.restartOnFailure": false, "x.liveness.protocol": "icmp" })), { health: "silent" }),
    ways: [
      {
        says: /with x\.restartOnFailure true it is started again by itself/,
        follow: (world) => void world.put(shop(web({ "x.liveness.protocol": "icmp" }))),
      },
    ],
  },
  "backs-off": {
    arise: () => endsAs(endsAs(worldWith({}), crashed), crashed),
    ways: byItself((world) => {
      for (const name of [...world.timers.keys()].filter((each) => each.startsWith("retry"))) world.fire(name);
    }),
  },
  "waits-its-turn": {
    arise: queued,
    ways: [
      ...byItself((world) => {
        world.wait(10 * 60_000);
        world.fire("starts");
      }),
      {
        says: /raise x\.limits\.vmStartsPerMinute of the cell/,
        follow: (world) => void world.put(shop({ ...machines(14), "x.limits.vmStartsPerMinute": 120 })),
      },
    ],
  },
  "all-or-none": {
    arise: () => worldWith(allOrNone),
    ways: [
      {
        says: /make room for shop\/web/,
        follow: (world) => {
          world.hosts.set(hostName("h3"), 16_384);
          world.settle();
          for (const name of [...world.timers.keys()]) world.fire(name);
        },
      },
      {
        says: /or write x\.policy\.deploy "as-possible"/,
        follow: (world) => void world.put(shop({ ...allOrNone, "x.policy.deploy": "as-possible" })),
      },
    ],
  },
  "enrolment-refused": {
    arise: () => {
      const world = worldWith(serviceWith("on"), { root: rootMeans });
      return enrolment(world, { phase: "failed", reason: "the token was spent by another key", key: "ab".repeat(32) });
    },
    ways: [
      {
        says: /^switch it off and on: the next incarnation has a new token/,
        follow: (world) => {
          const [token] = world.desired.get(authority)?.values() ?? [];
          // An authority answers for each token by itself.
          enrolment(world, null);
          for (const power of ["off", "on"]) world.put(shop(serviceWith(power)));
          assert.notDeepEqual([...(world.desired.get(authority)?.values() ?? [])][0], token);
        },
      },
    ],
  },
  "no-interface": {
    arise: () => worldWith({ service: serviceVm({ placer: {} }) }, { root: rootMeans }),
    ways: [
      {
        says: /give it a VirtualInterface/,
        follow: (world) =>
          void world.put(
            shop({ service: serviceVm({ placer: {} }), serviceCard: { ...backCard, "x.vm": "<ref:/shop/service>" } }),
          ),
      },
    ],
  },
  "range-taken": {
    arise: () => {
      const world = worldWith({});
      const uid = world.uidOf("shop/front");
      world.takenRanges.add(world.state.elements.get(uid)?.range?.cidr ?? cidr("10.64.0.0/29"));
      // As after its service or its controller went on with an older store: it is asked for again.
      world.crash();
      return world.settle();
    },
    ways: [
      {
        says: /^`cells stop shop\/web`, and so each machine in it/,
        follow: (world) => void world.put(shop(web({ "x.desiredState": "off" }))),
      },
    ],
  },
  "subnet-full": {
    arise: () => worldWith(full),
    ways: [
      { says: /^remove an interface/, follow: (world) => void world.put(shop()) },
      {
        says: /or make the subnet larger/,
        follow: (world) => void world.put(shop({ ...full, back: { ...parts().back, "x.size": 16 } })),
      },
    ],
  },
  "address-taken": {
    arise: () => {
      const world = worldWith(fixed);
      world.put(shop({ ...fixed, second: second("10.64.0.2") }));
      return world.settle();
    },
    ways: [
      {
        says: /^use another address/,
        follow: (world) => void world.put(shop({ ...fixed, second: second("10.64.0.4") })),
      },
      {
        says: /or let shop\/webCard have another one/,
        follow: (world) =>
          void world.put(shop({ ...fixed, ...card({ "x.address": "10.64.0.5" }), second: second("10.64.0.2") })),
      },
    ],
  },
  "foreign-wrong-type": {
    arise: () => foreign(copyOfBank, { golden: addresses }),
    ways: [
      {
        says: /name a volume of bank\.cells\.internal/,
        follow: (world) => {
          world.shown.set(`${bank}/image`, golden as never);
          world.put(shop({ foreign: { "x.type": "VolumeCopy", "x.image": `<ref://${bank}/image>` } }), [
            "shop/foreign",
          ]);
        },
      },
    ],
  },
  "foreign-own-cell": {
    arise: () => foreign({ own: { "x.type": "VolumeCopy", "x.image": "<ref://shop.cells.internal/shop/golden>" } }, {}),
    ways: [
      {
        says: /as a path of this document, "<ref:\/shop\/golden>"/,
        follow: (world) =>
          void world.put(shop({ own: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>" } }), ["shop/own"]),
      },
    ],
  },
  "no-directory": {
    arise: () => worldWith(copyOfBank),
    ways: [
      {
        says: /as a part of this cell/,
        follow: (world) =>
          void world.put(shop({ foreign: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>" } }), [
            "shop/foreign",
          ]),
      },
    ],
  },
  "directory-unreachable": {
    arise: () => {
      const world = new World({ directory: true });
      world.silent.add(directory);
      world.shown.set(`${bank}/golden`, golden as never);
      world.put(shop(copyOfBank));
      return world.settle();
    },
    ways: byItself(hostIsBack),
  },
  "foreign-hidden": {
    arise: () => foreign(copyOfBank, {}),
    ways: [{ says: /let there be an element bank\/golden with x\.public true/, follow: shows("golden", golden) }],
  },
  "controller-of-own-cell-only": {
    arise: () => foreign(toBank("controller"), { db: addresses }),
    ways: [
      {
        says: /let the other end be a subnet, a VM or an interface of this cell/,
        follow: (world) => {
          world.agreed = true;
          world.put(shop(toBank("<ref:/shop/web>")));
        },
      },
    ],
  },
  "not-agreed": {
    arise: () => foreign(toBank("<ref:/shop/web>"), { db: addresses }),
    ways: [
      {
        says: /let bank\.cells\.internal have a NetworkRule with the same protocol and port/,
        follow: (world) => {
          world.agreed = true;
          world.settle();
        },
      },
    ],
  },
  "rules-unconfirmed": {
    arise: () => {
      const world = policyAt("working");
      world.silent.add(h1Peer);
      return world.settle();
    },
    ways: [{ says: /^bring the host back/, follow: hostTakesRules }],
  },
  "rules-refused": {
    arise: () => policyAt("failed"),
    ways: [
      {
        says: /change the rules as it says/,
        follow: (world) => {
          world.policiesAt.clear();
          world.put(shop(rule(81)));
        },
      },
    ],
  },
  "rules-older": { arise: () => policyAt("working"), ways: byItself(hostTakesRules) },
  "store-older": {
    arise: () => storeIs(worldWith({}), true),
    ways: [
      {
        says: /or `cells orphans release controller\.shop`/,
        follow: (world) => void storeIs(world, false),
      },
    ],
  },
  "no-cell-manager": {
    arise: () => worldWith({ kid }),
    ways: [{ says: /submit the child as a cell of its own/, follow: (world) => void world.put(shop()) }],
  },
};

/** All that the world's elements say, with what is behind it. */
const causesIn = (world: World): readonly Cause[] => {
  const withBehind = (causes: readonly Cause[]): readonly Cause[] =>
    causes.flatMap((cause) => [cause, ...("because" in cause ? withBehind(cause.because ?? []) : [])]);
  const elements = [...world.state.elements.values()];
  const answered = elements.flatMap(({ path }) => {
    const { status, body } = world.ask({ method: "WHY-ELEMENT", path });
    if (status !== 200) return [];
    const { checks } = body as unknown as { readonly checks: readonly { readonly causes?: readonly Cause[] }[] };
    return checks.flatMap(({ causes = [] }) => causes);
  });
  return withBehind([...elements.flatMap(({ causes }) => causes), ...answered]);
};
const ofKind = (world: World, kind: CauseKind): readonly Cause[] =>
  causesIn(world).filter((cause) => cause.kind === kind);

test("every kind with a remedy is in the table, and no other", () => {
  assert.deepEqual([...Object.keys(followed), ...Object.keys(notHere)].sort(), [...kindsWithRemedy].sort());
});

test("what another test does is done there", () => {
  for (const [kind, entry] of Object.entries(notHere)) {
    if (!("file" in entry)) continue;
    const text = readFileSync(join(import.meta.dirname, "..", entry.file), "utf8");
    assert.ok(text.includes(`test("${entry.test}"`), `${kind}: ${entry.file} has no test "${entry.test}"`);
  }
});

describe("what is said to lift a cause lifts it", () => {
  for (const kind of kindsWithRemedy) {
    const entry = followed[kind];
    if (entry === undefined) continue;
    for (const { says, follow } of entry.ways)
      test(`${kind}: ${says.source}`, () => {
        const world = entry.arise();
        const found = ofKind(world, kind);
        assert.ok(found.length > 0, JSON.stringify(world.phases(), null, 1));
        assert.ok(
          found.some((cause) => says.test(remedy(cause) ?? "")),
          found.map(remedy).join("\n"),
        );
        follow(world);
        world.settle();
        assert.deepEqual(ofKind(world, kind), [], JSON.stringify(world.phases(), null, 1));
      });
  }
});
