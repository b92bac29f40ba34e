import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { createLines, questionIn } from "../../examples/lines/lines.ts";
import { createClient } from "../../model/contract/client/client.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import { serveSimulation } from "./served.ts";

/** What somebody types, and all lines of each answer. */
async function typing(port: number) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const lines = createInterface(socket)[Symbol.asyncIterator]();
  return {
    ask: async (line: string): Promise<readonly string[]> => {
      socket.write(`${line}\n`);
      for (const said: string[] = []; ; ) {
        const { value, done } = await lines.next();
        if (done === true) return said;
        said.push(value);
        if (/^(?:ok|no )/.test(value)) return said;
      }
    },
    end: () => socket.destroy(),
  };
}

test("a line is a question, or says what one is", () => {
  assert.deepEqual(questionIn(" stop shop/web/vm\r"), {
    ask: "set",
    cell: "shop",
    path: ["shop", "web", "vm"],
    state: "off",
  });
  for (const line of ["", "stop", "stop shop", "stop shop//vm", "list all", "auth", "stop a/b c", "PATCH /x"])
    assert.equal(typeof questionIn(line), "string", line);
});

test("a small personality: machines are listed, stopped and started by lines, with the credential of who asks", async (t) => {
  const served = await serveSimulation({ hosts: 3, machines: 4, seed: 1, port: 0 });
  t.after(() => served.stop());
  // The first answer to each change is lost behind this door.
  const asked: string[] = [];
  let isLost = false;
  const losing: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (init?.method !== "PATCH" || answer.status !== 200) return answer;
    asked.push(new Headers(init.headers).get("idempotency-key") ?? "");
    isLost = !isLost;
    if (isLost) throw new TypeError("the connection broke");
    return answer;
  };
  const door = createLines(served.url, losing).listen(0, "127.0.0.1");
  t.after(() => door.close());
  await once(door, "listening");
  const { port } = door.address() as AddressInfo;
  const [ann, eve] = [await typing(port), await typing(port)];
  t.after(() => [ann, eve].map(({ end }) => end()));
  assert.match(String(await ann.ask("list")), /^no `auth CREDENTIAL` comes first/);
  assert.match(String(await eve.ask("auth nothing")), /^no /);
  assert.match(String(await eve.ask("list")), /^no /, "it has no right of its own");
  assert.deepEqual(await ann.ask(`auth ${served.credential}`), ["ok"]);
  const list = async (): Promise<readonly string[]> => (await ann.ask("list")).filter((line) => line !== "ok");
  await eventually(
    "its machines run",
    async () => (await list()).filter((each) => each.endsWith(" ready")).length >= 4,
  );
  const [first = ""] = (await list()).filter((each) => !each.startsWith("root"));
  const [path = ""] = first.split(" ");
  const cell = path.split("/")[0] ?? "";
  const client = createClient({
    fetch,
    url: served.url,
    credential: served.credential,
    refuse: (status, text) => new Error(`${status} ${text}`),
  });
  const model = async () => (await client.ask("readModel", { parameters: { cell } })) as unknown;
  const version = async () => (await client.ask("readCell", { parameters: { cell } })).version;
  const before = await version();
  assert.deepEqual(await ann.ask(`stop ${path}`), ["ok"]);
  assert.equal(await version(), before + 1, "once, though its answer was lost");
  assert.deepEqual([asked.length, new Set(asked).size], [2, 1], "under one key");
  assert.match(JSON.stringify(await model()), /"x\.desiredState":"off"/);
  assert.deepEqual(await ann.ask(`start ${path}`), ["ok"]);
  assert.doesNotMatch(JSON.stringify(await model()), /"x\.desiredState":"off"/);
  assert.match(String(await ann.ask(`stop ${path}-none`)), /^no /);
  assert.match(String(await ann.ask(`stop ${cell}/none/vm`)), /^no /);
  assert.match(String(await ann.ask("stop nowhere/vm")), /^no /);
  const long = connect(port, "127.0.0.1");
  long.write("x".repeat(5000));
  await once(long.resume(), "close");
});
