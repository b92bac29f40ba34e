import assert from "node:assert/strict";
import { once } from "node:events";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { PowerDriver } from "../../core/ha/power/controller.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { type PeerServer, peerRequest, servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation } from "../../runtime/installation.testing.ts";
import { createHostEdge } from "../edge.ts";
import { createPowerHand } from "./power-hand.ts";

const controller = { kind: "ipmi", address: "10.9.0.1", user: "u", password: "p" } as const;
const createDriver = () => {
  const asked: string[] = [];
  const driver: PowerDriver = {
    read: async () => {
      asked.push("read");
      return { power: "on", uuid: "u", reason: null };
    },
    off: async (_, signal) => {
      asked.push("off");
      if (!signal.aborted) await once(signal, "abort");
      asked.push("void");
    },
  };
  return { asked, power: createPowerHand("/nonexistent", "/nonexistent", { ipmi: driver } as never) };
};

test("an order is void as soon as who gave it waits no more: the host may be in a later boot by then", async () => {
  const installation = await createTestInstallation("given-up");
  let server: PeerServer | undefined;
  try {
    const [host, manager] = [peerName("host.h2"), peerName("ha-manager")];
    const { configuration } = await installation.configure(host);
    const { configuration: own } = await installation.configure(manager);
    const { asked, power } = createDriver();
    server = await servePeers(configuration, createHostEdge({ power } as never));
    const isOver = new AbortController();
    const answer = peerRequest(own, host, {
      method: "POST",
      path: "/power",
      body: JSON.stringify({ action: "off", controller }),
      signal: isOver.signal,
    });
    const until = async (count: number): Promise<void> => {
      for (let looks = 0; looks < 300 && asked.length < count; looks += 1)
        await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await until(1);
    assert.deepEqual(asked, ["off"]);
    isOver.abort();
    await assert.rejects(answer);
    await until(2);
    assert.deepEqual(asked.slice(0, 2), ["off", "void"]);
  } finally {
    await server?.stop();
    await installation.remove();
  }
});

test("an order that a host finds after it stood still is void, and one whose sender is away is not waited for", async () => {
  const installation = await createTestInstallation("late-order");
  let server: PeerServer | undefined;
  try {
    const [host, manager] = [peerName("host.h2"), peerName("ha-manager")];
    const { configuration } = await installation.configure(host);
    const { configuration: own } = await installation.configure(manager);
    const { asked, power } = createDriver();
    let nowMs = 0;
    const patience = { now: () => nowMs, patienceMs: 400 };
    server = await servePeers(configuration, createHostEdge({ power, ...patience } as never));
    const give = async (stoodMs: number): Promise<number | undefined> => {
      const answer = peerRequest(own, host, {
        method: "POST",
        path: "/power",
        body: JSON.stringify({ action: "off", controller }),
        handsOver: () => {
          nowMs += stoodMs;
        },
        signal: AbortSignal.timeout(2000),
      });
      return (await answer.catch(() => undefined))?.status;
    };
    assert.deepEqual([await give(401), asked], [408, []]);
    assert.equal(await give(399), undefined);
    assert.equal(asked[0], "off", "a positive control");
    const body = new Readable({ read: () => undefined });
    body.push("{");
    const silent = peerRequest(own, host, {
      method: "POST",
      path: "/power",
      body,
      signal: AbortSignal.timeout(20_000),
    });
    await assert.rejects(silent, (error: Error) => !/abort/.test(error.message));
  } finally {
    await server?.stop();
    await installation.remove();
  }
});

test("a body that does not say how long it is has an end, too", async () => {
  const installation = await createTestInstallation("endless-body");
  let server: PeerServer | undefined;
  try {
    const [host, controllerPeer] = [peerName("host.h2"), peerName("controller.shop")];
    const { configuration } = await installation.configure(host);
    const { configuration: own } = await installation.configure(controllerPeer);
    server = await servePeers(configuration, createHostEdge({} as never));
    let sent = 0;
    const body = new Readable({
      read: () => {
        sent += 64 * 1024;
        body.push(sent > 64 * 1024 * 1024 ? null : Buffer.alloc(64 * 1024, " "));
      },
    });
    const answer = await peerRequest(own, host, { method: "POST", path: "/exec", body }).then(
      ({ status }) => status,
      () => "ended",
    );
    assert.ok(answer === 413 || answer === "ended", `${answer}`);
    assert.ok(sent < 32 * 1024 * 1024, `${sent} bytes were read`);
  } finally {
    await server?.stop();
    await installation.remove();
  }
});

test("of an order that nobody waits for any more nothing is switched", async () => {
  const { asked, power } = createDriver();
  await power.carryOut({ action: "off", controller }, AbortSignal.abort());
  assert.deepEqual(asked, ["read"]);
});
