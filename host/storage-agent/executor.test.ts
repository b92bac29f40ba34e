import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Mark } from "../../core/documents/bin.ts";
import type { AgentReport, VolumeWork } from "../../core/storage/agent/work.ts";
import { hostName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { Executor } from "./executor.ts";
import { type AgentMachinery, ExportNotGone, FileMissing, type RunningExport, type ServedExport } from "./machinery.ts";

const volume = uid("c1-1");
const access = { exportName: "x1", pskIdentity: "i1", pskHex: "ab", port: 1 };
const found: RunningExport = { volume, epoch: 3, process: { pid: 7, startTime: "1" } };
const exported: VolumeWork = {
  volume,
  file: null,
  fence: null,
  export: { epoch: 3, writable: true, sizeMiB: null, access },
};
const fenced: VolumeWork = { volume, file: null, fence: { epoch: 3 }, export: null };

/** A server on which a daemon's start fails and the daemon stays, and an agent that says what is to be done. */
class Room {
  readonly reports: AgentReport[] = [];
  readonly timers = new Set<() => void>();
  stuck = true;
  alive = false;
  full = false;
  adoption = false;
  isThere = true;
  /** Files that were made. */
  made = 0;
  /** What its process has read and written. */
  moved: number | null = 1_000_000;
  /** Whom strangers were put out for, last. */
  guarded: readonly ServedExport[] = [];
  /** What the agent wants beside the files, and what is there. */
  next: Mark | null = null;
  mark: Mark | null = null;
  #version = 0;
  #ask: ((answer: Json) => void) | null = null;
  readonly executor = new Executor({
    server: "s1",
    machinery: this.#machinery(),
    request: (report) => this.#request(report),
    log: () => undefined,
  });

  async want(work: VolumeWork): Promise<void> {
    this.#version += 1;
    this.#ask?.({ version: this.#version, work: [work] } as unknown as Json);
    await this.rest();
  }
  /** The server is older than others know it. */
  async hold(): Promise<void> {
    this.#version += 1;
    this.#ask?.({ version: this.#version, work: [], hold: true });
    await this.rest();
  }
  /** Until nothing moves any more without a timer. */
  async rest(): Promise<void> {
    for (let index = 0; index < 50; index += 1) await turn();
  }
  async time(): Promise<void> {
    for (const run of [...this.timers]) {
      this.timers.delete(run);
      run();
    }
    await this.rest();
  }
  has(kind: AgentReport["kind"]): boolean {
    return this.reports.some((report) => report.kind === kind);
  }

  #request(report: AgentReport): Promise<Json> {
    if (report.kind === "work") return new Promise((resolve) => (this.#ask = resolve));
    this.reports.push(report);
    return Promise.resolve({ ok: true, empty: [], kept: [], mark: this.next, adopted: [] } as unknown as Json);
  }
  #machinery(): AgentMachinery {
    const nothing = async (): Promise<never> => assert.fail("not asked for here");
    return {
      prepare: async () => undefined,
      drawStart: () => "start",
      readMark: async () => null,
      writeMark: async (mark) => {
        if (this.full) throw new Error("ENOSPC: no space left on device");
        this.mark = mark;
      },
      takeAdoption: async () => {
        const asked = this.adoption;
        this.adoption = false;
        return asked;
      },
      create: async () => {
        if (this.full) throw new Error("ENOSPC: no space left on device");
        this.made += 1;
        return { sizeMiB: 1, roomMiB: 4, boot: null, untouched: true };
      },
      ready: async () => {
        if (!this.isThere) throw new FileMissing("its file is gone");
        return { sizeMiB: 1, roomMiB: 4 };
      },
      remove: nothing,
      bin: async () => [],
      empty: nothing,
      usage: async () => [],
      space: async () => ({ totalMiB: 1, freeMiB: 1 }),
      images: async () => [],
      findExports: () => [],
      startExport: async () => {
        if (!this.stuck) return found;
        this.alive = true;
        throw new ExportNotGone("it did not start", found);
      },
      endExport: async () => {
        if (this.stuck) throw new Error("process 7 cannot be ended");
        this.alive = false;
      },
      isServing: async () => true,
      isAlive: () => this.alive,
      moved: () => this.moved,
      putOutStrangers: async (exports) => {
        this.guarded = exports;
        return new Map();
      },
      drawSecrets: () => assert.fail("not asked for here"),
      after: (_ms, run) => {
        this.timers.add(run);
        return () => this.timers.delete(run);
      },
    };
  }
}

test("a fence is confirmed only when a daemon whose start had failed is confirmed gone", async () => {
  const room = new Room();
  await room.executor.start();
  await room.rest();
  await room.want(exported);
  assert.ok(room.has("failed"));
  await room.want(fenced);
  await room.time();
  assert.equal(room.has("fenced"), false, "its late write may still land");
  room.stuck = false;
  await room.time();
  assert.equal(room.alive, false);
  assert.ok(room.has("fenced"));
  await room.executor.close();
});

test("a daemon that was killed is ended before another is started in its place, and never adopted", async () => {
  const room = new Room();
  await room.executor.start();
  await room.rest();
  await room.want(exported);
  await room.time();
  assert.equal(room.has("exported"), false);
  room.stuck = false;
  await room.time();
  assert.equal(room.alive, false, "ended, and the next one started");
  assert.ok(room.has("exported"));
  await room.executor.close();
});

test("the agent hears with each minute what really is beside the files", async () => {
  const room = new Room();
  await room.executor.start();
  room.full = true;
  room.next = { start: "start", tick: 1 };
  await room.time();
  await room.time();
  room.full = false;
  await room.time();
  await room.time();
  assert.deepEqual(room.mark, room.next);
  const written = room.reports.flatMap((report) => (report.kind === "tick" ? [report.written] : []));
  assert.deepEqual(written, [null, null, null, null, room.next], "the first one at once, since there is no mark yet");
  await room.executor.close();
});

test("root of the machine adopts without a gateway, once for each time it asks", async () => {
  const room = new Room();
  await room.executor.start();
  await room.time();
  assert.equal(room.has("adopt"), false);
  room.adoption = true;
  await room.time();
  await room.time();
  assert.equal(room.reports.filter(({ kind }) => kind === "adopt").length, 1);
  await room.executor.close();
});

test("strangers are put out of what is served, for the host that it is for", async () => {
  const room = new Room();
  room.stuck = false;
  await room.executor.start();
  assert.ok(exported.export !== null);
  await room.want({ ...exported, export: { ...exported.export, holder: hostName("h1") } });
  await room.time();
  const port = exported.export.access?.port;
  assert.deepEqual(room.guarded, [{ volume, writable: true, port, holder: "h1" }]);
  await room.want(fenced);
  await room.time();
  assert.deepEqual(room.guarded, []);
  await room.executor.close();
});

test("an export that somebody asks about is looked at, and what counts is what it has moved since the look before", async () => {
  const room = new Room();
  room.stuck = false;
  room.alive = true;
  await room.executor.start();
  assert.ok(exported.export !== null);
  const { epoch } = exported.export;
  const seen = (): readonly boolean[] =>
    room.reports.flatMap((report) => (report.kind === "looked" ? report.exports.map(({ served }) => served) : []));
  const look = async (moved: number | null): Promise<void> => {
    room.moved = moved;
    await room.time();
  };
  await room.want(exported);
  await look(1_000_000);
  await look(2_000_000);
  assert.deepEqual(seen(), [], "nobody asks");
  const counted = { ...exported, export: { ...exported.export, counted: true as const } };
  room.moved = 3_000_000;
  await room.want(counted);
  await look(3_000_511);
  await look(3_001_023);
  await look(3_001_023);
  assert.deepEqual(
    seen(),
    [false, true, false],
    "a request is about a sector at least; what it moved before is no news",
  );
  const [report] = room.reports.filter((each) => each.kind === "looked");
  assert.deepEqual(report, { kind: "looked", exports: [{ volume, epoch, served: false }] });
  await look(null);
  await look(9_000_000);
  assert.equal(seen().length, 3, "after a look that nothing came of, the next one is the first");
  await room.want(exported);
  await look(9_500_000);
  room.moved = 9_900_000;
  await room.want(counted);
  await look(9_900_000);
  assert.deepEqual(seen().slice(3), [false], "so it is where nobody has asked for a while");
  await room.executor.close();
});

test("nothing is made in place of a file that is to be found", async () => {
  const room = new Room();
  room.isThere = false;
  await room.executor.start();
  await room.want({
    volume: exported.volume,
    fence: null,
    export: null,
    file: { action: "create", source: { kind: "empty" }, sizeMiB: 1, found: true },
  });
  const failed = room.reports.flatMap((report) => (report.kind === "failed" ? [report] : []));
  assert.deepEqual(
    failed.map(({ reason, missing }) => [reason, missing]),
    [["its file is gone", true]],
  );
  await room.executor.close();
});

test("of a file that is to be seen it is said that it is there, or that it is not", async () => {
  const room = new Room();
  await room.executor.start();
  await room.want({ volume, fence: null, export: null, file: { action: "find" } });
  const found = { kind: "found", volume, sizeMiB: 1, roomMiB: 4 } as const;
  assert.deepEqual(room.reports.at(-1), found);
  room.isThere = false;
  await room.want({ volume, fence: { epoch: 1 }, export: null, file: { action: "find" } });
  const last = room.reports.at(-1);
  assert.ok(last?.kind === "failed" && last.missing === true && last.about === "file");
  await room.executor.close();
});

test("a file whose making came due while the server was held is made once it is not", async () => {
  const room = new Room();
  const work: VolumeWork = {
    volume,
    fence: null,
    export: null,
    file: { action: "create", source: { kind: "empty" }, sizeMiB: 64 },
  };
  await room.executor.start();
  await room.rest();
  room.full = true;
  await room.want(work);
  assert.ok(room.has("failed"));
  await room.hold();
  room.full = false;
  await room.time();
  assert.equal(room.made, 0, "nothing is touched meanwhile");
  await room.want(work);
  assert.equal(room.made, 1);
  assert.ok(room.has("created"));
  await room.executor.close();
});
