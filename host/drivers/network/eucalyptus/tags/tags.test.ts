import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clangVersion } from "../../diverter/program/build.ts";
import { ethernet, ip, u16, udp } from "../../diverter/testing/frames.testing.ts";
import { Agent, canRun, type Machine } from "../../diverter/testing/namespaces.testing.ts";
import { soon, World } from "../packets/world.testing.ts";
import { compile, readRecord, sourceHash } from "./build.ts";
import { type FoundTag, objectFile, type Tag } from "./tags.ts";

test("the committed object of tags was made from the committed source", () => {
  assert.equal(readRecord().source, sourceHash(), "run `node host/drivers/network/eucalyptus/tags/build.ts`");
});

const compiles = spawnSync("clang", ["--version"]).status === 0;
test("compiling the source of tags again gives the committed object", { skip: !compiles }, (t) => {
  if (clangVersion() !== readRecord().clang) return t.skip("another version of clang than the recorded one");
  const directory = mkdtempSync(join(tmpdir(), "cells-tags-"));
  try {
    compile(join(directory, "tags.o"));
    assert.ok(readFileSync(join(directory, "tags.o")).equals(readFileSync(objectFile)));
  } finally {
    rmSync(directory, { recursive: true });
  }
});

const [here, there] = ["02:00:00:00:00:01", "02:00:00:00:00:02"] as const;
const frame = (port: number): string =>
  ethernet(there, here, 0x0800, ip("10.0.0.1", "10.0.0.2", 17, udp(5000, port, Buffer.from("x"))));
const tagged = (port: number, type: number, ...tags: readonly number[]): string =>
  frame(port).slice(0, 24) + tags.map((tag) => u16(type) + u16(tag)).join("") + frame(port).slice(24);
const indexOf = (machine: Machine, device: string): number =>
  (JSON.parse(machine.run("ip", "-j", "link", "show", "dev", device)) as { readonly ifindex: number }[])[0]?.ifindex ??
  0;

test("tags: given to what leaves by a VLAN's device, taken from what comes, and no frame is in another VLAN", {
  skip: !canRun(),
}, async () => {
  const world = new World();
  const processes: Agent[] = [];
  try {
    const [machine, beyond] = [await world.machine(), await world.machine()];
    machine.cable("wire", beyond, "end");
    for (const device of ["vl_5", "vl_6"]) {
      machine.run("ip", "link", "add", "name", device, "type", "ifb");
      machine.run("ip", "link", "set", "dev", device, "addrgenmode", "none", "up");
    }
    machine.run("ip", "address", "add", "10.9.9.1/24", "dev", "wire");
    beyond.run("ip", "address", "add", "10.9.9.2/24", "dev", "end");
    const wire = indexOf(machine, "wire");
    const wanted: readonly Tag[] = [5, 6].map((tag) => ({ wire, tag, device: indexOf(machine, `vl_${tag}`) }));
    const asked = (...args: readonly string[]): Agent => {
      const agent = new Agent(machine, "../../eucalyptus/packets/programs-process.testing.ts", "/run/bpf", ...args);
      processes.push(agent);
      return agent;
    };
    const found = (agent: Agent): Promise<readonly FoundTag[]> => agent.call("read");
    const all = wanted.map((tag) => ({ ...tag, works: true }));
    const first = asked();
    await first.call("apply", wanted);
    assert.deepEqual(
      [...(await found(first))].sort((a, b) => a.tag - b.tag),
      all,
    );

    const [inside, outside] = [world.agent(machine), world.agent(beyond)];
    const [five, six] = [await world.watch(machine, "vl_5", "udp"), await world.watch(machine, "vl_6", "udp")];
    const end = await world.watch(beyond, "end");
    const saw = (text: string, port: number): string =>
      text.split("\n").find((line) => line.includes(`.${port}: `)) ?? "";
    for (const two of [tagged(6001, 0x8100, 5), tagged(6002, 0x88a8, 5)])
      await assert.rejects(inside.call("inject", "vl_6", [two]), /takes no frame/);
    await inside.call("inject", "vl_6", [frame(6003)]);
    await inside.call("inject", "vl_5", [frame(6004)]);
    assert.ok(await soon(() => saw(end.text, 6003) !== "" && saw(end.text, 6004) !== ""));
    assert.match(saw(end.text, 6003), /vlan 6,/);
    assert.match(saw(end.text, 6004), /vlan 5,/);
    assert.deepEqual([saw(end.text, 6001), saw(end.text, 6002)], ["", ""], "one that has a tag already");
    await outside.call("inject", "end", [
      ...[tagged(6011, 0x8100, 5, 6), tagged(6012, 0x8100, 7), tagged(6013, 0x88a8, 5), frame(6014)],
      ...[tagged(6015, 0x8100, 5), tagged(6016, 0x8100, 6)],
    ]);
    assert.ok(await soon(() => saw(five.text, 6015) !== "" && saw(six.text, 6016) !== ""));
    assert.ok(!saw(five.text, 6015).includes("vlan"));
    for (const port of [6011, 6012, 6013, 6014, 6016]) assert.equal(saw(five.text, port), "", `${port}`);
    for (const port of [6011, 6012, 6013, 6014, 6015]) assert.equal(saw(six.text, port), "", `${port}`);
    assert.ok(beyond.succeeds("ping", "-c", "1", "-W", "1", "10.9.9.1"), "what has no tag is the machine's own");

    // A process of another version takes the place of this one's programs; there are no two of a kind.
    const object = join(world.directory, "another.o");
    writeFileSync(object, Buffer.concat([readFileSync(objectFile), Buffer.from([0])]));
    const second = asked(object);
    assert.deepEqual(await found(second), []);
    await second.call("apply", wanted.slice(0, 1));
    assert.deepEqual(await found(second), all.slice(0, 1));
    assert.deepEqual(await found(first), []);
    await inside.call("inject", "vl_6", [frame(6021)]);
    await inside.call("inject", "vl_5", [frame(6022)]);
    assert.ok(await soon(() => saw(end.text, 6022) !== ""));
    assert.equal(saw(end.text, 6021), "");
    assert.equal(end.text.split(".6022: ").length, 2);

    // Somebody made the device anew: known, and not there.
    machine.run("ip", "link", "delete", "dev", "vl_5");
    machine.run("ip", "link", "add", "name", "vl_5", "index", String(wanted[0]?.device), "type", "ifb");
    assert.deepEqual(
      (await found(second)).map(({ works }) => works),
      [false],
    );
    await second.call("apply", []);
    assert.deepEqual(await found(second), []);
    await outside.call("inject", "end", [tagged(6031, 0x8100, 5)]);
    assert.ok(beyond.succeeds("ping", "-c", "1", "-W", "1", "10.9.9.1"));
    assert.ok(!machine.run("cat", "/proc/self/mountinfo").includes("/run/bpf"));
  } finally {
    for (const agent of processes) await agent.stop();
    await world.end();
  }
});
