import { randomUUID } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { viaHeader, viaText } from "../../model/contract/audit/via.ts";
import { type ContractClient, createClient } from "../../model/contract/client/client.ts";
import { mostOfPage, nextHeader } from "../../model/contract/tenancy/pages.ts";
import type { Json } from "../../model/json/json.ts";
import type { JsonPatchOperation } from "../../model/json/patch.ts";
import { writePointer } from "../../model/json/pointer.ts";

/*
 * The smallest personality: a door that speaks lines of text over TCP, and the published contract inside, with the credential of
 * whoever asks. It has no right and no store: what breaks it breaks nothing else, and it may be started anew at any moment.
 *
 *   CELLS_URL=http://127.0.0.1:8080 node examples/lines/lines.ts 7000
 *   $ nc 127.0.0.1 7000
 *   auth CREDENTIAL
 *   list
 *   stop shop/web1
 *   start shop/web1
 *
 * Each line is answered by lines, the last of which begins with "ok" or "no". It listens on loopback alone: credentials pass as they are.
 */

// --- pure: what a line asks, and the change that it is ---------------------------------------------------------------

export type Question =
  | { readonly ask: "auth"; readonly credential: string }
  | { readonly ask: "list" }
  | { readonly ask: "set"; readonly cell: string; readonly path: readonly string[]; readonly state: "on" | "off" };

/** A string is why it is none. */
export function questionIn(line: string): Question | string {
  const [word = "", what = "", ...more] = line.trim().split(/\s+/);
  if (more.length === 0 && word === "list" && what === "") return { ask: "list" };
  if (more.length === 0 && word === "auth" && what !== "") return { ask: "auth", credential: what };
  if (more.length > 0 || (word !== "start" && word !== "stop"))
    return "a line is `auth CREDENTIAL`, `list`, `start CELL/VM` or `stop CELL/VM`";
  const path = what.split("/");
  const [cell = ""] = path;
  if (path.length < 2 || path.some((part) => part === ""))
    return `\`${word}\` needs the path of a VM, as \`list\` gives it`;
  return { ask: "set", cell, path, state: word === "start" ? "on" : "off" };
}

/** It rests on there being a VM, and on nothing else: who changes something beside it is never in the way. */
export const changeOf = (path: readonly string[], state: "on" | "off"): readonly JsonPatchOperation[] => [
  { op: "test", path: writePointer([...path, "x.type"]), value: "VM" },
  { op: "add", path: writePointer([...path, "x.desiredState"]), value: state },
];

// --- the contract, with the credential of who asks ---------------------------------------------------------------------

class Refused extends Error {}
const refuse = (status: number, text: string): Error => {
  try {
    return new Refused((JSON.parse(text) as { readonly error: { readonly message: string } }).error.message);
  } catch {
    return new Refused(`the gateway answered ${status}`);
  }
};
type Headers = Readonly<Record<string, string>>;
async function* machines(client: ContractClient, said: Headers): AsyncGenerator<string> {
  for (let after: string | undefined; ; ) {
    const query = { type: "VM" as const, limit: mostOfPage, ...(after === undefined ? {} : { after }) };
    const answer = await client.open("listAllElements", { parameters: {}, query, headers: said });
    for (const { path, phase } of (await answer.json()) as readonly { readonly path: string; readonly phase: string }[])
      yield `${path} ${phase}`;
    after = answer.headers.get(nextHeader) ?? undefined;
    if (after === undefined) return;
  }
}
/** An answer that is lost is asked for again, under the same key: nothing is done twice. */
async function change(
  client: ContractClient,
  cell: string,
  operations: readonly JsonPatchOperation[],
  said: Headers,
): Promise<void> {
  const headers = { ...said, "idempotency-key": randomUUID() };
  const body = operations as unknown as Json;
  for (let left = 3; ; left -= 1)
    try {
      await client.ask("patchModel", { parameters: { cell }, body: body as never, headers });
      return;
    } catch (error) {
      if (error instanceof Refused || left === 1) throw error;
      await sleep(200);
    }
}

// --- the door --------------------------------------------------------------------------------------------------------

const longestLine = 4096;
const mostConnections = 64;
const idleMs = 10 * 60_000;

/** @param url of a gateway, or of CaaS */
export function createLines(url: string, ask: typeof fetch = fetch): Server {
  const serve = async (socket: Socket): Promise<void> => {
    let client: ContractClient | null = null;
    const answer = async function* (line: string): AsyncGenerator<string> {
      const question = questionIn(line);
      if (typeof question === "string") return yield `no ${question}`;
      if (question.ask === "auth") {
        const { credential } = question;
        const his = createClient({ fetch: ask, url, credential, refuse });
        await his.ask("whoAmI", { parameters: {} });
        client = his;
        return yield "ok";
      }
      if (client === null) return yield "no `auth CREDENTIAL` comes first";
      const source = socket.remoteAddress === undefined ? {} : { source: socket.remoteAddress };
      const command = question.ask === "list" ? "list" : question.state;
      const said = { [viaHeader]: viaText({ personality: "lines", command, id: randomUUID(), ...source }) };
      if (question.ask === "list") yield* machines(client, said);
      else await change(client, question.cell, changeOf(question.path, question.state), said);
      yield "ok";
    };
    for await (const line of linesOf(socket)) {
      try {
        // Who reads slowly is waited for, and nothing is kept for him.
        for await (const each of answer(line))
          if (!socket.write(`${each}\n`))
            await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
      } catch (error) {
        socket.write(
          error instanceof Refused ? `no ${error.message.replaceAll("\n", " ")}\n` : "no the gateway does not answer\n",
        );
      }
    }
    socket.end();
  };
  const server = createServer((socket) => {
    socket.setTimeout(idleMs, () => socket.destroy()).on("error", () => socket.destroy());
    serve(socket).catch(() => socket.destroy());
  });
  server.maxConnections = mostConnections;
  return server;
}
async function* linesOf(socket: Socket): AsyncGenerator<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) {
    text += chunk as string;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
    if (text.length > longestLine) return;
  }
}

if (import.meta.main) {
  const [port = "7000"] = process.argv.slice(2);
  const { CELLS_URL: url } = process.env;
  if (url === undefined) throw new Error("CELLS_URL is missing: the address of a gateway, as http://127.0.0.1:8080");
  createLines(url.replace(/\/$/, "")).listen(Number(port), "127.0.0.1");
}
