import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { swimDefaults } from "../../core/presence/swim/configuration.ts";
import type { Verdict } from "../../core/presence/swim/types.ts";
import { type HostName, hostName } from "../../model/cell/identifiers.ts";
import { measureMember } from "./measure.ts";
import { createMember, type PresenceMember } from "./member.ts";
import { createSeal } from "./seal.ts";

const address = "127.0.0.1";
const key = Buffer.alloc(32, 7);
/** Twenty times as fast as in an installation. */
const config = {
  ...swimDefaults,
  probeEveryMs: 60,
  probeTimeoutMs: 30,
  gossipEveryMs: 20,
  doubtMs: 300,
  syncQuietMs: 300,
  stallMs: 2000,
};

/** Hosts on the loopback that exchange full views as the reliable channel would. */
const cluster = async (names: readonly string[]) => {
  const members = new Map<HostName, PresenceMember>();
  const heard: { readonly by: HostName; readonly host: HostName; readonly verdict: Verdict }[] = [];
  const waiting = new Set<() => void>();
  const hosts = names.map(hostName);
  const refused: string[] = [];
  const above = new Map<HostName, number>();
  const deaths: { readonly by: HostName; readonly host: HostName; readonly generation: number }[] = [];
  for (const [index, self] of hosts.entries()) {
    const member = await createMember({
      self,
      generation: 1,
      address,
      port: 0,
      seal: createSeal(key),
      seed: index + 1,
      config,
      find: (host) => {
        const found = members.get(host);
        return found === undefined ? null : { address, port: found.port };
      },
      output: ({ verdicts, syncs, above: over }) => {
        if (over !== null) above.set(self, over);
        for (const { host, verdict } of verdicts) heard.push({ by: self, host, verdict });
        for (const { to, updates, answer } of syncs)
          setImmediate(() => members.get(to)?.input({ kind: "sync", from: self, updates, answer }));
        for (const look of waiting) look();
      },
      isHost: (from) => from === address,
      died: ({ host, generation }) => {
        deaths.push({ by: self, host, generation });
        for (const look of waiting) look();
      },
      refused: (fault) => {
        refused.push(fault);
        for (const look of waiting) look();
      },
    });
    members.set(self, member);
  }
  for (const member of members.values()) member.input({ kind: "peers", hosts });
  const until = (so: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!so()) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  const get = (name: string): PresenceMember => members.get(hostName(name)) ?? assert.fail(name);
  const has = (by: string, host: string, verdict: Verdict): boolean =>
    heard.some((one) => one.by === by && one.host === host && one.verdict === verdict);
  const stop = async (): Promise<void> => {
    for (const member of members.values()) await member.stop({ goodbye: false });
  };
  return { get, until, has, stop, refused, members, deaths, above };
};

test("hosts find each other over UDP, report one that fell silent, and hear a goodbye", {
  timeout: 60_000,
}, async () => {
  const { get, until, has, stop } = await cluster(["h1", "h2", "h3", "h4"]);
  try {
    await until(() => ["h1", "h2", "h3", "h4"].every((name) => get(name).state.live === 4));
    await get("h4").stop({ goodbye: false });
    await until(() => has("h1", "h4", "failed") && has("h2", "h4", "failed") && has("h3", "h4", "failed"));
    await get("h3").stop();
    await until(() => has("h1", "h3", "left") && has("h2", "h3", "left"));
  } finally {
    await stop();
  }
});

test("a declared death that two hosts hear is broadcast, looked into, and believed by the others and whom it is about", {
  timeout: 60_000,
}, async () => {
  const names = ["h1", "h2", "h3", "h4"];
  const { get, until, has, stop, deaths, above } = await cluster(names);
  try {
    await until(() => names.every((name) => get(name).state.live === 4));
    for (const name of ["h1", "h2"]) get(name).input({ kind: "declared", host: hostName("h4"), generation: 1 });
    await until(() => has("h3", "h4", "dead") && above.has(hostName("h4")));
    assert.deepEqual(
      deaths.map(({ by, host, generation }) => `${by} ${host} ${generation}`),
      ["h3 h4 1"],
    );
    assert.deepEqual([...above], [["h4", 1]]);
  } finally {
    await stop();
  }
});

test("garbage and packets under another key are refused, counted, and said once", { timeout: 60_000 }, async () => {
  const { get, until, stop, refused } = await cluster(["h1", "h2"]);
  const stranger = createSocket("udp4");
  try {
    const { port } = get("h1");
    const forged = createSeal(Buffer.alloc(32, 8));
    const { encodePacket } = await import("../../core/presence/swim/codec.ts");
    const packet = encodePacket(
      {
        kind: "gossip",
        seq: 0,
        from: hostName("h2"),
        generation: 1,
        incarnation: 0,
        target: null,
        digest: 0,
        updates: [{ status: "dead", host: hostName("h1"), generation: 1, incarnation: 0, from: null }],
      },
      forged,
    );
    const elsewhere = createSocket("udp4").bind(0, "127.0.0.2");
    await once(elsewhere, "listening");
    await new Promise((resolve) => elsewhere.send(packet, port, address, resolve));
    elsewhere.close();
    const send = (bytes: Uint8Array): Promise<void> =>
      new Promise((resolve, reject) =>
        stranger.send(bytes, port, address, (error) => (error === null ? resolve() : reject(error))),
      );
    for (let count = 0; count < 5; count += 1) await send(packet);
    for (let count = 0; count < 5; count += 1) await send(Buffer.alloc(100, count));
    await send(Buffer.alloc(5000));
    await until(() => refused.length >= 4);
    assert.deepEqual(refused.toSorted(), ["no host's address", "not a packet", "tag", "too long"]);
    const measured = measureMember(get("h1"));
    const refusedByFault = measured.find(({ name }) => name === "cells_swim_refused_total")?.samples ?? [];
    const counted = Object.fromEntries(refusedByFault.map(({ labels, value }) => [labels.fault ?? "", value]));
    assert.deepEqual(counted, { "no host's address": 1, tag: 5, "not a packet": 5, "too long": 1 });
    assert.equal(get("h1").state.self.generation, 1);
    assert.equal(get("h1").state.self.status, "alive");
  } finally {
    const closed = once(stranger, "close");
    stranger.close();
    await closed;
    await stop();
  }
});

test("a key that is too short is refused", () => {
  assert.throws(() => createSeal(Buffer.alloc(8)), /needs 16 at least/);
});
