import assert from "node:assert/strict";
import { test } from "node:test";
import { type InstallationRecord, withCell, withoutCell } from "../record.ts";
import { cgroupMounts, ownCgroup } from "../supervisor/cgroups.ts";
import { macOf, membersOf, peersOf } from "../supervisor/members.ts";
import { isCellName } from "../supervisor/supervisor-api.ts";
import { hostMemory } from "../up.ts";

const record: InstallationRecord = {
  hosts: 2,
  servers: 1,
  hostMemoryMiB: 1024,
  hostCpus: 2,
  port: 0,
  credentialHash: "",
  nextCellNumber: 1,
  cells: {},
};

test("control group hierarchies of both versions are found", () => {
  const mounts =
    "cgroup /c/cpu cgroup rw,relatime,cpu,cpuacct 0 0\ncgroup2 /c/unified cgroup2 rw 0 0\nproc /proc proc rw 0 0";
  assert.deepEqual(
    cgroupMounts(mounts).map(({ point, version }) => `${point} ${version}`),
    ["/c/cpu 1", "/c/unified 2"],
  );
  const memberships = "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/user.slice";
  assert.equal(ownCgroup(memberships, "memory"), "/a/b");
  assert.equal(ownCgroup(memberships, "cpuacct"), "/");
  assert.equal(ownCgroup(memberships, ""), "/user.slice");
  assert.equal(ownCgroup(memberships, "pids"), undefined);
});

test("members have addresses, peers and MACs of their own", () => {
  const members = membersOf(withCell(record, "shop"));
  for (const key of ["name", "peer", "address"] as const) {
    assert.equal(new Set(members.map((member) => member[key])).size, members.length, key);
  }
  assert.equal(macOf("10.0.3.255"), "02:00:0a:00:03:ff");
  assert.equal(peersOf(members)["agent.s1"], "10.0.2.1");
});

test("a cell's number is never used again, its making is idempotent", () => {
  const one = withCell(record, "one");
  assert.equal(withCell(one, "one"), one);
  const again = withCell(withoutCell(one, "one"), "one");
  assert.equal(again.cells.one?.cellNumber, 2);
  assert.match(again.cells.one?.cellUid ?? "", /^[0-9a-f]{6}$/);
  assert.throws(() => withCell({ ...record, nextCellNumber: 255 }, "x"), /another --directory/);
});

test("names of cells cannot be paths or options", () => {
  for (const name of ["shop", "a-1", "x".repeat(53)]) assert.equal(isCellName(name), true, name);
  for (const name of ["", "..", "-a", "a-", "A", "a/b", "a.b", "x".repeat(54)])
    assert.equal(isCellName(name), false, name);
});

test("hosts share what the machine can spare", () => {
  assert.equal(hostMemory(24_000, 3), 4096);
  assert.equal(hostMemory(10_240, 3), 2048);
  assert.equal(hostMemory(4096, 3), 512);
});
