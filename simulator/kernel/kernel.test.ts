import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeInput } from "../../core/distribution/node/types.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { Clock } from "./clock.ts";
import { Disk } from "./disk.ts";
import { goodQuality, Network } from "./network.ts";
import { createRandom } from "./random.ts";

test("events happen in the order of their time, and of one moment in the order in which they were put there", () => {
  const clock = new Clock();
  const seen: string[] = [];
  for (const [ms, name] of [
    [5, "c"],
    [1, "a"],
    [5, "d"],
    [2, "b"],
  ] as const)
    clock.after(ms, () => void seen.push(name));
  clock.after(3, () => void seen.push("never")).cancelled = true;
  while (clock.nextMs !== null) clock.step();
  assert.deepEqual(seen, ["a", "b", "c", "d"]);
  assert.equal(clock.nowMs, 5);
});

test("time that stands still is noticed", () => {
  const clock = new Clock();
  const again = (): void => void clock.after(0, again);
  again();
  assert.throws(() => {
    for (;;) clock.step();
  }, /time stands still/);
});

test("a stream of chance follows from its seed and name, and is even", () => {
  const numbers = (seed: number, name: string): readonly number[] => {
    const random = createRandom(seed).fork(name);
    return Array.from({ length: 4000 }, () => random.next());
  };
  assert.deepEqual(numbers(7, "a"), numbers(7, "a"));
  assert.notDeepEqual(numbers(7, "a"), numbers(7, "b"));
  assert.notDeepEqual(numbers(7, "a"), numbers(8, "a"));
  const mean = numbers(7, "a").reduce((sum, each) => sum + each, 0) / 4000;
  assert.ok(Math.abs(mean - 0.5) < 0.02, `${mean}`);
});

test("a commit is durable when it is done; a crash before that loses all of it or nothing", () => {
  let lost = 0;
  let kept = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const disk = new Disk(createRandom(seed));
    disk.begin(new Map([["a", 1]]));
    disk.finish();
    disk.begin(
      new Map<string, number | null>([
        ["a", null],
        ["b", 2],
        ["c", 3],
      ]),
    );
    disk.crash();
    const content = JSON.stringify([...disk.load()]);
    if (content === '[["a",1]]') lost += 1;
    if (content === '[["b",2],["c",3]]') kept += 1;
  }
  assert.equal(lost + kept, 40);
  assert.ok(lost > 5 && kept > 5, `${lost} lost, ${kept} kept`);
});

test("a full or failing disk refuses a commit and keeps what it had", () => {
  const disk = new Disk(createRandom(1));
  disk.begin(new Map([["a", 1]]));
  disk.finish();
  disk.health = "full";
  assert.equal(disk.begin(new Map([["a", 2]])), null);
  assert.equal(disk.begin(new Map()), 0, "nothing to write needs no room");
  assert.deepEqual([...disk.load()], [["a", 1]]);
});

interface Heard {
  readonly inputs: Map<string, NodeInput[]>;
  readonly clock: Clock;
  readonly network: Network;
  readonly datagrams: string[];
}
/** @param named of `a` and `b` nobody counts on the silence */
const twoProcesses = (seed: number, named: readonly [string, string] = ["a", "b"]): Heard => {
  const clock = new Clock();
  const network = new Network(clock, createRandom(seed));
  const inputs = new Map<string, NodeInput[]>();
  const datagrams: string[] = [];
  for (const [index, name] of named.entries()) {
    const list: NodeInput[] = [];
    inputs.set(name, list);
    network.attach({
      name: peerName(name),
      machine: index === 0 ? "a" : "b",
      input: (input) => void list.push(input),
      datagram: (bytes) => void datagrams.push(String(bytes[0])),
      pausedSinceMs: () => null,
    });
  }
  return { inputs, clock, network, datagrams };
};
const runUntil = (clock: Clock, ms: number): void => {
  while (clock.nextMs !== null && clock.nextMs <= ms) clock.step();
};
const kinds = (list: readonly NodeInput[] | undefined): readonly string[] => (list ?? []).map(({ kind }) => kind);
const sequence = (list: readonly NodeInput[] | undefined): readonly unknown[] =>
  (list ?? []).flatMap((input) => (input.kind === "frame" ? [(input.frame as { readonly seq: number }).seq] : []));

test("frames arrive in their order, however many packets are lost", () => {
  const { inputs, clock, network } = twoProcesses(3);
  network.connect(peerName("a"), peerName("b"));
  runUntil(clock, 100);
  network.quality = { ...goodQuality, loss: 0.4 };
  for (let seq = 1; seq <= 50; seq += 1) network.send(peerName("a"), 1, [{ frame: "ack", seq }]);
  runUntil(clock, 60_000);
  assert.deepEqual(
    sequence(inputs.get("b")),
    Array.from({ length: 50 }, (_, index) => index + 1),
  );
});

test("what is cut in one direction breaks when the other end has heard nothing for too long, and is dialled again", () => {
  const { inputs, clock, network } = twoProcesses(3, ["host.a", "host.b"]);
  network.connect(peerName("host.a"), peerName("host.b"));
  const [a, b] = [inputs.get("host.a"), inputs.get("host.b")];
  runUntil(clock, 100);
  network.cut("a", "b");
  network.send(peerName("host.a"), 1, [{ frame: "ack", seq: 1 }]);
  runUntil(clock, 7000);
  assert.ok(!kinds(b).includes("disconnected") && sequence(b).length === 0);
  runUntil(clock, 11_000);
  assert.ok(kinds(b).includes("disconnected") && kinds(a).includes("disconnected"));
  runUntil(clock, 30_000);
  assert.ok(kinds(a).includes("unreachable"));
  network.mend("a", "b");
  runUntil(clock, 60_000);
  assert.equal(kinds(b).filter((kind) => kind === "connected").length, 2);
});

test("where nobody counts on silence an end that says something gives up after ten seconds, and another within twenty", () => {
  const seconds = (says: boolean): readonly number[] =>
    Array.from({ length: 50 }, (_, seed) => {
      const { inputs, clock, network } = twoProcesses(seed);
      network.connect(peerName("a"), peerName("b"));
      runUntil(clock, 100);
      for (const [from, to] of [
        ["a", "b"],
        ["b", "a"],
      ] as const)
        network.cut(from, to);
      if (says) network.send(peerName("a"), 1, [{ frame: "ack", seq: 1 }]);
      for (let s = 1; s <= 30; s += 1) {
        runUntil(clock, 100 + 1000 * s);
        if (kinds(inputs.get("a")).includes("disconnected")) return s;
      }
      return 99;
    });
  const [said, quiet] = [seconds(true), seconds(false)];
  assert.ok(Math.min(...said) >= 8 && Math.max(...said) <= 10, `${said}`);
  assert.ok(Math.min(...quiet) >= 8 && Math.max(...quiet) <= 20 && Math.max(...quiet) > 15, `${quiet}`);
});

test("a cut that is mended in time delays what was sent and loses nothing", () => {
  const { inputs, clock, network } = twoProcesses(3);
  network.connect(peerName("a"), peerName("b"));
  runUntil(clock, 100);
  network.cut("a", "b");
  network.send(peerName("a"), 1, [{ frame: "ack", seq: 1 }]);
  runUntil(clock, 4000);
  network.mend("a", "b");
  runUntil(clock, 30_000);
  assert.deepEqual(sequence(inputs.get("b")), [1]);
  assert.ok(!kinds(inputs.get("a")).includes("disconnected"));
});

test("datagrams are lost, doubled and out of order", () => {
  const { clock, network, datagrams } = twoProcesses(5);
  network.quality = { latencyMs: 1, jitterMs: 50, loss: 0.2, duplication: 0.2 };
  for (let number = 0; number < 200; number += 1)
    network.sendDatagram(peerName("a"), peerName("b"), new Uint8Array([number]));
  runUntil(clock, 1000);
  const different = new Set(datagrams).size;
  assert.ok(different < 190 && different > 130, `${different} of 200 arrived`);
  assert.ok(datagrams.length > different, "some came twice");
  assert.notDeepEqual(
    datagrams,
    datagrams.toSorted((a, b) => Number(a) - Number(b)),
  );
});
