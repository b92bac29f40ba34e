import assert from "node:assert/strict";
import { test } from "node:test";
import {
  capabilityLifetimeMs,
  decodeCapability,
  encodeCapability,
  type HostCapability,
  UsedCapabilities,
} from "./session-capability.ts";

const now = 1_700_000_000_000;
const capability = (change: Partial<HostCapability> = {}): HostCapability => ({
  vm: "c1-1",
  incarnation: 3,
  verb: "console",
  expiresMs: now + capabilityLifetimeMs,
  nonce: "n".repeat(22),
  ...change,
});

test("a capability survives its header, and nothing else is one", () => {
  assert.deepEqual(decodeCapability(encodeCapability(capability())), capability());
  const unknownVerb = { ...capability(), verb: "format" } as unknown as HostCapability;
  const forward = capability({ verb: "forward", port: 80 });
  assert.deepEqual(decodeCapability(encodeCapability(forward)), forward);
  for (const port of [0, 65_536, -1, 1.5, "80", null, undefined])
    assert.equal(decodeCapability(encodeCapability({ ...forward, port } as HostCapability)), null, `port ${port}`);
  assert.equal(decodeCapability(encodeCapability(capability({ port: 80 }))), null, "a console has no port");
  const former = capability({ former: true });
  assert.deepEqual(decodeCapability(encodeCapability(former)), former);
  assert.equal(decodeCapability(encodeCapability({ ...former, verb: "exec" })), null, "only a console has a past");
  const short = capability({ nonce: "short" });
  for (const wrong of ["", "null", "x", encodeCapability(unknownVerb), encodeCapability(short)])
    assert.equal(decodeCapability(wrong), null, wrong);
});

test("each opens once, in its time, and is forgotten afterwards", () => {
  let time = now;
  const used = new UsedCapabilities(() => time);
  assert.equal(used.use(capability()), null);
  assert.match(used.use(capability()) ?? "", /was used before/);
  assert.equal(used.use(capability({ nonce: "o".repeat(22) })), null, "another one is another one");
  time = now + capabilityLifetimeMs + 31_000;
  assert.match(used.use(capability()) ?? "", /has expired/, "what is forgotten cannot be used again");
  assert.match(used.use(capability({ expiresMs: time + 10 * capabilityLifetimeMs })) ?? "", /valid for too long/);
});

test("the memory of used ones is bounded", () => {
  const used = new UsedCapabilities(() => now);
  let refused: string | null = null;
  for (let index = 0; refused === null && index < 10_000; index += 1)
    refused = used.use(capability({ nonce: String(index).padStart(22, "0") }));
  assert.match(refused ?? "", /too many sessions .* try again in a minute/);
});
