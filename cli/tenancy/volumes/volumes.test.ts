import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../../connection/client.ts";
import type { Context } from "../../context/context.ts";
import { plain } from "../../terminal/terminal.ts";
import { listVolumes } from "./volumes.ts";

test("volumes are looked for by words, tags, owner, size and age, and what is not said is not asked", async () => {
  const asked: unknown[] = [];
  const client = {
    all: async (name: string, query: object) => {
      asked.push([name, query]);
      return [];
    },
  } as unknown as Client;
  const printed: string[] = [];
  const terminal = { paint: plain, print: (text: string) => printed.push(text) };
  const context = { terminal, json: false, client: () => client } as unknown as Context;
  await listVolumes(context, [], {});
  await listVolumes(context, ["golden", "debian"], {
    tag: ["web"],
    account: "acme/dev",
    least: 1024,
    most: 4096,
    since: "2026-11-01",
    until: "2026-11-26T14:30:00Z",
  });
  assert.deepEqual(asked, [
    ["listVolumes", {}],
    [
      "listVolumes",
      {
        text: "golden debian",
        tag: ["web"],
        account: "ROOT/acme/dev",
        leastMiB: 1024,
        mostMiB: 4096,
        since: "2026-11-01",
        until: "2026-11-26T14:30:00Z",
      },
    ],
  ]);
  assert.deepEqual(printed, ["no persistent volumes", "no persistent volumes"]);
});
