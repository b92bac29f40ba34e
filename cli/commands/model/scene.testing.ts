import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { Client } from "../../connection/client.ts";
import type { Context } from "../../context/context.ts";
import { CommandFailure } from "../../terminal/failure.ts";
import { plain } from "../../terminal/terminal.ts";

/** The commands against a gateway that answers what a test says, at a terminal where `answer` is typed; null: none. */
export interface Scene {
  readonly context: Context;
  /** Method, URL and If-Match of each request that would change something. */
  readonly asked: string[];
  readonly printed: string[];
  readonly questions: string[];
  /** On standard error. */
  readonly warned: string[];
  readonly file: string;
}
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}
export type Gateway = (request: {
  readonly method: string;
  readonly url: string;
  readonly dryRun: boolean;
  readonly body: string;
}) => Answer;

export const scene = async (t: TestContext, gateway: Gateway, answer: boolean | null = null): Promise<Scene> => {
  const [asked, printed, questions, warned]: [string[], string[], string[], string[]] = [[], [], [], []];
  const server = createServer((incoming: IncomingMessage, response) => {
    const { method = "", url = "" } = incoming;
    const dryRun = url.includes("dryRun=true");
    if (method !== "GET" && !dryRun) asked.push(`${method} ${url} ${incoming.headers["if-match"]}`);
    void text(incoming).then((sent) => {
      const { status, body } = gateway({ method, url, dryRun, body: sent });
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const directory = mkdtempSync(join(tmpdir(), "cells-change-"));
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const file = join(directory, "shop.json");
  writeFileSync(file, JSON.stringify({ shop: { "x.type": "Cell", db: { "x.type": "Volume", "x.size": 4 } } }));
  const client = new Client({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credential: "secret",
  });
  const terminal: Context["terminal"] = {
    paint: plain,
    colour: false,
    live: false,
    columns: 100,
    canAsk: answer !== null,
    print: (line) => void printed.push(line),
    warn: (line) => void warned.push(line),
    draw: () => undefined,
    settle: () => undefined,
    ask: async (question) => {
      questions.push(question);
      return answer === true;
    },
  };
  return { context: { terminal, json: false, client: () => client }, asked, printed, questions, warned, file };
};

export const failure = async (work: Promise<void>): Promise<CommandFailure> => {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof CommandFailure, String(error));
    return error;
  }
  throw new Error("it did not fail");
};
