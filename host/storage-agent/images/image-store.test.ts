import assert from "node:assert/strict";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ipv4, uid } from "../../../model/cell/identifiers.ts";
import { VolumeFiles } from "../volume-files.ts";
import type { ImageFormat } from "./image-header.ts";
import { makeGood, qemu, withBackingFile } from "./image-hostile.testing.ts";
import { type ImageRefusal, ImageStore, type ImageStoreOptions, roomIn, type StagedImage } from "./image-store.ts";
import { findImage, listImages } from "./images.ts";

/** One server's images, with real conversions: uploads that are cut off, crashes, names, replacement. Needs root. */
let base = "";
let good = "";
let other = "";
let count = 0;
before(async () => {
  base = await mkdtemp(join(tmpdir(), "images-"));
  good = makeGood(join(base, "good.qcow2"));
  other = join(base, "other.raw");
  writeFileSync(other, Buffer.alloc(2 ** 20, 0x11));
  mkdirSync(join(base, "provided", "tiny"), { recursive: true });
  writeFileSync(
    join(base, "provided", "tiny", "manifest.json"),
    JSON.stringify({ name: "tiny", digest: "d", disk: "disk.qcow2", sizeMiB: 1, boot: null }),
  );
});
after(() => rm(base, { recursive: true, force: true }));

interface Server {
  readonly places: { readonly directory: string; readonly imagesDirectory: string };
  readonly store: ImageStore;
  readonly log: string[];
}
async function server(further: Partial<ImageStoreOptions> = {}, directory?: string): Promise<Server> {
  count += 1;
  const places = { directory: directory ?? join(base, `server-${count}`), imagesDirectory: join(base, "provided") };
  await mkdir(places.directory, { recursive: true });
  const log: string[] = [];
  const options = { log: (event: string) => void log.push(event), changed: () => void log.push("changed") };
  const store = new ImageStore({ ...places, ...options, ...further });
  await store.prepare();
  return { places, store, log };
}
interface Sent {
  readonly format?: ImageFormat;
  readonly replace?: boolean;
  readonly length?: number;
  readonly body?: Readable;
}
const stage = ({ store }: Server, name: string, file: string, sent: Sent = {}) =>
  store.stage({
    name,
    format: sent.format ?? (file === good ? "qcow2" : "raw"),
    replace: sent.replace ?? false,
    length: sent.length ?? statSync(file).size,
    body: sent.body ?? createReadStream(file),
  });
async function add(at: Server, name: string, file: string, sent: Sent = {}): Promise<StagedImage> {
  const staged = await stage(at, name, file, sent);
  assert.ok(staged.ok, JSON.stringify(staged));
  if (staged.value.id === null) return staged.value;
  const accepted = await at.store.accept(staged.value.id, sent.replace ?? false);
  assert.ok(accepted.ok, JSON.stringify(accepted));
  return accepted.value;
}
async function refusal(answer: ReturnType<typeof stage>): Promise<ImageRefusal> {
  const staged = await answer;
  assert.equal(staged.ok, false);
  return (staged as { readonly error: ImageRefusal }).error;
}
const names = async (at: Server): Promise<readonly string[]> =>
  (await listImages(at.places)).map(({ manifest }) => manifest.name).sort();
const left = ({ places }: Server): readonly string[] => readdirSync(join(places.directory, "image-staging"));
const diskOf = async (at: Server, name: string): Promise<Buffer> => {
  const found = await findImage(at.places, name);
  assert.ok(found);
  const raw = join(base, "content.raw");
  qemu("qemu-img", "convert", "-f", "qcow2", "-O", "raw", join(found.directory, found.manifest.disk), raw);
  return readFileSync(raw);
};

const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

describe("uploads", { skip }, () => {
  test("what is staged is not visible; what is accepted is", async () => {
    const at = await server();
    const staged = await stage(at, "new", good);
    assert.ok(staged.ok && staged.value.id !== null);
    assert.deepEqual(await names(at), ["tiny"]);
    assert.ok((await at.store.accept(staged.value.id, false)).ok);
    assert.deepEqual(await names(at), ["new", "tiny"]);
    assert.equal(staged.value.digest, qemu("sha256sum", good).split(" ")[0]);
    assert.equal(staged.value.sizeMiB, 8);
    assert.deepEqual(at.log, ["image/staged", "image/added", "changed"]);
    assert.deepEqual(left(at), []);
    assert.equal((await at.store.accept(staged.value.id, false)).ok, false, "once");
    // The same again is the same; another one is refused, or replaces it.
    assert.equal((await add(at, "new", good)).id, null);
    assert.match((await refusal(stage(at, "new", other))).message, /other content/);
    await add(at, "new", other, { replace: true });
    assert.equal((await diskOf(at, "new"))[0], 0x11);
    assert.deepEqual(left(at), []);
    assert.equal(readdirSync(join(at.places.directory, "images", "new")).length, 2, "the old disk is gone");
  });

  test("what is refused leaves nothing", async () => {
    const at = await server();
    const hostile = withBackingFile(base, good, "hostile", "/etc/shadow");
    const { status, message } = await refusal(stage(at, "evil", hostile, { format: "qcow2" }));
    assert.equal(status, 400);
    assert.match(message, /^image "evil" is refused: it names a backing file/);
    assert.deepEqual([left(at), await names(at)], [[], ["tiny"]]);
  });

  test("a name cannot lead elsewhere, nor be one of the installation's", async () => {
    const at = await server();
    for (const name of ["../x", "..", ".", "a/b", "", ".hidden", "-a", "a\0b", "x".repeat(64), "ä"]) {
      assert.equal((await refusal(stage(at, name, good))).code, "image/bad-name", name);
      assert.equal((await at.store.remove(name))?.code, "image/bad-name", name);
      assert.equal(await findImage(at.places, name), null);
    }
    assert.equal((await refusal(stage(at, "tiny", good, { replace: true }))).code, "image/provided");
    assert.equal((await at.store.remove("tiny"))?.code, "image/provided");
    await add(at, "x".repeat(63), other);
  });

  test("more or fewer bytes than announced", async () => {
    const at = await server();
    const size = statSync(other).size;
    assert.match((await refusal(stage(at, "a", other, { length: size - 1 }))).message, /more bytes came than/);
    assert.match(
      (await refusal(stage(at, "a", other, { length: size + 1 }))).message,
      /1048576 bytes came of the 1048577/,
    );
    assert.equal((await refusal(stage(at, "a", other, { length: 2 ** 50 }))).status, 413);
    const endless = Readable.from(
      (function* () {
        for (;;) yield Buffer.alloc(65536);
      })(),
    );
    assert.match((await refusal(stage(at, "a", other, { body: endless }))).message, /more bytes came than/);
    assert.deepEqual([left(at), await names(at)], [[], ["tiny"]]);
    await add(at, "a", other);
  });

  test("a sender that goes away, or falls silent", async () => {
    const at = await server({ limits: { silenceMs: 300 } });
    const half = readFileSync(other).subarray(0, 1000);
    let sent = false;
    const broken = new Readable({
      read() {
        if (sent) this.destroy(new Error("connection reset"));
        else this.push(half);
        sent = true;
      },
    });
    assert.match((await refusal(stage(at, "a", other, { body: broken }))).message, /before their .*: connection reset/);
    const silent = new Readable({ read: () => undefined });
    silent.push(half);
    assert.match((await refusal(stage(at, "a", other, { body: silent }))).message, /silent for 300 ms/);
    assert.deepEqual([left(at), await names(at)], [[], ["tiny"]]);
  });

  test("what breaks off is kept where that was said, gives way to what needs its room, and is gone with the process", async () => {
    let hasMiB = 1024;
    const inStaging = (): readonly string[] =>
      readdirSync(join(at.places.directory, "image-staging"), { recursive: true }).map(String);
    const isAt = (path: string): number => statSync(join(at.places.directory, "image-staging", path)).size;
    const octets = (): number =>
      inStaging().reduce((sum, path) => sum + (path.endsWith("/upload") ? isAt(path) : 0), 0);
    const at = await server({ freeBytes: () => hasMiB * 2 ** 20 - octets() });
    const name = `upload-${"0".repeat(16)}-${"1".repeat(32)}`;
    const bytes = Buffer.alloc(3 * 2 ** 20, 0x22);
    const breaks = async (keep: boolean): Promise<void> => {
      const body = Readable.from(
        (function* () {
          yield bytes.subarray(0, 2 * 2 ** 20);
          throw new Error("gone");
        })(),
      );
      const sent = { name, format: "raw", replace: false, length: bytes.length, keep, body } as const;
      assert.match((await refusal(at.store.stage(sent))).message, /gone$/);
    };
    await breaks(false);
    assert.deepEqual([at.store.part(name).ok, left(at)], [false, []]);
    await breaks(true);
    const part = at.store.part(name);
    assert.ok(part.ok && part.value.received === 2 * 2 ** 20);
    // 64 MiB are left for volumes, and 2 are those of the part.
    hasMiB = 74;
    const announced = async (lengthMiB: number): Promise<string> =>
      (await refusal(stage(at, "large", other, { length: lengthMiB * 2 ** 20 }))).code;
    assert.equal(await announced(11), "image/no-space");
    assert.equal(at.store.part(name).ok, true, "what would not have the room anyway takes nothing away");
    assert.equal(await announced(8), "image/refused");
    assert.equal(at.store.part(name).ok, true, "there was room");
    assert.equal(await announced(9), "image/refused");
    assert.deepEqual([at.store.part(name).ok, left(at)], [false, []], "it gave way");
    await breaks(true);
    hasMiB = 67.5;
    await add(at, "image", other);
    assert.deepEqual([at.store.part(name).ok, left(at)], [false, []], "to what is made of an upload, too");
    hasMiB = 1024;
    await breaks(true);
    const rest = { name, format: "raw", replace: false, length: bytes.length, from: 2 * 2 ** 20 } as const;
    const staged = await at.store.stage({ ...rest, body: Readable.from([bytes.subarray(2 * 2 ** 20)]) });
    assert.ok(staged.ok, JSON.stringify(staged));
    assert.ok((await at.store.accept(staged.value.id ?? "", false)).ok);
    assert.deepEqual(await diskOf(at, name), bytes);
    await at.store.remove(name);
    await breaks(true);
    await at.store.close();
    const next = await server({}, at.places.directory);
    assert.deepEqual([next.store.part(name).ok, left(next)], [false, []]);
  });

  test("an upload that is refused for another reason costs nobody what is kept of his", async () => {
    let hasMiB = 1024;
    const at = await server({ freeBytes: () => hasMiB * 2 ** 20 });
    const nameOf = (count: number): string => `upload-${"0".repeat(16)}-${String(count).padStart(32, "0")}`;
    const name = nameOf(1);
    const gone = Readable.from(
      (function* () {
        yield Buffer.alloc(2 * 2 ** 20);
        throw new Error("gone");
      })(),
    );
    const kept = { name, format: "raw", replace: false, length: 3 * 2 ** 20, keep: true } as const;
    assert.match((await refusal(at.store.stage({ ...kept, body: gone }))).message, /gone$/);
    // With what the part has, and not without it, there is room for what is refused below.
    hasMiB = 19;
    const length = 11 * 2 ** 20;
    const rest = { ...kept, name: nameOf(2), length, from: 2 ** 20, body: Readable.from([]) };
    assert.equal((await refusal(at.store.stage(rest))).code, "image/offset");
    assert.equal(at.store.part(name).ok, true, "nothing is kept that this would be the rest of");
    hasMiB = 1024;
    const never = () => new Readable({ read: () => undefined }).on("error", () => undefined);
    const under = [3, 4, 5, 6].map((count) => {
      const body = never();
      const staging = stage(at, count === 6 ? "image" : nameOf(count), other, { body }).catch((error: Error) => error);
      return { body, staging };
    });
    await sleep(100);
    hasMiB = 74;
    assert.equal((await refusal(stage(at, "large", other, { length }))).code, "image/busy");
    assert.equal(at.store.part(name).ok, true, "all places are taken");
    for (const { body } of under) body.destroy(new Error("gone"));
    await Promise.all(under.map(({ staging }) => staging));
    hasMiB = 1024;
    const staged = [7, 8, 9].map(async (count) => stage(at, nameOf(count), other));
    assert.ok(
      (await Promise.all(staged)).every((each) => each.ok),
      "and each place is free again",
    );
    await at.store.close();
  });

  test("two of one name at once: each is whole, and one of them is there", async () => {
    const at = await server();
    const results = await Promise.all([stage(at, "same", good), stage(at, "same", other)]);
    const ids = results.map((each) => (each.ok ? (each.value.id ?? "") : assert.fail("both are taken in")));
    const accepted = await Promise.all(ids.map((id) => at.store.accept(id, false)));
    assert.deepEqual(
      accepted.map(({ ok }) => ok),
      [true, false],
    );
    assert.equal((await diskOf(at, "same")).length, 8 * 2 ** 20);
    await at.store.discard(ids[1] ?? "");
    assert.deepEqual(left(at), []);
  });

  test("what is accepted or deleted waits for nobody's conversion, which may last for half an hour", async () => {
    const at = await server();
    await add(at, "gone", other);
    let done = 0;
    const [first, ...more] = ["a", "b", "c"].map(async (name) => {
      const staged = await stage(at, name, good);
      done += 1;
      return staged;
    });
    const staging = join(at.places.directory, "image-staging");
    const isBegun = (id: string): boolean => existsSync(join(staging, id, "disk.qcow2"));
    try {
      while (!left(at).some(isBegun)) await sleep(5);
      assert.equal(await at.store.remove("gone"), null);
      assert.ok(done < 3, "some are under way");
      const staged = await Promise.race([first, ...more]);
      assert.ok(staged?.ok);
      assert.ok((await at.store.accept(staged.value.id ?? "", false)).ok);
      assert.ok(done < 3, "some are under way still");
    } finally {
      await Promise.all([first, ...more]);
      await at.store.close();
    }
  });

  test("no more than four at a time, and one that nobody accepts goes by itself", async () => {
    const at = await server({ limits: { stagedMs: 5000 } });
    for (const name of ["a", "b", "c", "d"]) assert.ok((await stage(at, name, other)).ok);
    assert.equal((await refusal(stage(at, "e", other))).code, "image/busy");
    while (left(at).length > 0) await sleep(50);
    await add(at, "e", other);
  });
});

describe("what stays", { skip }, () => {
  test("a crash at any moment leaves a whole image or none", async () => {
    const at = await server();
    await add(at, "whole", good);
    const images = join(at.places.directory, "images");
    const staging = join(at.places.directory, "image-staging");
    // Received half; accepted without a record; replaced without the last step; a record half-way.
    mkdirSync(join(staging, "dead"));
    writeFileSync(join(staging, "dead", "upload"), "half");
    mkdirSync(join(images, "unrecorded"));
    writeFileSync(join(images, "unrecorded", "0.qcow2"), "bytes");
    writeFileSync(join(images, "whole", "0123.qcow2"), "the next disk");
    writeFileSync(join(images, "whole", "manifest.new"), "{");
    const next = await server({}, at.places.directory);
    assert.deepEqual(await names(next), ["tiny", "whole"]);
    assert.deepEqual([left(next), readdirSync(images)], [[], ["whole"]]);
    assert.equal(readdirSync(join(images, "whole")).length, 2);
    assert.equal((await diskOf(next, "whole")).length, 8 * 2 ** 20);
  });

  test("a conversion is broken off when the agent ends", async () => {
    const at = await server();
    const staging = stage(at, "a", good);
    await sleep(20);
    await at.store.close();
    const answer = await staging.catch((error: Error) => error);
    if (!(answer instanceof Error)) assert.ok(answer.ok, "or it was done before");
    const next = await server({}, at.places.directory);
    assert.deepEqual([left(next), await names(next)], [[], ["tiny"]]);
  });

  test("volumes made from an image outlive its replacement and its deletion", async () => {
    const at = await server();
    await add(at, "base", good);
    const files = new VolumeFiles({ ...at.places, address: ipv4("127.0.0.1"), httpPort: 1 });
    await files.prepare();
    const volume = uid("test-1");
    await files.create(volume, { kind: "image", image: "base" }, 16);
    // A file with room to grow is long and mostly a hole: nobody reads it from end to end.
    const before = join(base, "before.qcow2");
    qemu("cp", "--sparse=auto", files.path(volume), before);
    await add(at, "base", other, { replace: true });
    assert.equal(await at.store.remove("base"), null);
    assert.equal((await at.store.remove("base"))?.status, 404);
    assert.deepEqual(await names(at), ["tiny"]);
    assert.equal(existsSync(join(at.places.directory, "images", "base")), false);
    qemu("qemu-img", "compare", "-q", "-f", "qcow2", "-F", "qcow2", before, files.path(volume));
    assert.equal((await files.ready(volume, null))?.sizeMiB, 16);
    await assert.rejects(files.create(uid("test-2"), { kind: "image", image: "base" }, 16), /no image "base"/);
  });

  test("what a user uploaded goes after its time, at the next start too; an image of the operator's stays, and a younger upload", async () => {
    const at = await server();
    const upload = (digit: string): string => `upload-${"0".repeat(16)}-${digit.repeat(32)}`;
    for (const name of [upload("1"), upload("2"), "image"]) await add(at, name, other);
    const longAgo = new Date(Date.now() - 25 * 60 * 60_000);
    for (const name of [upload("1"), "image"])
      utimesSync(join(at.places.directory, "images", name, "manifest.json"), longAgo, longAgo);
    await at.store.close();
    const next = await server({}, at.places.directory);
    assert.deepEqual(await names(next), ["image", "tiny", upload("2")]);
    assert.deepEqual(next.log, ["image/deleted", "changed"]);
  });

  test("users' uploads leave the operator a place, and room, however many they are", async () => {
    const at = await server();
    const never = () => new Readable({ read: () => undefined });
    const name = (count: number): string => `upload-${"0".repeat(16)}-${String(count).padStart(32, "0")}`;
    const under = [1, 2, 3].map((count) => {
      const body = never();
      const staging = stage(at, name(count), other, { body });
      return { body, staging: staging.catch((error: Error) => error) };
    });
    await sleep(100);
    try {
      assert.equal((await refusal(stage(at, name(4), other))).status, 503);
      await add(at, "image", other);
      for (const { body } of under) body.destroy(new Error("gone"));
      await Promise.all(under.map(({ staging }) => staging));
      await add(at, name(4), other);
    } finally {
      for (const { body } of under) body.destroy(new Error("gone"));
      await at.store.close();
    }
    let free = 2 ** 40;
    for (let count = 0; count < 10; count += 1) free -= roomIn(free, name(count));
    assert.ok(free > 2 ** 29, "each takes half of what is left");
    assert.equal(roomIn(2 ** 30, "image"), 2 ** 30 - 64 * 2 ** 20);
  });

  test("uploads that come at once are given no room that was promised to one of them, and it is free again when that ends", async () => {
    const at = await server({ limits: { uploadMiB: 2 ** 40 } });
    const { bavail, bsize } = statfsSync(at.places.directory);
    const length = Math.floor(bavail * bsize * 0.4);
    const name = (digit: string): string => `upload-${"0".repeat(16)}-${digit.repeat(32)}`;
    const begin = (digit: string) => {
      const body = new Readable({ read: () => undefined }).on("error", () => undefined);
      const staging = stage(at, name(digit), other, { body, length });
      return { body, staging };
    };
    const first = begin("1");
    while (left(at).length === 0) await sleep(10);
    const second = begin("2");
    try {
      // Together they would be more than half of it.
      const said = await Promise.race([second.staging, sleep(2000, "both are taken")]);
      assert.deepEqual(said, {
        ok: false,
        error: {
          status: 507,
          code: "image/no-space",
          message: "this server has too little space left for it",
        },
      });
    } finally {
      for (const { body } of [first, second]) body.destroy(new Error("gone"));
      assert.match((await refusal(first.staging)).message, /gone$/, "who came first has it");
      await second.staging;
    }
    const third = begin("3");
    await sleep(100);
    third.body.destroy(new Error("it was taken"));
    assert.match((await refusal(third.staging)).message, /it was taken$/);
    await at.store.close();
  });

  test("what a guest writes into its volume is never taken for a format", async () => {
    const at = await server();
    await add(at, "plain", other);
    const files = new VolumeFiles({ ...at.places, address: ipv4("127.0.0.1"), httpPort: 1 });
    await files.prepare();
    const secret = join(base, "secret");
    writeFileSync(secret, "of-the-server ".repeat(1000));
    // The guest puts a qcow2 header with a backing file to the very start of its disk.
    const hostile = withBackingFile(base, makeGood(join(base, "inner")), "guest", secret);
    for (const [id, source] of [
      ["test-3", { kind: "empty" }],
      ["test-4", { kind: "image", image: "plain" }],
    ] as const) {
      const volume = uid(id);
      await files.create(volume, source, 16);
      const path = files.path(volume);
      qemu("qemu-io", "-f", "qcow2", "-c", `write -q -s ${hostile} 0 65536`, path);
      assert.equal((await files.ready(volume, 32))?.sizeMiB, 32, "it grows, and is what it was");
      // As a host composes it (`host/drivers/storage/block-chain.ts`): every driver by name.
      const node = JSON.stringify({ driver: "qcow2", backing: null, file: { driver: "file", filename: path } });
      const seen = join(base, "seen.raw");
      qemu("qemu-img", "convert", "-O", "raw", `json:${node}`, seen);
      const bytes = readFileSync(seen);
      assert.equal(bytes.length, 32 * 2 ** 20, "the size is the volume's");
      assert.deepEqual(bytes.subarray(0, 65536), readFileSync(hostile).subarray(0, 65536), "and the bytes the guest's");
      assert.equal(bytes.includes("of-the-server of-the-server"), false);
      const probed = qemu("qemu-img", "info", seen);
      assert.ok(probed.includes(`backing file: ${secret}`), "with probing it would be followed: the bomb is live");
    }
  });
});
