import assert from "node:assert/strict";
import { createHash, randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { below } from "../../../core/random.ts";
import { UploadScene } from "../../../gateway/storage/uploads.testing.ts";
import { Client, Refused } from "../../connection/client.ts";
import type { Context } from "../../context/context.ts";
import { CommandFailure, exitCodes } from "../../terminal/failure.ts";
import { plain } from "../../terminal/terminal.ts";
import { bring } from "./uploads.ts";

/** What a person sends over a way that breaks, to a real gateway's uploads before a real store of images. Needs root. */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";
const MiB = 2 ** 20;
const sent = randomBytes(9 * MiB);
const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
let scene: UploadScene;
let directory = "";
let file = "";
before(async () => {
  if (skip !== false) return;
  scene = await UploadScene.make("sent", { uploadMiB: 32 });
  directory = mkdtempSync(join(tmpdir(), "cells-sent-"));
  file = join(directory, "disk");
  writeFileSync(file, sent);
});
after(async () => {
  if (skip !== false) return;
  await scene.end();
  rmSync(directory, { recursive: true, force: true });
});

/** A way to the door. Each connection is cut once so many octets went in; null: never. @param cut called then @param passes so many octets */
async function wayTo(
  port: number,
  allows: () => number | null,
  cut: () => void,
  passes: (octets: number) => void = () => undefined,
): Promise<Server> {
  const server = createServer((near) => {
    const allowed = allows();
    const far = connect(port, "127.0.0.1");
    let came = 0;
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    for (const each of [near, far]) each.on("error", () => undefined).on("close", end);
    far.pipe(near);
    near.on("data", (chunk) => {
      came += chunk.length;
      passes(chunk.length);
      if (allowed !== null && came > allowed) {
        end();
        cut();
      } else if (!far.write(chunk)) {
        near.pause();
        far.once("drain", () => near.resume());
      }
    });
    near.on("end", () => far.end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}
interface Person {
  readonly client: Client;
  readonly context: Context;
  /** What was said to her. */
  readonly warned: string[];
}
function personAt(way: Server): Person {
  const warned: string[] = [];
  const terminal = { paint: plain, live: false, print: () => undefined, warn: (text: string) => warned.push(text) };
  const url = `http://127.0.0.1:${(way.address() as AddressInfo).port}`;
  return {
    client: new Client({ url, credential: "ann" }),
    context: { terminal, json: false } as unknown as Context,
    warned,
  };
}

describe("a file that is sent", { skip }, () => {
  test("goes on where its connection breaks, and is there as it was sent", async (context) => {
    const seed = randomInt(2 ** 31);
    context.diagnostic(`seed ${seed}`);
    const random = { random: seed };
    let cuts = 0;
    const counts = (): void => {
      cuts += 1;
    };
    const allows = (): number => 64 * 1024 + MiB + below(random, 3 * MiB);
    const way = await wayTo(await scene.door({}), allows, counts);
    context.after(() => way.close());
    const { client, context: hers, warned } = personAt(way);
    const made = await bring(hers, client, { upload: file, format: "raw" });
    assert.equal(made?.sha256, sha256Of(sent), `seed ${seed}`);
    assert.ok(cuts >= 2, `seed ${seed}: ${cuts}`);
    assert.ok(warned.length >= 2 && warned.every((line) => /the connection broke .*: it goes on at /.test(line)));
    assert.ok(
      warned.some((line) => !line.endsWith(" 0.0 MiB")),
      warned.join("\n"),
    );
    await client.ask("removeUpload", { parameters: { id: made?.id ?? "" } });
  });

  test("is sent from its beginning where it has changed meanwhile", async (context) => {
    let cuts = 0;
    const way = await wayTo(
      await scene.door({}),
      () => (cuts === 0 ? 3 * MiB : null),
      () => {
        cuts += 1;
        const open = openSync(file, "r+");
        writeSync(open, Buffer.from("changed"), 0, 7, 1000);
        closeSync(open);
      },
    );
    context.after(() => {
      way.close();
      writeFileSync(file, sent);
    });
    const { client, context: hers, warned } = personAt(way);
    const made = await bring(hers, client, { upload: file, format: "raw" });
    const now = Buffer.from(sent);
    now.write("changed", 1000);
    assert.equal(made?.sha256, sha256Of(now));
    assert.match(warned.join("\n"), /goes on at 0\.0 MiB$/);
    await client.ask("removeUpload", { parameters: { id: made?.id ?? "" } });
  });

  test("says when it gives up how it goes on later, and the next command sends the rest alone", async (context) => {
    let far = 0;
    const cuts = (): void => {
      far += 1;
    };
    // Half of it comes, and then nothing any more.
    const way = await wayTo(await scene.door({}), () => (far === 0 ? 5 * MiB : 0), cuts);
    context.after(() => way.close());
    const { client, context: hers } = personAt(way);
    let said = "";
    await assert.rejects(
      bring(hers, client, { upload: file, format: "raw" }, async () => undefined),
      (error: unknown) => {
        said = (error as Error).message;
        return error instanceof CommandFailure && error.exitCode === exitCodes.unreachable;
      },
    );
    const [, id = ""] = / with --resume ([0-9a-f]{32}) /.exec(said) ?? [];
    assert.notEqual(id, "", said);

    let came = 0;
    const rest = await wayTo(
      await scene.door({}),
      () => null,
      cuts,
      (octets) => {
        came += octets;
      },
    );
    context.after(() => rest.close());
    const { client: again, context: later, warned } = personAt(rest);
    await assert.rejects(
      bring(later, again, { upload: file, format: "raw", resume: id.slice(1) }),
      /32 hexadecimal digits/,
    );
    const made = await bring(later, again, { upload: file, format: "raw", resume: id });
    assert.deepEqual([made?.id, made?.sha256], [id, sha256Of(sent)]);
    assert.ok(came > 3 * MiB && came < 6 * MiB, `${came} octets were sent`);
    assert.match(warned.join(), /^it goes on at [34]\.\d MiB$/);

    // It is there as a whole: nothing is sent, and another file is not taken for it.
    came = 0;
    assert.equal((await bring(later, again, { upload: file, format: "raw", resume: id }))?.id, id);
    const other = join(directory, "other");
    writeFileSync(other, randomBytes(MiB));
    await assert.rejects(bring(later, again, { upload: other, format: "raw", resume: id }), /is another file than/);
    assert.ok(came < 64 * 1024, `${came}`);
    await again.ask("removeUpload", { parameters: { id } });
  });

  test("that is refused is not sent again", async (context) => {
    let connections = 0;
    const allows = (): null => {
      connections += 1;
      return null;
    };
    const way = await wayTo(await scene.door({}), allows, () => undefined);
    context.after(() => way.close());
    const { client, context: hers, warned } = personAt(way);
    await assert.rejects(
      bring(hers, client, { upload: file, format: "raw", sha256: "0".repeat(64) }),
      (error: unknown) => error instanceof Refused && error.code === "upload/sha256",
    );
    assert.deepEqual([connections, warned], [1, []]);
  });
});
