import assert from "node:assert/strict";
import { test } from "node:test";
import { bring, mostTries, type RefusedUpload, type Wires } from "./resuming.ts";
import type { Upload } from "./uploads.ts";

const refused = (status: number, code: string): Error => Object.assign(new Error(code), { status, code });
const broken = (): Error => refused(0, "unreachable");
const upload: Upload = { id: "0".repeat(32), sha256: "", sizeMiB: 1, image: "" };
const bytes = 100;

/** A gateway that keeps what came, and a way to it that breaks as it is told. */
class Far {
  kept = 0;
  /** How far each request gets, in octets of the whole; then it goes through. */
  readonly breaks: number[];
  readonly asked: string[] = [];
  readonly pauses: number[] = [];
  constructor(...breaks: readonly number[]) {
    this.breaks = [...breaks];
  }
  wires(change: Partial<Wires> = {}): Wires {
    return {
      send: async (from, told) => {
        this.asked.push(`from ${from}`);
        if (from !== 0 && from !== this.kept) throw refused(409, "image/offset");
        const until = this.breaks.shift();
        told(until ?? bytes);
        this.kept = until ?? bytes;
        if (until !== undefined) throw broken();
        return upload;
      },
      whole: async () => (this.kept === bytes ? upload : null),
      part: async () => {
        if (this.kept === 0) throw refused(404, "not-found");
        return { id: upload.id, format: "raw", length: bytes, offset: this.kept, sha256: "" };
      },
      readable: async () => undefined,
      pause: async (ms) => void this.pauses.push(ms),
      refusalIn: (error) => {
        const { status = -1, code = "" } = error as Partial<RefusedUpload>;
        return status === -1 ? null : { status, code };
      },
      ...change,
    };
  }
  bring(change?: Partial<Wires>, begun = false) {
    const [told, broke, why]: [number[], number[], unknown[]] = [[], [], []];
    const done = bring(this.wires(change), {
      bytes,
      format: "raw",
      begun,
      told: (sent) => void told.push(sent),
      goesOn: (from, because) => {
        broke.push(from);
        why.push(because);
      },
    });
    return { done, told, broke, why };
  }
}

test("a file goes on where its connection broke, each time, and it is said from where", async () => {
  const far = new Far(40, 70);
  const { done, told, broke } = far.bring();
  assert.equal(await done, upload);
  assert.deepEqual(far.asked, ["from 0", "from 40", "from 70"]);
  assert.deepEqual(
    [broke, told],
    [
      [40, 70],
      [40, 40, 70, 70, 100],
    ],
  );
});

test("whose answer was lost is there, and nothing of it is sent again", async () => {
  const far = new Far(100);
  assert.equal(await far.bring().done, upload);
  assert.deepEqual(far.asked, ["from 0"]);
});

test("of which nothing is kept, or another thing, is sent from its beginning", async () => {
  const far = new Far(40);
  const none = { part: () => Promise.reject(refused(404, "not-found")) };
  assert.equal(await far.bring(none).done, upload);
  assert.deepEqual(far.asked, ["from 0", "from 0"]);
  const other = new Far(40);
  const of = { format: "qcow2", length: bytes, offset: 40, id: upload.id, sha256: "" } as const;
  assert.equal(await other.bring({ part: async () => of }).done, upload);
  assert.deepEqual(other.asked, ["from 0", "from 0"]);
  const changed = new Far(40);
  const seen: number[] = [];
  const isBeginning: Wires["isBeginning"] = async ({ offset }) => {
    seen.push(offset);
    return false;
  };
  assert.equal(await changed.bring({ isBeginning }).done, upload);
  assert.deepEqual([changed.asked, seen], [["from 0", "from 0"], [40]]);
});

test("the gateway may not know yet that it broke off, or be gone for a while: it is asked again, at longer and longer pauses", async () => {
  const far = new Far(40);
  const { part } = far.wires();
  const first = [refused(409, "image/under-way"), broken(), refused(503, "image/unreachable"), refused(502, "")];
  const { done } = far.bring({
    part: async () => {
      const fault = first.shift();
      if (fault !== undefined) throw fault;
      return part();
    },
  });
  assert.equal(await done, upload);
  assert.deepEqual(far.asked, ["from 0", "from 40"]);
  assert.ok(far.pauses.length === 5 && far.pauses.every((ms, at) => ms > (far.pauses[at - 1] ?? 0)));
});

test("tries that bring it no further come to an end, with what broke it off", async () => {
  const far = new Far(...Array.from({ length: 4 * mostTries }, () => 40));
  await assert.rejects(far.bring().done, /unreachable/);
  assert.ok(far.pauses.length <= mostTries + 1, String(far.pauses.length));
  const silent = new Far(40);
  await assert.rejects(silent.bring({ whole: () => Promise.reject(broken()) }).done, /unreachable/);
  assert.equal(silent.pauses.length, mostTries);
});

test("what is refused for what it is, left, or never began is not sent again", async () => {
  for (const fault of [refused(400, "image/refused"), refused(0, "left"), refused(401, "unauthorized")]) {
    const far = new Far();
    let asked = 0;
    const send: Wires["send"] = async (_from, told) => {
      asked += 1;
      told(10);
      throw fault;
    };
    await assert.rejects(far.bring({ send }).done, fault);
    assert.deepEqual([asked, far.pauses], [1, []]);
  }
  const far = new Far();
  await assert.rejects(far.bring({ send: () => Promise.reject(broken()) }).done, /unreachable/);
  assert.deepEqual(far.pauses, [], "a gateway that does not answer at all is said at once");
});

test("one that was begun before goes on where it is, from its beginning where nothing is kept, and is not sent again where it is there", async () => {
  const begun = new Far();
  begun.kept = 40;
  const { done, told, broke, why } = begun.bring({}, true);
  assert.equal(await done, upload);
  assert.deepEqual(
    [begun.asked, broke, why, told, begun.pauses],
    [["from 40"], [40], [null], [40, 100], []],
    "and nobody waits first",
  );
  const none = new Far();
  assert.equal(await none.bring({}, true).done, upload);
  assert.deepEqual(none.asked, ["from 0"]);
  const there = new Far();
  there.kept = bytes;
  assert.equal(await there.bring({}, true).done, upload);
  assert.deepEqual(there.asked, []);
});

test("one that was begun before waits for a gateway that does not answer yet, and ends with its refusal", async () => {
  const far = new Far();
  far.kept = 40;
  const { part } = far.wires();
  const first = [broken(), refused(409, "image/under-way"), refused(429, "busy")];
  const waits: Wires["part"] = async () => {
    const fault = first.shift();
    if (fault !== undefined) throw fault;
    return part();
  };
  assert.equal(await far.bring({ part: waits }, true).done, upload);
  assert.deepEqual([far.asked, far.pauses.length], [["from 40"], 3]);
  const silent = new Far();
  await assert.rejects(silent.bring({ whole: () => Promise.reject(broken()) }, true).done, /unreachable/);
  assert.deepEqual([silent.asked, silent.pauses.length], [[], mostTries]);
  const refusing = new Far();
  await assert.rejects(
    refusing.bring({ whole: () => Promise.reject(refused(401, "unauthorized")) }, true).done,
    /unauthorized/,
  );
});

test("a file that has changed meanwhile, or that somebody leaves while it waits, ends it", async () => {
  const gone = new Error("the file has changed");
  await assert.rejects(new Far(40).bring({ readable: () => Promise.reject(gone) }).done, gone);
  const left = refused(0, "left");
  const far = new Far(40);
  await assert.rejects(far.bring({ pause: () => Promise.reject(left) }).done, left);
  assert.deepEqual(far.asked, ["from 0"]);
});
