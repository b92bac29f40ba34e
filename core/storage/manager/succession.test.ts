import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, type HostName, hostName, type PeerName, peerName, uid } from "../../../model/cell/identifiers.ts";
import { toJson } from "../../outbox.ts";
import { connection, StorageWorld, shop, volume } from "./manager.testing.ts";

const root = peerName("controller.root");
const desire = (incarnation: number, host: string, succession = true) => ({
  ...connection("r-3", "r-2", "r-1", incarnation, host),
  cell: cellName("root"),
  ...(succession ? { succession: true } : {}),
});
/** The root controller's VM has its volume, leased to the first host. */
const world = (client: PeerName = root, succession = true): StorageWorld => {
  const made = new StorageWorld({ s1: { freeMiB: 1000 } });
  const cell = client === root ? "root" : "shop";
  made.want("volume/r-2", { ...volume("r-2", { kind: "empty" }, 10, cell) }, client);
  made.settle();
  made.want("connection/r-3", { ...desire(1, "h1", succession), cell: cellName(cell) }, client);
  made.settle();
  assert.equal(made.connection("r-3", client)?.phase, "ready");
  return made;
};
/** A host has taken the lease at the agent: it runs the next incarnation. */
const taken = (made: StorageWorld, incarnation: number, host: HostName): void => {
  const agent = made.agent("s1");
  const { epoch = 0 } = agent.leases.get("r-2") ?? {};
  agent.leases.set("r-2", { epoch: epoch + 1, holder: { vm: uid("r-1"), incarnation, host } });
  made.say(agent, "lease/r-2", made.leaseActual(agent, "r-2"));
  made.settle();
};
const holder = (made: StorageWorld) => made.agent("s1").leases.get("r-2")?.holder;
const lease = (made: StorageWorld) => made.agent("s1").desired.get("lease/r-2");

test("a lease that a host took for the next incarnation of the root controller's VM is kept, and the desire follows", () => {
  const made = world();
  assert.equal((lease(made) as { readonly succession?: true }).succession, true, "the agent is told that hosts may");
  taken(made, 2, hostName("h2"));
  assert.deepEqual(holder(made), { vm: "r-1", incarnation: 2, host: "h2" });
  made.restart();
  made.settle();
  assert.deepEqual(holder(made), { vm: "r-1", incarnation: 2, host: "h2" }, "also by a manager that comes back");
  assert.deepEqual(made.connection("r-3", root)?.holder, holder(made), "the controller hears who has it");
  assert.deepEqual(lease(made), { volume: "r-2", epoch: 2, holder: toJson(holder(made) ?? {}), succession: true });
  // The controller has heard where it runs now.
  made.want("connection/r-3", desire(2, "h2"), root);
  made.settle();
  assert.equal(made.agent("s1").leases.get("r-2")?.epoch, 2, "nothing was fenced for it");
  assert.deepEqual(made.connection("r-3", root)?.holder, holder(made));
  assert.equal(world(shop, true).connection("r-3", shop)?.holder, undefined, "of no other VM");
  assert.deepEqual(
    [made.connection("r-3", root)?.phase, made.connection("r-3", root)?.attachment?.epoch],
    ["ready", 2],
  );
});

test("the desire may come before the agent's word", () => {
  const made = world();
  made.cut(made.agent("s1"));
  made.restart();
  made.want("connection/r-3", desire(2, "h2"), root);
  const agent = made.agent("s1");
  agent.leases.set("r-2", { epoch: 2, holder: { vm: uid("r-1"), incarnation: 2, host: hostName("h2") } });
  agent.actual.set("lease/r-2", made.leaseActual(agent, "r-2"));
  made.connect(agent);
  made.settle();
  assert.deepEqual(holder(made), { vm: "r-1", incarnation: 2, host: "h2" });
  assert.equal(made.connection("r-3", root)?.attachment?.epoch, 2);
});

test("nobody else's lease is kept like that: an unmarked one is fenced, whoever marks it", () => {
  const unmarked = world(root, false);
  unmarked.explain();
  taken(unmarked, 2, hostName("h2"));
  assert.deepEqual(
    holder(unmarked),
    { vm: "r-1", incarnation: 1, host: "h1" },
    "fenced and given back to who is desired",
  );
  const stranger = world(shop, true);
  stranger.explain();
  assert.equal(
    (lease(stranger) as { readonly succession?: true }).succession,
    undefined,
    "only the root controller may",
  );
  taken(stranger, 2, hostName("h2"));
  assert.deepEqual(holder(stranger), { vm: "r-1", incarnation: 1, host: "h1" });
  const other = world();
  other.explain();
  const agent = other.agent("s1");
  agent.leases.set("r-2", { epoch: 2, holder: { vm: uid("r-9"), incarnation: 9, host: hostName("h2") } });
  other.say(agent, "lease/r-2", other.leaseActual(agent, "r-2"));
  other.settle();
  assert.equal(holder(other)?.vm, "r-1", "another VM's is not");
});

test("when the controller desires a later incarnation than the one that holds it, that one is fenced first", () => {
  const made = world();
  taken(made, 2, hostName("h2"));
  made.want("connection/r-3", desire(3, "h3"), root);
  made.settle();
  assert.deepEqual(made.agent("s1").leases.get("r-2"), {
    epoch: 4,
    holder: { vm: "r-1", incarnation: 3, host: "h3" },
  });
});
