import assert from "node:assert/strict";
import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { decode, encode } from "dns-packet";
import { addressesIn, byNameServers } from "./names-outside.ts";

/** A name server that knows these A records and nothing else; of `silent.` names it says nothing at all. */
async function nameServer(context: TestContext, names: Readonly<Record<string, string>>) {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  socket.on("message", (message: Buffer, { port, address }: RemoteInfo) => {
    const { id, questions = [] } = decode(message);
    const [question] = questions;
    if (id === undefined || question === undefined) return;
    asked.push(`${question.type} ${question.name}`);
    if (question.name.startsWith("silent.")) return;
    const known = names[question.name];
    const answers =
      known !== undefined && question.type === "A"
        ? [{ type: "A" as const, name: question.name, ttl: 1, data: known }]
        : [];
    // NXDOMAIN is rcode 3.
    const flags = 0x100 | 0x80 | (known === undefined ? 3 : 0);
    socket.send(encode({ type: "response", id, flags, questions, answers }), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  context.after(() => socket.close());
  return { asked, server: `127.0.0.1:${socket.address().port}` };
}

test("a name is what its name servers say; the machine's own table comes first, and localhost is nobody's to say", async (context) => {
  const { server, asked } = await nameServer(context, {
    "hooks.example.test": "127.0.0.2",
    "here.example.test": "127.0.0.3",
    localhost: "127.0.0.4",
  });
  const table = join(tmpdir(), `names-outside-${process.pid}`);
  await writeFile(table, "127.0.0.9 Here.Example.test # here.other.test\n");
  const resolve = byNameServers({ servers: [server], table });
  assert.deepEqual(await resolve("hooks.example.test"), [{ address: "127.0.0.2" }]);
  assert.deepEqual(await resolve("hooks.example.test."), [{ address: "127.0.0.2" }]);
  assert.deepEqual(await resolve("here.example.test"), [{ address: "127.0.0.9" }]);
  assert.deepEqual(await resolve("nobody.example.test"), []);
  for (const own of ["localhost", "LOCALHOST.", "a.localhost"])
    assert.deepEqual(await resolve(own), [{ address: "127.0.0.1" }, { address: "::1" }], own);
  assert.ok(!asked.some((each) => /here|localhost/.test(each)), asked.join());
  assert.deepEqual(addressesIn("10.0.0.1 a b\n#10.0.0.2 a\n::5 A", "a"), ["10.0.0.1", "::5"]);
});

test("name servers that say nothing hold up no file and no other name, and are given up", async (context) => {
  const { server } = await nameServer(context, { "hooks.example.test": "127.0.0.2" });
  const resolve = byNameServers({ servers: [server], table: "/dev/null" });
  let silent = 0;
  // More than the threads that files and the system's own way share.
  const asked = Array.from({ length: 16 }, (_, at) =>
    resolve(`silent.n${at}.example.test`).then(
      () => assert.fail("nothing was said"),
      (error: Error) => {
        silent += 1;
        return error.message;
      },
    ),
  );
  assert.deepEqual(await resolve("hooks.example.test"), [{ address: "127.0.0.2" }]);
  assert.ok((await readFile("/proc/self/stat")).length > 0);
  assert.equal(silent, 0, "all of them still wait");
  for (const [at, said] of (await Promise.all(asked)).entries())
    assert.match(said, new RegExp(`^the name servers did not say where silent\\.n${at}\\.example\\.test leads`));
});
