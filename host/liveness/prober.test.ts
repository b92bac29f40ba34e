import assert from "node:assert/strict";
import { test } from "node:test";
import { uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { HostRequest } from "../host-requests.ts";
import type { ProbeTarget } from "./liveness.ts";
import { createProber } from "./prober.ts";

test("a target is probed on its interface, what changes is reported, and what cannot be sent harms nobody", async () => {
  const target: ProbeTarget = {
    vm: uid("a"),
    incarnation: 1,
    interface: uid("a-i"),
    liveness: { protocol: "udp", port: 7, intervalMs: 100, failures: 3 },
    health: "starting",
    reboots: 0,
    stalled: false,
  };
  const asked = { interface: "a-i", protocol: "udp", port: 7 };
  const probed: unknown[] = [];
  const reported: HostRequest[] = [];
  const lines: string[] = [];
  await new Promise<void>((resolve) => {
    const prober = createProber({
      network: {
        probe: async (...probe) => {
          probed.push(probe);
          if (probed.length === 1) throw new Error("the map is gone");
          return true;
        },
      },
      request: async (request) => {
        const message = request as unknown as HostRequest;
        if (message.kind === "probe-targets") return [target] as unknown as Json;
        reported.push(message);
        prober.close();
        resolve();
        return null;
      },
      log: (event) => lines.push(event),
    });
    prober.wake();
  });
  assert.deepEqual(reported, [
    { kind: "health", change: { vm: "a", incarnation: 1, asked, health: "answering", reason: null } },
  ]);
  assert.deepEqual(probed[0], ["a-i", { protocol: "udp", port: 7 }, 1000]);
  assert.deepEqual(lines, ["probe-failed"]);
});
