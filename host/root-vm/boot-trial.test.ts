import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { DesiredDisk, DesiredVm } from "../../core/documents/vocabulary.ts";
import { uid } from "../../model/cell/identifiers.ts";
import { askedOf, desiredVm, policy, Room } from "../service/manager.testing.ts";
import type { VmRecord } from "../vm-record.ts";

const diskOf = (name: string): DesiredDisk => ({
  connection: uid(name),
  busType: "virtio",
  busNumber: null,
  busSlot: null,
  bootOrder: 0,
  readOnly: false,
  attachment: { volume: uid(`${name}-volume`), epoch: 1, sizeMiB: 1, layers: [], boot: null },
});
const [old, fresh, data] = [diskOf("old"), diskOf("new"), { ...diskOf("data"), bootOrder: 1 }];
const withinMs = 60_000;
const own = (disks: readonly DesiredDisk[], trial?: DesiredDisk): DesiredVm =>
  desiredVm("a", 1, {
    restart: "host",
    disks,
    liveness: { protocol: "icmp", port: null, intervalMs: 500, failures: 3 },
    ...(trial === undefined ? {} : { trial: { disk: trial, replaces: uid("old"), withinMs } }),
  });

/** A host with the VM of a root controller, which runs from `old`. */
class Own extends Room {
  constructor() {
    super();
    this.found();
    this.desire("policy/shop", policy());
    this.desire("vm/a", own([old, data]));
    this.rest();
  }
  rest(): void {
    this.settle();
    this.input({ kind: "timer", name: "retry/a" });
    this.settle();
  }
  /** What its machine was started from. */
  boots(): string | undefined {
    const record = this.durable.get("machine/a") as unknown as VmRecord | undefined;
    return this.machines.has(uid("a")) ? record?.vm.disks[0]?.connection : undefined;
  }
  end(detail = "no root file system"): void {
    this.machines.delete(uid("a"));
    this.ask({ kind: "machine-ended", end: { vm: uid("a"), incarnation: 1, ended: "crashed", detail } });
    this.rest();
  }
  late(): void {
    this.input({ kind: "timer", name: "trial/a" });
    this.rest();
  }
  answers(): void {
    this.ask({
      kind: "health",
      change: { vm: uid("a"), incarnation: 1, asked: askedOf("a"), health: "answering", reason: null },
    });
  }
  again(): void {
    this.boot();
    this.found();
    this.rest();
  }
}

test("the same incarnation starts from the disk on trial, and goes on with it once it is taken over", () => {
  const room = new Own();
  assert.equal(room.boots(), "old");
  assert.equal(room.vm("a")?.trial, undefined);
  room.log.length = 0;
  room.desire("vm/a", own([old, data], fresh));
  assert.deepEqual(room.vm("a")?.trial, { connection: "new", boots: false, refused: null });
  room.rest();
  assert.deepEqual(room.log, ["stop-machine a", "release-disks a", "start-machine a"]);
  assert.equal(room.boots(), "new");
  assert.deepEqual(room.vm("a")?.trial, { connection: "new", boots: true, refused: null });
  room.log.length = 0;
  room.desire("vm/a", own([fresh, data]));
  room.rest();
  assert.deepEqual(room.log, [], "it runs from there already");
  assert.equal(room.vm("a")?.trial, undefined);
  room.late();
  room.again();
  room.end();
  assert.equal(room.boots(), "new");
});

test("it goes back when the machine has ended twice, and stays there", () => {
  const room = new Own();
  room.desire("vm/a", own([old, data], fresh));
  room.rest();
  room.end();
  assert.equal(room.boots(), "new", "it may have ended for another reason");
  room.end();
  assert.equal(room.boots(), "old");
  const refused = "its machine ended 2 times: no root file system";
  assert.deepEqual(room.vm("a")?.trial, { connection: "new", boots: false, refused });
  room.end("killed");
  room.again();
  assert.equal(room.boots(), "old");
  assert.deepEqual(room.vm("a")?.trial, { connection: "new", boots: false, refused });
  room.desire("vm/a", own([old, data]));
  room.rest();
  assert.deepEqual([room.boots(), room.vm("a")?.trial], ["old", undefined]);
  room.desire("vm/a", own([old, data], diskOf("better")));
  room.rest();
  assert.equal(room.boots(), "better", "another one is another trial");
});

test("it goes back when nobody took it over in time, whether it answers or not, and when it cannot be started", () => {
  for (const answers of [true, false]) {
    const room = new Own();
    room.desire("vm/a", own([old, data], fresh));
    room.rest();
    if (answers) room.answers();
    room.late();
    assert.equal(room.boots(), "old");
    const why = answers ? /answered its probes, but the controller/ : /did not answer its liveness probes/;
    assert.match(room.vm("a")?.trial?.refused ?? "", why);
    room.late();
    assert.equal(room.boots(), "old");
  }
  const room = new Own();
  room.fails = (action) =>
    action.kind === "start-machine" && action.desired.disks.includes(fresh) ? "no such export" : null;
  room.desire("vm/a", own([old, data], fresh));
  for (let round = 0; round < 4; round += 1) room.rest();
  assert.equal(room.boots(), "old");
  assert.match(room.vm("a")?.trial?.refused ?? "", /no such export/);
});

test("silence of the one on trial counts as an end; a trial that is taken back ends at once", () => {
  const room = new Own();
  room.desire("vm/a", own([old, data], fresh));
  room.rest();
  for (let round = 0; round < 2; round += 1) {
    room.answers();
    room.ask({
      kind: "health",
      change: { vm: uid("a"), incarnation: 1, asked: askedOf("a"), health: "silent", reason: "hangs" },
    });
    room.rest();
  }
  assert.equal(room.boots(), "old");
  assert.match(room.vm("a")?.trial?.refused ?? "", /ended 2 times: hangs/);
  const other = new Own();
  other.desire("vm/a", own([old, data], fresh));
  other.rest();
  other.desire("vm/a", own([old, data]));
  assert.deepEqual(other.vm("a")?.trial, { connection: "new", boots: true, refused: null }, "still in use");
  other.rest();
  assert.deepEqual([other.boots(), other.vm("a")?.trial], ["old", undefined]);
});

test("other VMs are not tried: their controllers start them again", () => {
  const room = new Own();
  const other = desiredVm("b", 1, { disks: [old, data], trial: { disk: fresh, replaces: uid("old"), withinMs } });
  room.desire("vm/b", other);
  room.rest();
  const record = room.durable.get("machine/b") as unknown as VmRecord;
  assert.deepEqual(
    record.vm.disks.map(({ connection }) => connection),
    ["old", "data"],
  );
  assert.equal(room.vm("b")?.trial, undefined);
});

test("whatever happens to it: it runs from what is desired, or from the old one, and never again from what was refused", () => {
  const happenings = fc.array(
    fc.constantFrom(
      "end" as const,
      "late" as const,
      "answers" as const,
      "again" as const,
      "take" as const,
      "give up" as const,
      "try" as const,
    ),
    { maxLength: 20 },
  );
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  let refusals = 0;
  const property = fc.property(happenings, (list) => {
    const room = new Own();
    let now = old;
    let trial: DesiredDisk | undefined;
    let count = 0;
    for (const happening of list) {
      if (happening === "try" && trial === undefined) {
        count += 1;
        trial = diskOf(`new${count}`);
        room.desire("vm/a", {
          ...own([now, data]),
          trial: { disk: trial, replaces: now.connection, withinMs },
        });
      } else if (happening === "take" && trial !== undefined && room.boots() === trial.connection) {
        now = trial;
        trial = undefined;
        room.desire("vm/a", own([now, data]));
      } else if (happening === "give up" && trial !== undefined) {
        trial = undefined;
        room.desire("vm/a", own([now, data]));
      } else if (happening === "end") room.end();
      else if (happening === "late") room.late();
      else if (happening === "answers") room.answers();
      else if (happening === "again") room.again();
      room.rest();
      const refused = typeof room.vm("a")?.trial?.refused === "string";
      if (refused) refusals += 1;
      assert.equal(room.boots(), trial === undefined || refused ? now.connection : trial.connection);
    }
  });
  fc.assert(property, { seed, numRuns: 200 });
  assert.ok(refusals > 20, String(refusals));
});
