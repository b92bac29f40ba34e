import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { documentsOf } from "../../documents/readers/table.ts";
import { host, world } from "../placer.testing.ts";

/** Each has 3000 MiB for VMs. */
const begun = (spareHosts: number, names = ["h1", "h2", "h3"]) => {
  const it = world(names);
  for (const name of names) it.say(name, host(name));
  keep(it, spareHosts);
  return it;
};
const keep = (it: ReturnType<typeof world>, hosts: number | null): void =>
  void it.input({
    kind: "desired",
    from: peerName("controller.root"),
    key: "spare",
    value: hosts === null ? null : { hosts },
  });
const placed = (it: ReturnType<typeof world>, ...vms: readonly string[]): readonly (string | null | undefined)[] =>
  vms.map((vm) => it.get(vm)?.host);

test("a new VM is placed as long as those of the fullest host would find room on the others", () => {
  const it = begun(1);
  for (const vm of ["a", "b", "c"]) it.want(vm, 1500);
  assert.deepEqual(placed(it, "a", "b", "c"), ["h1", "h2", "h3"]);
  assert.deepEqual(it.spare(), { hosts: 1, lack: null });
  it.want("d", 1500);
  assert.deepEqual(placed(it, "d"), ["h1"], "two of one host find room on the two others");
  it.want("e", 1000);
  assert.deepEqual(placed(it, "e"), [null], "there would be room for it, and for none of what it would displace");
  const refusals = it.get("e")?.refusals ?? [];
  const why = refusals.find((refusal) => refusal.host === "h2");
  assert.match(why?.why ?? "", /^room is kept for the VMs of a host that is lost, and with it \d of them \(\d+ MiB\)/);
  assert.match(why?.lifts ?? "", /x\.ha\.spareHosts/);
  assert.match(refusals.find((refusal) => refusal.host === "h1")?.why ?? "", /do not fit/);
  keep(it, null);
  assert.deepEqual(placed(it, "e"), ["h2"], "nothing is kept any more");
  assert.equal(it.spare(), undefined);
});

test("room for a large VM is in one piece, with what its machine takes, and processors count", () => {
  const it = world(["h1", "h2", "h3"]);
  it.say("h1", host("h1", 4000, { machineMiB: 100 }));
  for (const name of ["h2", "h3"]) it.say(name, host(name, 2500, { machineMiB: 100 }));
  keep(it, 1);
  it.want("large", 1400);
  assert.equal(placed(it, "large")[0], null, "the others together have more than that");
  it.want("large", 1300);
  assert.equal(placed(it, "large")[0], "h1");
  const other = begun(1, ["h1", "h2"]);
  other.want("a", 100, 1, { cpus: 20 });
  other.want("b", 100, 1, { cpus: 13 });
  assert.deepEqual(placed(other, "a", "b"), ["h1", null], "32 of each");
});

test("what was lost, what leaves, what restarts in its place, and the cloud's own VMs take the room", () => {
  const it = begun(1, ["h1", "h2"]);
  it.want("a", 1500);
  it.want("b", 1500);
  assert.deepEqual(placed(it, "a", "b"), ["h1", "h2"]);
  it.want("c", 1000);
  assert.deepEqual(placed(it, "c"), [null]);
  it.want("d", 1000, 2, { restart: true });
  it.want("e", 1000, 1, { cell: "root", path: "root/e" });
  assert.deepEqual(placed(it, "d", "e"), ["h1", "h2"]);
  it.want("a", 1500, 2);
  assert.deepEqual(placed(it, "a"), ["h1"], "its place was its own");
  it.want("a", null);
  it.want("a", 1500, 3);
  assert.deepEqual(placed(it, "a"), [null], "one that was off is new");
  assert.deepEqual(it.spare(), { hosts: 1, lack: { vms: 1, memoryMiB: 1000 } }, "what took it is lacking now");
});

test("what restarts in its place goes on to have it also when it has to wait for another reason", () => {
  const it = begun(1, ["h1", "h2"]);
  it.want("a", 1500);
  it.want("b", 1500);
  it.administer("h1", "disabled");
  it.administer("h2", "disabled");
  it.want("a", 1500, 2);
  assert.deepEqual(placed(it, "a"), [null]);
  it.want("c", 1500);
  it.administer("h1", null);
  assert.deepEqual(placed(it, "a", "c"), ["h1", null]);
});

test("reserved hosts are room for that, closed ones and those that are away are not; several hosts may be meant", () => {
  const it = begun(1, ["h1", "h2"]);
  it.administer("h2", "reserved");
  it.want("a", 3000);
  assert.deepEqual(placed(it, "a"), ["h1"]);
  it.administer("h2", "maintenance");
  assert.deepEqual(it.spare(), { hosts: 1, lack: { vms: 1, memoryMiB: 3000 } });
  it.administer("h2", null);
  it.say("h2", null);
  assert.deepEqual(it.spare(), { hosts: 1, lack: { vms: 1, memoryMiB: 3000 } });
  const four = begun(2, ["h1", "h2", "h3", "h4"]);
  for (const vm of ["a", "b", "c", "d"]) four.want(vm, 1500);
  assert.deepEqual(placed(four, "a", "b", "c", "d"), ["h1", "h2", "h3", "h4"]);
  four.want("e", 1500);
  assert.deepEqual(placed(four, "e"), [null], "with two hosts lost two others have room for two of three");
});

test("VMs of other Placers are counted, and room that is kept for who leaves is not looked for twice", () => {
  const it = begun(1, ["h1", "h2"]);
  it.input({
    kind: "actual",
    from: "host.h1" as never,
    key: "taken/x-1",
    value: { memoryMiB: 2000, cpus: 1 },
  });
  it.want("a", 1500);
  assert.deepEqual(placed(it, "a"), [null], "that one would need the room of h2");
  it.want("a", 900);
  assert.deepEqual(placed(it, "a"), ["h2"]);
  const leaving = begun(0, ["h1", "h2", "h3"]);
  leaving.want("a", 2000);
  leaving.administer("h2", "disabled");
  leaving.want("a", 2000, 1, { moveTo: "h3" });
  assert.equal(leaving.get("a")?.leave?.to, "h3");
  keep(leaving, 1);
  assert.deepEqual(leaving.spare()?.lack, null, "it has its room at h3");
});

test("a word that is malformed, or out of bounds, is refused and said, and takes nothing back that is kept", () => {
  const it = begun(1, ["h1"]);
  it.want("a", 100);
  assert.deepEqual(placed(it, "a"), [null]);
  const root = peerName("controller.root");
  const read = documentsOf("placer");
  for (const value of [{ hosts: 17 }, { hosts: -1 }, { hosts: 1.5 }, { hosts: "1" }, { host: 1 }, {}, [1], 1, true]) {
    const refused = read("desired", root, "spare", value);
    assert.match(refused.ok ? "" : refused.error, /found .*, must be /, JSON.stringify(value));
    // One that another version has stored is delivered all the same.
    const said = it.input({ kind: "desired", from: root, key: "spare", value }).filter(({ kind }) => kind === "log");
    const fields = { from: root, key: "spare", why: "it is malformed" };
    assert.deepEqual(said, [{ kind: "log", event: "document/refused", fields }], JSON.stringify(value));
    assert.deepEqual([placed(it, "a"), it.spare()?.hosts], [[null], 1]);
  }
  const good = read("desired", root, "spare", { hosts: 16 });
  assert.deepEqual(good.ok ? good.value : good.error, { hosts: 16 });
  keep(it, 16);
  assert.equal(it.spare()?.hosts, 16);
  keep(it, 0);
  assert.deepEqual(placed(it, "a"), ["h1"]);
});
