import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Client } from "../connection/client.ts";
import { CommandFailure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { followUntilReady } from "./follow.ts";

const elementOf = (phase: string) => ({
  shop: { "x.type": "Cell", vm: { "x.type": "VM", $state: { uid: "c1-1", phase, reason: null, since: "" } } },
});
const away = {
  error: { code: "controller-unreachable", message: 'the controller of the cell "shop" does not answer' },
};

/** A gateway that gives one answer after the other about a cell, the last one for good; its events never begin. */
const withAnswers = async (
  answers: readonly (readonly [number, unknown])[],
  work: (client: Client, terminal: Terminal, warned: readonly string[]) => Promise<void>,
): Promise<void> => {
  let asked = 0;
  const server = createServer((request, response) => {
    const isBeside = /\/(?:events|why)/.test(request.url ?? "");
    const [status, body] = isBeside ? [404, away] : (answers[asked++] ?? answers.at(-1) ?? [500, {}]);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const warned: string[] = [];
  const terminal = { live: false, paint: (text: string) => text, print: () => undefined, settle: () => undefined };
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new Client({ url, credential: "none" });
    await work(client, { ...terminal, warn: (text: string) => warned.push(text) } as unknown as Terminal, warned);
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

const concerned = new Set(["shop/vm"]);

test("a controller that is away after a change was accepted is waited for, and each time said once", async () => {
  const answers = [
    [502, away],
    [200, elementOf("working")],
    [502, away],
    [502, away],
    [200, elementOf("ready")],
  ] as const;
  await withAnswers(answers, async (client, terminal, warned) => {
    const elements = await followUntilReady(client, "shop", terminal, { timeoutMs: 60_000, silent: false, concerned });
    assert.deepEqual(
      elements.map(({ path, state }) => [path, state.phase]),
      [["shop/vm", "ready"]],
    );
    const waits = 'the controller of the cell "shop" does not answer; waits until it does';
    assert.deepEqual(warned, [waits, waits]);
  });
});

test("one that stays away is the failure; and so is every other refusal", async () => {
  const no = { error: { code: "no-right", message: "this credential is of another cell" } };
  for (const [answers, limitMs, why] of [
    [[[502, away]], 300, /does not answer/],
    [
      [
        [200, elementOf("working")],
        [502, away],
      ],
      500,
      /does not answer/,
    ],
    [
      [
        [200, elementOf("working")],
        [403, no],
      ],
      60_000,
      /another cell/,
    ],
  ] as const)
    await withAnswers(answers, async (client, terminal) => {
      await assert.rejects(
        followUntilReady(client, "shop", terminal, { timeoutMs: limitMs, silent: false, concerned }),
        (error) => error instanceof CommandFailure && why.test(error.message),
      );
    });
});

test("what waits for room, or for another cell's leave, is not waited for once nothing else goes on; a host that is not heard may bring it", async () => {
  const host = (kind: string) => ({ host: "h1", why: "w", lifts: "l", kind });
  const waits = (...causes: object[]) => ({ uid: "c1-1", phase: "waiting", reason: "waits", since: "", causes });
  const answer = (vm: object, disk: object) => ({
    shop: { "x.type": "Cell", vm: { "x.type": "VM", $state: vm }, disk: { "x.type": "Volume", $state: disk } },
  });
  const isReady = { uid: "c1-2", phase: "ready", reason: null, since: "" };
  const onDisk = waits({ kind: "waits-for", element: "shop/disk" });
  const both = new Set(["shop/vm", "shop/disk"]);
  for (const [vm, disk, isUp] of [
    [waits({ kind: "no-host", refusals: [host("memory"), host("cpus")], said: null }), isReady, true],
    [waits({ kind: "no-host", refusals: [host("memory"), host("unreachable")], said: null }), isReady, false],
    [waits({ kind: "no-host", refusals: [], said: "no host" }), isReady, false],
    [onDisk, waits({ kind: "no-storage", sentence: "no storage server has room" }), true],
    [onDisk, waits({ kind: "not-granted", domain: "b", path: "b/v", grant: "copy", to: "a" }), true],
    [onDisk, waits({ kind: "service-asked", service: "storage-manager" }), false],
    [{ ...isReady, phase: "working" }, waits({ kind: "no-storage", sentence: "none" }), false],
  ] as const) {
    const wanted = { timeoutMs: 900, silent: false, concerned: both, graceForOthersMs: 200 };
    await withAnswers([[200, answer(vm, disk)]], async (client, terminal) => {
      const says = isUp ? /wait for what nothing of this change brings/ : /are not ready after 0.9 s/;
      await assert.rejects(
        followUntilReady(client, "shop", terminal, wanted),
        (error) => error instanceof CommandFailure && error.exitCode === 4 && says.test(error.message),
        JSON.stringify([vm, disk]),
      );
    });
  }
});
