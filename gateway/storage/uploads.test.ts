import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { makeGood, withBackingFile } from "../../host/storage-agent/images/image-hostile.testing.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Upload } from "../../model/contract/tenancy/volumes/uploads.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { UploadScene } from "./uploads.testing.ts";

/** Uploads of users at the gateway before a real store of images, with its walls. Needs root. */
const pace = { least: 1024, periodMs: 500 };
/** At a door of its own. So long for each octet that the shorter of two uploads has not as much time as the longer one, by far. */
const hurried = { leastMs: 1500, octetsPerS: 64 * 1024, mostMs: 3_600_000 };
let hurriedPort = 0;
const uploadMiB = 32;
let scene: UploadScene;
let directory = "";
let port = 0;
let good = "";
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

before(async () => {
  if (skip !== false) return;
  scene = await UploadScene.make("uploads", { uploadMiB });
  directory = scene.directory;
  port = await scene.door({ pace });
  hurriedPort = await scene.door({ pace: { least: 1, periodMs: 3_600_000 }, lasts: hurried });
  good = makeGood(join(scene.installation.directory, "good.qcow2"));
});
after(async () => {
  if (skip === false) await scene.end();
});

const idOf = (): string => randomBytes(16).toString("hex");
const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
async function ask(
  who: string,
  method: string,
  path: string,
  body?: Buffer | string,
): Promise<{ readonly status: number; readonly said: string; readonly json: Upload }> {
  const outgoing = request({ host: "127.0.0.1", port, method, path, agent: false });
  outgoing.setHeader("connection", "keep-alive");
  outgoing.setHeader("authorization", `Bearer ${who}`);
  if (body !== undefined) outgoing.setHeader("content-length", Buffer.byteLength(body));
  if (typeof body === "string") outgoing.setHeader("content-type", "application/json");
  outgoing.on("error", () => undefined);
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const said = await text(response);
  outgoing.destroy();
  return { status: response.statusCode ?? 0, said, json: JSON.parse(said) as Upload };
}
const listed = async (who: string): Promise<readonly string[]> =>
  ((await ask(who, "GET", "/uploads")).json as unknown as readonly Upload[]).map(({ id }) => id);
const staged = (): readonly string[] => readdirSync(join(directory, "image-staging"));
const kept = (): readonly string[] => readdirSync(join(directory, "images"));
const bytes = Buffer.alloc(2 ** 20, 7);
const put = (who: string, id: string, sent = bytes, more = `&sha256=${sha256Of(sent)}`) =>
  ask(who, "PUT", `/uploads/${id}?format=raw${more}`, sent);
const gone = async (who: string, ...ids: readonly string[]): Promise<void> => {
  for (const id of ids) assert.equal((await ask(who, "DELETE", `/uploads/${id}`)).status, 200);
};
const nothingStays = (): void => assert.deepEqual([staged(), kept()], [[], []]);

describe("uploads", { skip }, () => {
  test("bytes are there as an image of its account's own, which others neither see nor take away, until it is taken away", async () => {
    const id = idOf();
    const made = await put("ann", id);
    assert.equal(made.status, 200, made.said);
    assert.deepEqual([made.json.id, made.json.sha256, made.json.sizeMiB], [id, sha256Of(bytes), 1]);
    assert.match(made.json.image, new RegExp(`^upload-[0-9a-f]{16}-${id}$`));
    assert.deepEqual(kept(), [made.json.image]);
    for (const [who, sees] of [
      ["ann", [id]],
      ["al", [id]],
      ["amy", [id]],
      ["bob", []],
      ["operator", []],
    ] as const)
      assert.deepEqual(await listed(who), sees, who);
    for (const who of ["bob", "operator"])
      assert.match((await ask(who, "DELETE", `/uploads/${id}`)).said, /there is no upload/, who);
    assert.equal((await ask("amy", "DELETE", `/uploads/${id}`)).status, 403);
    assert.deepEqual(kept(), [made.json.image]);
    // The same number of another account is another upload.
    const other = await put("bob", id);
    assert.notEqual(other.json.image, made.json.image);
    await gone("al", id);
    assert.deepEqual(kept(), [other.json.image]);
    await gone("bob", id);
    nothingStays();
    assert.deepEqual(scene.records.splice(0), [
      `ann@ROOT/acme putUpload ${made.json.image}`,
      `bob@ROOT/acme putUpload ${other.json.image}`,
      `al@ROOT/acme removeUpload ${made.json.image}`,
      `bob@ROOT/acme removeUpload ${other.json.image}`,
    ]);
  });

  test("bytes with another SHA-256 leave nothing, and the right ones come under the same number; asked for again nothing is sent twice", async () => {
    const id = idOf();
    const wrong = await put("ann", id, bytes, `&sha256=${"0".repeat(64)}`);
    assert.equal(wrong.status, 400);
    assert.match(wrong.said, /upload\/sha256.*nothing of them is kept/);
    nothingStays();
    assert.equal((await put("ann", id)).status, 200);
    scene.records.length = 0;
    assert.equal((await put("ann", id)).status, 200);
    assert.equal((await put("ann", id, bytes, "")).status, 200, "the same bytes, though nobody said which");
    assert.deepEqual(scene.records.splice(0), [], "it is the same upload");
    const others = Buffer.alloc(2 ** 20, 8);
    const other = await put("ann", id, others);
    assert.equal(other.status, 409, other.said);
    assert.doesNotMatch(other.said, /upload-/);
    assert.deepEqual([staged(), kept().length], [[], 1]);
    await gone("ann", id);
  });

  test("under the number of one that is there its server alone is sent bytes, and it says whether they are the same", async () => {
    const id = idOf();
    assert.equal((await put("ann", id)).status, 200);
    const name = peerName("agent.s2");
    const { configuration: ofOther } = await scene.installation.configure(name, { change: { role: "agent" } });
    let sent = 0;
    const other = await servePeers(ofOther, ({ method, body }, response) => {
      if (method !== "GET") sent += 1;
      body.resume();
      response.end(method === "GET" ? "[]" : JSON.stringify({ id: "0", name: "", digest: "", sizeMiB: 1 }));
    });
    try {
      const again = await put("ann", id, bytes, "");
      assert.deepEqual([again.status, again.json.sha256, sent], [200, sha256Of(bytes), 0], again.said);
      for (let at = 0; at < 8; at += 1) {
        const others = await put("ann", id, Buffer.alloc(4096, at));
        assert.deepEqual([others.status, sent], [409, 0], others.said);
        assert.match(others.said, /with other content/);
      }
    } finally {
      await other.stop();
      await scene.installation.forget(name);
    }
    assert.deepEqual(await listed("ann"), [id]);
    await gone("ann", id);
  });

  test("what breaks off leaves nothing, and comes whole under the same number afterwards", async () => {
    const id = idOf();
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      `PUT /uploads/${id}?format=raw HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ann\r\ncontent-length: ${bytes.length}\r\n\r\n`,
    );
    socket.write(bytes.subarray(0, 2 ** 19));
    await eventually("its first bytes are at the server", () => staged().length === 1);
    const twice = await put("ann", id);
    assert.match(twice.said, /under way already/);
    socket.destroy();
    await eventually("nothing of it stays", () => staged().length === 0 && kept().length === 0);
    assert.equal((await put("ann", id)).status, 200);
    await gone("ann", id);
  });

  test("who sends slower than the pace is cut, and nothing stays; who keeps it is taken", async () => {
    const slow = connect(port, "127.0.0.1");
    slow.on("error", () => undefined).resume();
    let isCut = false;
    slow.once("close", () => {
      isCut = true;
    });
    slow.write(
      `PUT /uploads/${idOf()}?format=raw HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ann\r\ncontent-length: ${bytes.length}\r\n\r\nx`,
    );
    await eventually("who is slow is cut", () => isCut).finally(() => slow.destroy());
    await eventually("nothing of it stays", () => staged().length === 0);
    const id = idOf();
    const steady = request({ host: "127.0.0.1", port, method: "PUT", path: `/uploads/${id}?format=raw`, agent: false });
    steady.setHeader("authorization", "Bearer ann");
    steady.setHeader("content-length", 8 * 4096);
    const answered = once(steady, "response");
    for (let at = 0; at < 8; at += 1) {
      steady.write(Buffer.alloc(4096, 1));
      await new Promise((next) => setTimeout(next, pace.periodMs / 4));
    }
    steady.end();
    const [answer] = (await answered) as [IncomingMessage];
    assert.equal(answer.statusCode, 200, await text(answer));
    await gone("ann", id);
  });

  test("a hostile image is refused behind the walls of images, and a sound one of the same format is taken", async () => {
    const evil = readFileSync(withBackingFile(scene.installation.directory, good, "evil.qcow2", "/etc/passwd"));
    const id = idOf();
    const refused = await ask("ann", "PUT", `/uploads/${id}?format=qcow2`, evil);
    assert.equal(refused.status, 400);
    assert.match(refused.said, /the upload is refused/);
    nothingStays();
    const taken = await ask("ann", "PUT", `/uploads/${id}?format=qcow2`, readFileSync(good));
    assert.deepEqual([taken.status, taken.json.sizeMiB], [200, 8], taken.said);
    await gone("ann", id);
  });

  test("who may not change volumes brings nothing; numbers, formats, lengths and SHA-256s are looked at", async () => {
    const id = idOf();
    assert.equal((await put("amy", id)).status, 403);
    assert.equal((await put("nobody", id)).status, 401);
    assert.equal((await ask("amy", "POST", `/uploads/${id}`, "{}")).status, 400);
    for (const odd of ["x", "..%2fservice", `${id}0`, id.toUpperCase().replace(/\d/g, "A")])
      assert.equal((await put("ann", odd)).status, 400, odd);
    assert.match((await ask("ann", "PUT", `/uploads/${id}`, bytes)).said, /image\/format/);
    assert.equal((await put("ann", id, bytes, "&sha256=short")).status, 400);
    const chunked = request({
      host: "127.0.0.1",
      port,
      method: "PUT",
      path: `/uploads/${id}?format=raw`,
      agent: false,
    });
    chunked.setHeader("authorization", "Bearer ann");
    chunked.write("bytes");
    const [answer] = (await once(chunked, "response")) as [IncomingMessage];
    assert.equal(answer.statusCode, 411);
    chunked.destroy();
    nothingStays();
  });

  test("an account has four at a time, whoever of it brings them, and another one's is in nobody's way", async () => {
    const ids = [idOf(), idOf(), idOf(), idOf()];
    for (const [at, id] of ids.entries()) assert.equal((await put(at % 2 === 0 ? "ann" : "al", id)).status, 200);
    const fifth = await put("al", idOf());
    assert.equal(fifth.status, 409);
    assert.match(fifth.said, /4 uploads of your account/);
    const his = idOf();
    assert.equal((await put("bob", his)).status, 200);
    await gone("ann", ids[0] ?? "");
    const again = idOf();
    assert.equal((await put("al", again)).status, 200);
    await gone("ann", again, ...ids.slice(1));
    await gone("bob", his);
  });

  test("two uploads of an account are under way at a time, and another account's is taken beside them", async () => {
    const begun = [idOf(), idOf()].map((id) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.write(
        `PUT /uploads/${id}?format=raw HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ann\r\ncontent-length: ${2 ** 24}\r\n\r\n`,
      );
      const more = setInterval(() => socket.write(Buffer.alloc(8192)), 100);
      return { socket, more };
    });
    try {
      await eventually("both are under way", () => staged().length === 2);
      const third = await put("al", idOf());
      assert.equal(third.status, 503);
      assert.match(third.said, /2 uploads of your account/);
      const his = idOf();
      assert.equal((await put("bob", his)).status, 200);
      await gone("bob", his);
    } finally {
      for (const { socket, more } of begun) {
        clearInterval(more);
        socket.destroy();
      }
    }
    await eventually("nothing of them stays", () => staged().length === 0);
    const afterwards = idOf();
    await eventually("one is done", async () => (await put("al", afterwards)).status === 200);
    await gone("al", afterwards);
  });

  test("those of one domain have as many places of a server as they leave to others, whoever of it is slow", async () => {
    const slow = (who: string) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.write(
        `PUT /uploads/${idOf()}?format=raw HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${who}\r\ncontent-length: ${2 ** 24}\r\n\r\n`,
      );
      const more = setInterval(() => socket.write(Buffer.alloc(8192)), 100);
      return () => {
        clearInterval(more);
        socket.destroy();
      };
    };
    const ends = [slow("ann"), slow("ops")];
    try {
      await eventually("both are under way", () => staged().length === 2);
      const third = await put("ops", idOf());
      assert.equal(third.status, 503, third.said);
      assert.match(third.said, /uploads of your domain/);
      const his = idOf();
      assert.equal((await put("bob", his)).status, 200, "another domain's is taken");
      await gone("bob", his);
    } finally {
      for (const end of ends) end();
    }
    await eventually("nothing of them stays", () => staged().length === 0);
    const afterwards = idOf();
    await eventually("the places are free", async () => (await put("ops", afterwards)).status === 200);
    await gone("ops", afterwards);
  });

  test("who announces little is given little time for it, and who announces more has more", async () => {
    const [short, long] = [Buffer.alloc(4096, 1), Buffer.alloc(8 * 2 ** 20, 1)];
    const steady = async (sent: Buffer): Promise<number | null> => {
      const id = idOf();
      const outgoing = request({
        host: "127.0.0.1",
        port: hurriedPort,
        method: "PUT",
        path: `/uploads/${id}?format=raw`,
        agent: false,
      });
      outgoing.setHeader("authorization", "Bearer ann");
      outgoing.setHeader("content-length", sent.length);
      const answered = new Promise<number | null>((resolve) => {
        outgoing.once("response", (response) => resolve(response.resume().statusCode ?? 0));
        outgoing.once("error", () => resolve(null));
      });
      // All but its end, which comes after the time that the short one has.
      outgoing.write(sent.subarray(0, sent.length - 1));
      await new Promise((next) => setTimeout(next, 2 * hurried.leastMs));
      outgoing.end(sent.subarray(sent.length - 1));
      const status = await answered;
      if (status === 200) await gone("ann", id);
      return status;
    };
    assert.notEqual(await steady(short), 200);
    assert.equal(await steady(long), 200);
    await eventually("nothing stays", () => staged().length === 0 && kept().length === 0);
  });

  test("bytes of a URL are fetched whole with the SHA-256 that was said, or nothing of them stays", async (context) => {
    let ended = 0;
    const outside = createServer(({ url }, response) => {
      if (url === "/good") response.writeHead(200, { "content-length": bytes.length }).end(bytes);
      if (url === "/large") response.writeHead(200, { "content-length": (uploadMiB + 1) * 2 ** 20 }).write("x");
      if (url === "/short") {
        response.writeHead(200, { "content-length": bytes.length }).write(bytes.subarray(0, 1000));
        setTimeout(() => response.destroy(), 50);
      }
      if (url === "/slow") response.writeHead(200, { "content-length": bytes.length }).write("x");
      if (url === "/long") {
        response.writeHead(200, { "content-length": 2 ** 24 });
        const more = setInterval(() => response.write(Buffer.alloc(8192)), 50);
        response.once("close", () => {
          clearInterval(more);
          ended += 1;
        });
      }
    });
    outside.listen(0, "127.0.0.2");
    await once(outside, "listening");
    context.after(() => {
      outside.closeAllConnections();
      outside.close();
    });
    const at = `127.0.0.2:${(outside.address() as AddressInfo).port}`;
    const fetch = (path: string, sha256 = sha256Of(bytes), id = idOf()) =>
      ask("ann", "POST", `/uploads/${id}`, JSON.stringify({ url: `http://${at}${path}`, format: "raw", sha256 }));
    const taken = await fetch("/good");
    assert.deepEqual([taken.status, taken.json.sha256], [200, sha256Of(bytes)], taken.said);
    await gone("ann", taken.json.id);
    for (const [path, right] of [
      ["/large", /too many|an upload may have/],
      ["/short", /upload\/broken/],
      ["/slow", /slower than/],
    ] as const) {
      const refused = await fetch(path);
      assert.match(refused.said, right, path);
      await eventually("nothing of it stays", () => staged().length === 0 && kept().length === 0);
    }
    assert.match((await fetch("/good", "0".repeat(64))).said, /upload\/sha256/);
    const inside = await ask(
      "ann",
      "POST",
      `/uploads/${idOf()}`,
      JSON.stringify({ url: `http://127.0.0.1:${port}/`, format: "raw", sha256: "0".repeat(64) }),
    );
    assert.match(inside.said, /not everybody on the Internet reaches/);
    nothingStays();
    // Who asked leaves: whoever sends is told, and nothing stays.
    const body = JSON.stringify({ url: `http://${at}/long`, format: "raw", sha256: "0".repeat(64) });
    const asker = request({ host: "127.0.0.1", port, method: "POST", path: `/uploads/${idOf()}`, agent: false });
    asker.on("error", () => undefined);
    asker.setHeader("authorization", "Bearer ann");
    asker.setHeader("content-type", "application/json");
    asker.end(body);
    await eventually("it is under way", () => staged().length === 1);
    asker.destroy();
    await eventually("whoever sends is told", () => ended > 0);
    await eventually("nothing of it stays", () => staged().length === 0 && kept().length === 0);
  });
});
