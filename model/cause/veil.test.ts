import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName, peerName } from "../cell/identifiers.ts";
import type { Json } from "../json/json.ts";
import type { Cause } from "./cause.ts";
import { sentenceOf } from "./sentence.ts";
import { veiled, veiledCauses, veiledStates, veiledText } from "./veil.ts";

const veil = { machines: new Set(["h1", "h2", "h3", "rack-7.example", "s1"]) };

test("a sentence loses names of machines, and nothing else", () => {
  for (const [text, without] of [
    ["host h1 is not reachable", "a host is not reachable"],
    [
      "it is to leave h1, and runs on there: no other host can hold it: h2: full",
      "it is to leave a host, and runs on there: no other host can hold it: a host: full",
    ],
    ["starts at rack-7.example", "starts at a host"],
    ["then `cells orphans release host.h1`", "then `cells orphans release HOST`"],
    [
      "say so with `cells host dead h1 --power-is-off`, or wait for h1.",
      "say so with `cells host dead HOST --power-is-off`, or wait for a host.",
    ],
    ["take `ha` out of `x.tags` of root/hosts/h1, or", "take `ha` out of `x.tags` of a host, or"],
    ["agent.s1 has no room, nor has server s1", "a storage server has no room, nor has a storage server"],
    ["waits for shop/h1, h1-disk and h10", "waits for shop/h1, h1-disk and h10"],
    ["Name one that is there: h1, h2, h3.", "Name one that is there: 3 hosts."],
    ["a path h1/disk stays", "a path h1/disk stays"],
  ] as const)
    assert.equal(veiledText(text, veil), without);
});

const refusal = (host: string, why: string) => ({
  host: hostName(host),
  why,
  lifts: "let one more host join",
  kind: "memory" as const,
});
test("hosts that refuse alike are one line with how many they are; of a pool they keep the names that their owner gave them", () => {
  const causes: readonly Cause[] = [
    {
      kind: "no-host",
      said: null,
      refusals: [
        refusal("h1", "it is full"),
        refusal("h2", "it is full"),
        refusal("h3", "it is off"),
        refusal("a", "it is full"),
      ],
    },
  ];
  const [cause] = veiledCauses(causes, veil);
  assert.ok(cause?.kind === "no-host");
  assert.deepEqual(
    cause.refusals.map(({ host, why }) => [host, why]),
    [
      ["2 hosts", "it is full"],
      ["a host", "it is off"],
      ["a", "it is full"],
    ],
  );
  const state = veiled({ phase: "waiting", reason: sentenceOf(causes), causes: causes as unknown as Json }, veil);
  assert.equal(
    (state as { reason: string }).reason,
    "no host can hold it: 2 hosts: it is full; a host: it is off; a: it is full",
  );
});

test("facts that name a host name none, also of hosts that are there no more, and behind other causes", () => {
  const gone = "h99" as HostName;
  const causes: readonly Cause[] = [
    {
      kind: "rules-refused",
      host: gone,
      because: [{ kind: "said", by: peerName("host.h1"), sentence: "at h1 it is so" }],
    },
    { kind: "forgotten-runs", hosts: [gone, hostName("h1")] },
  ];
  const text = JSON.stringify(veiledCauses(causes, veil));
  assert.doesNotMatch(text, /h99|h1\b/);
  assert.match(text, /"2 hosts"/);
});

test("of a document only what is said of its elements is changed", () => {
  const document = {
    shop: {
      "x.type": "Cell",
      h1: {
        "x.type": "VM",
        "x.placement": { host: "h1" },
        host: "h1",
        $state: { host: "h1", reason: "starts at h1", server: "s1", countsAt: { host: "h1", until: "…" } },
      },
    },
  };
  assert.deepEqual(veiledStates(document, veil), {
    shop: {
      "x.type": "Cell",
      h1: {
        "x.type": "VM",
        "x.placement": { host: "h1" },
        host: "h1",
        $state: { host: null, reason: "starts at a host", server: null, countsAt: { host: null, until: "…" } },
      },
    },
  });
});

test("checks that say the same of several hosts are one", () => {
  const check = (host: string) => ({
    check: `in force at host ${host}`,
    passes: true,
    detail: "the host has confirmed it",
    lifts: null,
  });
  assert.deepEqual(veiled({ checks: [check("h1"), check("h2"), { ...check("h3"), passes: false }] }, veil), {
    checks: [
      { ...check("h1"), check: "in force at 2 hosts" },
      { ...check("h1"), check: "in force at a host", passes: false },
    ],
  });
});
