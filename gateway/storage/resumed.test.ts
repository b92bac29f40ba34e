import assert from "node:assert/strict";
import { createHash, randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { below } from "../../core/random.ts";
import {
  type Rest,
  restAsWritten,
  type Upload,
  type UploadPart,
} from "../../model/contract/tenancy/volumes/uploads.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { UploadScene } from "./uploads.testing.ts";

/** Uploads that break off and go on, at the gateway before a real store of images. Needs root. */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";
const MiB = 2 ** 20;
const keptMs = 60_000;
let scene: UploadScene;
let port = 0;
before(async () => {
  if (skip !== false) return;
  scene = await UploadScene.make("resumed", {
    uploadMiB: 32,
    parts: { keptMs, wholeMs: 2 * keptMs, ofAccount: 2, inAll: 8 },
  });
  port = await scene.door({});
});
after(async () => {
  if (skip === false) await scene.end();
});

const idOf = (): string => randomBytes(16).toString("hex");
const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const bytes = randomBytes(5 * MiB);
const staged = (): readonly string[] => readdirSync(join(scene.directory, "image-staging"));
const kept = (): readonly string[] => readdirSync(join(scene.directory, "images"));
const nothingStays = (): void => assert.deepEqual([staged(), kept()], [[], []]);

interface Said<T> {
  readonly status: number;
  readonly said: string;
  readonly json: T;
}
/** @param breaksAt so many octets are sent, and then the connection is cut; nobody answers then */
async function ask<T = Upload>(
  who: string,
  method: string,
  path: string,
  { body, rest, breaksAt }: { readonly body?: Buffer; readonly rest?: Rest | string; readonly breaksAt?: number } = {},
): Promise<Said<T>> {
  const outgoing = request({ host: "127.0.0.1", port, method, path, agent: false });
  outgoing.setHeader("connection", "keep-alive");
  outgoing.setHeader("authorization", `Bearer ${who}`);
  if (rest !== undefined) outgoing.setHeader("content-range", typeof rest === "string" ? rest : restAsWritten(rest));
  if (body !== undefined) outgoing.setHeader("content-length", body.length);
  outgoing.on("error", () => undefined);
  if (breaksAt !== undefined) {
    outgoing.write(body?.subarray(0, breaksAt), () => outgoing.destroy());
    await new Promise((resolve) => outgoing.once("close", resolve));
    return { status: 0, said: "", json: {} as T };
  }
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const said = await text(response);
  outgoing.destroy();
  return { status: response.statusCode ?? 0, said, json: JSON.parse(said) as T };
}
const put = (
  who: string,
  id: string,
  sent: Buffer,
  more: { readonly from?: number; readonly breaksAt?: number } = {},
) => {
  const { from = 0, breaksAt } = more;
  return ask(who, "PUT", `/uploads/${id}?format=raw&sha256=${sha256Of(sent)}`, {
    body: sent.subarray(from),
    ...(from > 0 ? { rest: { from, length: sent.length } } : {}),
    ...(breaksAt === undefined ? {} : { breaksAt }),
  });
};
/** Once everybody knows that it broke off. */
async function read(who: string, id: string): Promise<Said<UploadPart>> {
  let answer: Said<UploadPart> | undefined;
  await eventually("it is known that it broke off", async () => {
    answer = await ask<UploadPart>(who, "GET", `/uploads/${id}`);
    return !answer.said.includes("image/under-way");
  });
  return answer ?? assert.fail();
}
async function broken(who: string, id: string, breaksAt = 3 * MiB): Promise<number> {
  await put(who, id, bytes, { breaksAt });
  const { status, said, json } = await read(who, id);
  assert.equal(status, 200, said);
  return json.offset;
}
const gone = async (who: string, id: string): Promise<void> =>
  assert.equal((await ask(who, "DELETE", `/uploads/${id}`)).status, 200);

describe("uploads that broke off", { skip }, () => {
  test("what came is kept for its account alone, and with the rest of it it is the whole", async () => {
    const id = idOf();
    const offset = await broken("ann", id);
    assert.ok(offset >= MiB && offset <= 3 * MiB, `${offset}`);
    const { json } = await read("ann", id);
    assert.deepEqual(json, {
      id,
      format: "raw",
      length: bytes.length,
      offset,
      sha256: sha256Of(bytes.subarray(0, offset)),
    });
    for (const who of ["bob", "ops", "operator"]) {
      assert.equal((await read(who, id)).status, 404, who);
      const taken = await put(who, id, bytes, { from: offset });
      assert.deepEqual([taken.status, /image\/offset/.test(taken.said)], [409, true], taken.said);
      assert.equal((await ask(who, "DELETE", `/uploads/${id}`)).status, 404, who);
    }
    assert.equal((await read("amy", id)).status, 403);
    assert.deepEqual(kept(), []);
    const made = await put("al", id, bytes, { from: offset });
    assert.deepEqual([made.status, made.json.sha256], [200, sha256Of(bytes)], made.said);
    assert.deepEqual(scene.records.splice(0), [`al@ROOT/acme putUpload ${made.json.image}`]);
    assert.equal((await read("ann", id)).status, 404, "it is there as a whole");
    assert.deepEqual(staged(), []);
    await gone("ann", id);
    nothingStays();
  });

  test("a rest that is not that of what is there is refused, and the right one is taken afterwards", async () => {
    const id = idOf();
    const offset = await broken("ann", id);
    const length = bytes.length;
    const send = (rest: Rest | string, body: Buffer, format = "raw") =>
      ask("ann", "PUT", `/uploads/${id}?format=${format}`, { rest, body });
    for (const [from, format, whole] of [
      [offset - 1, "raw", length],
      [offset + 1, "raw", length],
      [offset, "qcow2", length],
      [offset, "raw", length + 1],
    ] as const) {
      const said = await send({ from, length: whole }, Buffer.alloc(whole - from), format);
      assert.deepEqual(
        [said.status, said.said.includes("image/offset")],
        [409, true],
        `${from} ${format} ${said.said}`,
      );
    }
    for (const odd of [
      `bytes ${offset}-${length - 2}/${length}`,
      `bytes ${offset}-${length - 1}/*`,
      `bytes */${length}`,
      `octets ${offset}-${length - 1}/${length}`,
      `bytes ${length}-${length - 1}/${length}`,
      `bytes ${offset + 5}-${length - 1}/${length}`,
    ])
      assert.equal((await send(odd, bytes.subarray(offset))).status, 400, odd);
    assert.equal((await read("ann", id)).json.offset, offset);
    assert.equal((await put("ann", id, bytes, { from: offset })).status, 200);
    await gone("ann", id);
    nothingStays();
  });

  test("a storage server of the version before is sent no rest, which it would take for the whole", async (t) => {
    scene.knowsParts = false;
    t.after(() => {
      scene.knowsParts = true;
    });
    const [id, length] = [idOf(), bytes.length];
    const rest = { from: 3 * MiB, length };
    const taken = await ask("ann", "PUT", `/uploads/${id}?format=raw`, { rest, body: bytes.subarray(rest.from) });
    assert.deepEqual([taken.status, taken.said.includes("image/offset")], [409, true], taken.said);
    assert.equal((await read("ann", id)).status, 404);
    nothingStays();
    assert.equal((await put("ann", id, bytes)).status, 200);
    await gone("ann", id);
    nothingStays();
  });

  test("of other bytes than were announced nothing stays, though they came in parts", async () => {
    const id = idOf();
    const offset = await broken("ann", id);
    const other = Buffer.concat([bytes.subarray(0, offset), Buffer.alloc(bytes.length - offset, 1)]);
    const said = await ask("ann", "PUT", `/uploads/${id}?format=raw&sha256=${sha256Of(bytes)}`, {
      rest: { from: offset, length: bytes.length },
      body: other.subarray(offset),
    });
    assert.match(said.said, new RegExp(`upload/sha256.*${sha256Of(other)}`));
    assert.equal((await read("ann", id)).status, 404);
    nothingStays();
  });

  test("an account has two of them and the older goes; one is left by who begins anew, or takes it away", async () => {
    const [first, second, third] = [idOf(), idOf(), idOf()];
    for (const id of [first, second]) await broken("ann", id);
    const his = idOf();
    await broken("bob", his);
    await broken("al", third);
    assert.equal((await read("ann", first)).status, 404);
    for (const [who, id] of [
      ["ann", second],
      ["ann", third],
      ["bob", his],
    ] as const)
      assert.equal((await read(who, id)).status, 200);
    assert.equal(staged().length, 3);
    await gone("ann", second);
    assert.equal((await read("ann", second)).status, 404);
    assert.equal(staged().length, 2);
    // From its beginning, whatever was there.
    assert.equal((await put("ann", third, bytes)).status, 200);
    await gone("ann", third);
    await gone("bob", his);
    nothingStays();
  });

  test("less than a MiB is not kept, and is sent again", async () => {
    const id = idOf();
    assert.equal((await put("ann", id, bytes, { breaksAt: MiB / 2 })).status, 0);
    assert.equal((await read("ann", id)).status, 404);
    await eventually("it is gone", () => staged().length === 0);
    assert.equal((await put("ann", id, bytes)).status, 200);
    await gone("ann", id);
  });

  test("it breaks at any place, however often, and what comes of it is what was sent", async (context) => {
    const seed = randomInt(2 ** 31);
    context.diagnostic(`seed ${seed}`);
    const random = { random: seed };
    for (let round = 0; round < 4; round += 1) {
      const id = idOf();
      const sent = randomBytes(MiB + below(random, 8 * MiB));
      let [from, breaks] = [0, 0];
      let made: Said<Upload> | null = null;
      while (made === null) {
        const left = sent.length - from;
        if (breaks < 8 && below(random, 6) > 0) {
          breaks += 1;
          await put("ann", id, sent, { from, breaksAt: below(random, left) });
          const { status, json, said } = await read("ann", id);
          assert.ok(status === 200 || (status === 404 && from === 0), `seed ${seed}: ${said}`);
          const next = status === 200 ? json.offset : 0;
          assert.ok(next >= from, `seed ${seed}: what was there is there`);
          from = next;
        } else made = await put("ann", id, sent, { from });
      }
      assert.deepEqual([made.status, made.json.sha256], [200, sha256Of(sent)], `seed ${seed}: ${made.said}`);
      await gone("ann", id);
    }
    nothingStays();
  });
});
