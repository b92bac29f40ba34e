import assert from "node:assert/strict";
import { test } from "node:test";
import { refusalKinds } from "../../model/cause/cause.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { host, world } from "./placer.testing.ts";

/* What a host says would let it take a VM is done, each way that it names, and it takes the VM. */
type World = ReturnType<typeof world>;
interface Way {
  readonly says: RegExp;
  readonly follow: (world: World, said: RegExpExecArray) => void;
}
interface Refused {
  readonly arise: (world: World) => void;
  readonly ways: readonly Way[];
}
/** `vm` asks for 600 MiB at the one host. */
const asks = ({ want }: World, more: object = {}): void => void want("vm", 600, 1, { ...more });
const taken = ({ want }: World, memoryMiB: number, more: object = {}): void => {
  want("first", memoryMiB, 1, { ...more });
};
const root = peerName("controller.root");
const belongs = ({ input }: World): void => {
  const value = { cell: "shop", account: "ROOT/acme/dev" };
  input({ kind: "desired", from: root, key: "owner/shop", value });
};
const dedicates = ({ input }: World, path: string): void => {
  const value = { host: "h1", of: "h1", level: "host", to: { kind: "domain", path } };
  input({ kind: "desired", from: root, key: "dedicated/h1", value });
};
/** A VM of another account, which asks for a host of its own. */
const strict = ({ input }: World, incarnation: number | null): void => {
  input({ kind: "desired", from: root, key: "owner/other", value: { cell: "other", account: "ROOT/other" } });
  const value = { vm: "s", path: "other/s", cell: "other", incarnation, memoryMiB: 10, cpus: 1, cpuSpeedMHz: 0 };
  const desired = incarnation === null ? null : { ...value, incarnation, placement: { dedication: "strict" } };
  input({ kind: "desired", from: peerName("controller.other"), key: "placement/s", value: desired });
};
const grouped = ({ input }: World, kind: string): void => {
  const value = { uid: "g1", path: "shop/g", name: "g", kind };
  input({ kind: "desired", from: peerName("controller.shop"), key: "group/g1", value });
};
const another: Way = { says: /let (?:another|one more) host join/, follow: ({ say }) => void say("h2", host("h2")) };

const refused: Readonly<Record<string, Refused>> = {
  unreachable: {
    arise: (world) => {
      world.say("h1", null);
      asks(world);
    },
    ways: [{ says: /^the host answers again$/, follow: ({ say }) => void say("h1", host("h1")) }],
  },
  closed: {
    arise: (world) => {
      world.say("h1", host("h1", 4000, { state: "draining" }));
      asks(world);
    },
    ways: [{ says: /^the operator lets it take VMs again$/, follow: ({ say }) => void say("h1", host("h1")) }],
  },
  "closed, by the operator": {
    arise: (world) => {
      world.administer("h1", "maintenance");
      asks(world);
    },
    ways: [{ says: /`cells host resume h1`$/, follow: ({ administer }) => administer("h1", null) }],
  },
  "closed, since it is reserved": {
    arise: (world) => {
      world.administer("h1", "reserved");
      asks(world);
    },
    ways: [
      { says: /^take `ha` out of `x\.tags` of root\/hosts\/h1/, follow: ({ administer }) => administer("h1", null) },
      another,
    ],
  },
  speed: {
    arise: (world) => asks(world, { cpuSpeedMHz: 3000 }),
    ways: [
      {
        says: /^ask for x\.cpuSpeed (\d+) or less$/,
        follow: (world, [, most]) => asks(world, { incarnation: 2, cpuSpeedMHz: Number(most) }),
      },
    ],
  },
  pinned: {
    arise: (world) => asks(world, { placement: { host: "h2" } }),
    ways: [
      { says: /^leave out x\.placement\.host/, follow: (world) => asks(world, { incarnation: 2 }) },
      { says: /or make room at h2$/, follow: ({ say }) => void say("h2", host("h2")) },
    ],
  },
  "dedicated, and it asks for none": {
    arise: (world) => {
      belongs(world);
      dedicates(world, "ROOT/acme");
      asks(world);
    },
    ways: [
      {
        says: /^ask for it with x\.placement\.groups "([^"]+)"$/,
        follow: (world, [, group = ""]) => asks(world, { incarnation: 2, placement: { groups: [group] } }),
      },
    ],
  },
  "dedicated, and it is not": {
    arise: (world) => {
      belongs(world);
      asks(world, { placement: { groups: "DedicatedGrp-domain-acme" } });
    },
    ways: [
      {
        says: /^take DedicatedGrp-domain-acme out of x\.placement\.groups, or/,
        follow: (world) => asks(world, { incarnation: 2 }),
      },
      { says: /or have the operator dedicate it$/, follow: (world) => dedicates(world, "ROOT/acme") },
    ],
  },
  "dedicated, by others that run there": {
    arise: (world) => {
      belongs(world);
      taken(world, 100);
      asks(world, { placement: { dedication: "strict" } });
    },
    ways: [
      {
        says: /^ask for x\.placement\.dedication "preferred", or/,
        follow: (world) => asks(world, { incarnation: 2, placement: { dedication: "preferred" } }),
      },
      another,
    ],
  },
  "dedicated, by one that bears no others": {
    arise: (world) => {
      strict(world, 1);
      asks(world);
    },
    ways: [another, { says: /, or let these end$/, follow: (world) => strict(world, null) }],
  },
  "apart, by its own": {
    arise: (world) => {
      taken(world, 100);
      asks(world, { placement: { apartFrom: ["shop/first"] } });
    },
    ways: [
      {
        says: /^take "shop\/first" out of x\.placement\.apartFrom, or/,
        follow: (world) => asks(world, { incarnation: 2, placement: { apartFrom: [] } }),
      },
      another,
    ],
  },
  "apart, by the other's": {
    arise: (world) => {
      taken(world, 100, { placement: { apartFrom: "vm" } });
      asks(world);
    },
    ways: [
      {
        says: /^take "shop\/vm" out of that of "shop\/first", or/,
        follow: (world) => taken(world, 100, { incarnation: 2 }),
      },
      another,
    ],
  },
  "apart, by both": {
    arise: (world) => {
      taken(world, 100, { placement: { apartFrom: "vm" } });
      asks(world, { placement: { apartFrom: "first" } });
    },
    ways: [
      {
        says: /^take "shop\/first" out of x\.placement\.apartFrom and "shop\/vm" out of that of "shop\/first", or/,
        follow: (world) => {
          taken(world, 100, { incarnation: 2 });
          asks(world, { incarnation: 2 });
        },
      },
      another,
    ],
  },
  "apart, by a group": {
    arise: (world) => {
      grouped(world, "host anti-affinity");
      taken(world, 100, { placement: { groups: ["g"] } });
      asks(world, { placement: { groups: ["g"] } });
    },
    ways: [
      { says: /^take "g" out of x\.placement\.groups, or/, follow: (world) => asks(world, { incarnation: 2 }) },
      another,
    ],
  },
  "pinned, by a group": {
    arise: (world) => {
      grouped(world, "host affinity");
      world.say("h2", host("h2"));
      world.say("h1", host("h1", 4000, { state: "draining" }));
      taken(world, 2700, { placement: { groups: ["g"] } });
      world.say("h1", host("h1"));
      asks(world, { placement: { groups: ["g"] } });
    },
    ways: [
      { says: /^take "g" out of x\.placement\.groups, or/, follow: (world) => asks(world, { incarnation: 2 }) },
      { says: /or make room where its VMs are$/, follow: ({ say }) => void say("h2", host("h2", 8000)) },
    ],
  },
  "memory: others have": {
    arise: (world) => {
      taken(world, 2800);
      asks(world);
    },
    ways: [
      {
        says: /^ask for at most (\d+) MiB, or/,
        follow: ({ want }, [, most]) => void want("vm", Number(most), 2),
      },
      {
        says: /or let (\d+) MiB become free there$/,
        follow: (world, [, lacks]) => taken(world, 2800 - Number(lacks), { incarnation: 2 }),
      },
    ],
  },
  "memory: nothing is left": {
    arise: (world) => {
      taken(world, 2990);
      asks(world);
    },
    ways: [
      {
        says: /^let (\d+) MiB become free there$/,
        follow: (world, [, lacks]) => taken(world, 2990 - Number(lacks), { incarnation: 2 }),
      },
    ],
  },
  "memory: it never has": {
    arise: ({ want }) => void want("vm", 5000),
    ways: [
      {
        says: /^it never fits there: ask for at most (\d+) MiB$/,
        follow: ({ want }, [, most]) => void want("vm", Number(most), 2),
      },
    ],
  },
  "cpus: others have": {
    arise: (world) => {
      taken(world, 100, { cpus: 30 });
      asks(world, { cpus: 4 });
    },
    ways: [
      {
        says: /^ask for at most (\d+) CPUs, or/,
        follow: (world, [, most]) => asks(world, { incarnation: 2, cpus: Number(most) }),
      },
      {
        says: /or let (\d+) CPUs become free there$/,
        follow: (world, [, lacks]) => taken(world, 100, { incarnation: 2, cpus: 30 - Number(lacks) }),
      },
    ],
  },
  "cpus: none is left": {
    arise: (world) => {
      taken(world, 100, { cpus: 32 });
      asks(world);
    },
    ways: [
      {
        says: /^let (\d+) CPUs become free there$/,
        follow: (world, [, lacks]) => taken(world, 100, { incarnation: 2, cpus: 32 - Number(lacks) }),
      },
    ],
  },
  "cpus: it never has": {
    arise: (world) => asks(world, { cpus: 33 }),
    ways: [
      {
        says: /^it never fits there: ask for at most (\d+) CPUs$/,
        follow: (world, [, most]) => asks(world, { incarnation: 2, cpus: Number(most) }),
      },
    ],
  },
  "cpus: it has none": {
    arise: (world) => {
      world.say("h1", host("h1", 4000, { cpus: 0 }));
      asks(world);
    },
    ways: [another],
  },
};

const kindOf = (name: string): string => refusalKinds.find((kind) => name.startsWith(kind)) ?? "none";

test("every kind of refusal is in the table", () => {
  assert.deepEqual(new Set(Object.keys(refused).map(kindOf)), new Set(refusalKinds));
});

for (const [name, { arise, ways }] of Object.entries(refused))
  for (const { says, follow } of ways)
    test(`${name}: ${says.source}`, () => {
      // The other one is not there yet.
      const one = world(["h1", "h2"]);
      one.say("h1", host("h1"));
      arise(one);
      const refusal = one.get("vm")?.refusals.find((each) => each.host === "h1");
      assert.equal(refusal?.kind, kindOf(name));
      const said = says.exec(refusal?.lifts ?? "");
      assert.ok(said !== null, refusal?.lifts);
      follow(one, said);
      assert.equal(one.get("vm")?.phase, "ready", JSON.stringify(one.get("vm")));
    });
