import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createHaManager } from "../../core/ha/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createTestInstallation } from "../../runtime/installation.testing.ts";

/** A real HA Manager in this process, by the clock, and the identities with which it and a gateway speak. */
export const startHaManager = async (installationName: string) => {
  const installation = await createTestInstallation(installationName);
  const { configuration } = await installation.configure(peerName("ha-manager"));
  const manager = createHaManager({
    self: peerName("ha-manager"),
    presence: [peerName("presence.1")],
    storageManagers: [],
    hosts: [peerName("host.h1")],
  });
  let state = manager.restore({ records: new Map(), desiredAt: new Map() });
  /** What its records and its events have held. */
  const written: string[] = [];
  const waiting = new Map<number, (response: Json) => void>();
  let id = 0;
  const give = (input: Parameters<typeof manager.step>[1]): void => {
    const stepped = manager.step(state, input, { ms: performance.now(), wallMs: Date.now() });
    state = stepped.state;
    for (const effect of stepped.effects) {
      if (effect.kind === "write") written.push(JSON.stringify(effect.value));
      if (effect.kind === "log") written.push(JSON.stringify(effect.fields));
      if (effect.kind === "timer" && effect.afterMs !== null)
        setTimeout(() => give({ kind: "timer", name: effect.name }), effect.afterMs).unref();
      if (effect.kind === "reply") waiting.get(effect.id)?.(effect.response);
    }
  };
  const request = (asked: Json): Promise<Json> =>
    new Promise((resolve) => {
      id += 1;
      waiting.set(id, resolve);
      give({ kind: "request", id, request: asked });
    });
  give({ kind: "start" });
  const gateway = (await installation.configure(peerName("gateway"))).configuration;
  return { configuration, gateway, request, written, now: () => state, remove: () => installation.remove() };
};

/** Looks 40 times a second. */
export const until = async (is: () => boolean, atMost = 400): Promise<void> => {
  for (let times = 0; times < atMost && !is(); times += 1) await sleep(25);
  assert.ok(is());
};
