import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connectPlain } from "./plain-socket.ts";

test("a socket is connected to, a link to it is not, nor what is none, and no descriptor stays", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-plain-"));
  const server = createServer((socket) => socket.end("hello"));
  try {
    const path = join(directory, "serial");
    server.listen(path);
    await once(server, "listening");
    await symlink(path, join(directory, "link"));
    await writeFile(join(directory, "file"), "");
    const failed = async (name: string): Promise<Error> =>
      (await once(connectPlain(join(directory, name)).resume(), "error"))[0] as Error;
    assert.match((await failed("link")).message, /link is no socket/);
    assert.match((await failed("file")).message, /file is no socket/);
    assert.match((await failed("absent")).message, /ENOENT/);
    const socket = connectPlain(path);
    assert.equal(String((await once(socket, "data"))[0]), "hello");
    await once(socket, "close");
    const names = await readdir("/proc/self/fd");
    const open = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
    assert.deepEqual(
      open.filter((file) => file.startsWith(directory)),
      [],
    );
  } finally {
    server.close();
    await rm(directory, { recursive: true, force: true });
  }
});
