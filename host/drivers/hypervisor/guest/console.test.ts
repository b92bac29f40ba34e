import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { eventually } from "../../../../runtime/installation.testing.ts";
import { type MachineConsole, openConsole } from "./console.ts";

/** A socket as QEMU's serial port has it: one connection at a time, the others wait. */
let directory = "";
let port: Server;
let guest: Socket | null = null;
let connections = 0;
let number = 0;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cells-console-"));
  port = createServer((socket) => {
    guest = socket;
    connections += 1;
    socket.on("error", () => undefined);
  }).listen(join(directory, "serial.sock"));
  await once(port, "listening");
});
after(async () => {
  // Also after a test that failed half-way: an open connection would keep this process.
  for (const each of consoles) each.close();
  port.close();
  await rm(directory, { recursive: true, force: true });
});
let file = "";
beforeEach(() => {
  number += 1;
  file = join(directory, `console-${number}.log`);
});
const consoles: MachineConsole[] = [];
const openHere = async (): Promise<MachineConsole> => {
  const before = connections;
  const opened = await openConsole(join(directory, "serial.sock"), file);
  consoles.push(opened);
  await eventually("QEMU has the connection", () => connections > before);
  return opened;
};
/** What is recorded so far; the file is made with the first bytes. */
const recorded = (): Promise<string> => readFile(file, "utf8").catch(() => "");
const viewer = () => {
  const seen = { text: "", counts: [] as number[] };
  return {
    seen,
    output: (bytes: Buffer) => {
      seen.text += bytes.toString("utf8");
    },
    viewers: (count: number) => void seen.counts.push(count),
  };
};

test("what the guest says is recorded, seen by all, and shown to who comes later", async () => {
  const opened = await openHere();
  const [one, two] = [viewer(), viewer()];
  const first = opened.attach(one);
  assert.equal(first.past.length, 0);
  guest?.write("booting\n");
  await eventually("the first sees it", () => one.seen.text === "booting\n");
  const second = opened.attach(two);
  assert.equal(second.past.toString(), "booting\n");
  assert.deepEqual([one.seen.counts, two.seen.counts, opened.viewers], [[1, 2], [2], 2]);
  guest?.write("login: ");
  await eventually("both see it", () => one.seen.text.endsWith("login: ") && two.seen.text === "login: ");

  let typed = "";
  guest?.on("data", (bytes: Buffer) => {
    typed += bytes.toString("utf8");
  });
  await first.write(Buffer.from("root\n"));
  await second.write(Buffer.from("id\n"));
  await eventually("both may type", () => typed === "root\nid\n");
  second.detach();
  assert.deepEqual(one.seen.counts, [1, 2, 1]);
  await eventually("it is recorded", async () => (await recorded()) === "booting\nlogin: ");
  opened.close();
});

test("the record goes on in the next process, and stays small however much is said", async () => {
  let opened = await openHere();
  guest?.write("before the restart\n");
  await eventually("recorded", async () => (await recorded()).length > 0);
  opened.close();
  opened = await openHere();
  const late = opened.attach(viewer());
  assert.equal(late.past.toString(), "before the restart\n");
  const line = `${"x".repeat(1023)}\n`;
  // Less at once than may wait for the disk, which may be slow: what is more would not be recorded.
  for (const end of ["half of it\n", "the end\n"]) {
    for (let index = 0; index < 600; index += 1) guest?.write(line);
    guest?.write(end);
    await eventually("it is recorded", async () => (await recorded()).endsWith(end));
  }
  const watching = viewer();
  await eventually("all came through", () => opened.attach(watching).past.toString().endsWith("the end\n"));
  assert.ok(opened.attach(viewer()).past.length <= 16 * 1024);
  assert.ok((await stat(file)).size <= 256 * 1024);
  assert.ok((await stat(`${file}.1`)).size <= 256 * 1024);
  opened.close();
});

test("a connection that breaks is made again, and what is typed meanwhile is refused", async () => {
  const opened = await openHere();
  const watching = viewer();
  const attached = opened.attach(watching);
  const before = connections;
  guest?.destroy();
  await eventually("it is noticed", () =>
    attached.write(Buffer.from("x")).then(
      () => false,
      (error: Error) => /serial port is not connected/.test(error.message),
    ),
  );
  await eventually("it is back", () => connections > before);
  guest?.write("again\n");
  await eventually("and the viewer is still there", () => watching.seen.text.endsWith("again\n"));
  opened.close();
});

test("a file that somebody else has put in the record's place is neither read nor written", async () => {
  const secret = join(directory, "secret");
  await writeFile(secret, "not for the guest\n");
  await symlink(secret, file);
  const opened = await openHere();
  const watching = viewer();
  assert.equal(opened.attach(watching).past.length, 0);
  guest?.write("hello\n");
  await eventually("it is seen", () => watching.seen.text === "hello\n");
  opened.close();
  assert.equal(await readFile(secret, "utf8"), "not for the guest\n");
});
