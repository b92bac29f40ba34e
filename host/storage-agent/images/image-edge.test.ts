import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { PeerRequest } from "../../../runtime/http/peer-handler.ts";
import { recordResponse } from "../../../runtime/http/response.testing.ts";
import { createImageEdge } from "./image-edge.ts";
import type { ImageStore } from "./image-store.ts";

/** Who may ask an agent for what, before its store is reached; the store is tested beside it, the way in `testbed/`. */
const places = { imagesDirectory: "/nowhere", directory: "/nowhere" };
const reached: string[] = [];
const store = {
  stage: async ({ name, format, length }: { name: string; format: string; length: number }) => {
    reached.push(`stage ${name} ${format} ${length}`);
    return { ok: true, value: {} };
  },
  remove: async (name: string) => {
    reached.push(`remove ${name}`);
    return null;
  },
} as unknown as ImageStore;
const edge = createImageEdge(places, store, async ({ verb, target, who, source }) => {
  reached.push(`${who} ${source} ${verb} ${target}`);
});

async function ask(
  peer: string,
  method: string,
  url: string,
  headers: Record<string, string> = {},
): Promise<{ readonly answered: boolean; readonly status: number; readonly text: string }> {
  const recorded = recordResponse();
  const request = { peer: peerName(peer), method, url, headers, body: Readable.from([]) } as unknown as PeerRequest;
  const answered = await edge(request, recorded.response);
  return { answered, status: recorded.status, text: recorded.text };
}

test("only the gateway adds, lists and deletes images", async () => {
  for (const peer of ["host.h1", "controller.shop", "storage-manager", "agent.s2", "gateway2"])
    for (const method of ["GET", "PUT", "POST", "DELETE"])
      assert.equal((await ask(peer, method, "/images/x?format=raw", { "content-length": "1" })).status, 403, peer);
  assert.deepEqual(reached, []);
  assert.equal((await ask("gateway", "PUT", "/images/x?format=raw", { "content-length": "1" })).status, 200);
  assert.equal((await ask("gateway", "DELETE", "/images/x")).status, 200);
  assert.deepEqual(reached.splice(0), ["stage x raw 1", "operator undefined removeImage x", "remove x"]);
  assert.deepEqual(await ask("gateway", "GET", "/images"), { answered: true, status: 200, text: "[]" });
});

test("a format is declared and a length announced; other paths belong to others", async () => {
  for (const [url, headers, status] of [
    ["/images/x", { "content-length": "1" }, 400],
    ["/images/x?format=vmdk", { "content-length": "1" }, 400],
    ["/images/x?format=raw", {}, 411],
    ["/images/x?format=raw", { "content-length": "many" }, 411],
  ] as const)
    assert.equal((await ask("gateway", "PUT", url, headers)).status, status, url);
  assert.equal((await ask("gateway", "PATCH", "/images/x")).status, 405);
  for (const url of ["/status", "/boot/d/kernel", "/images/a/b", "/imagesx"])
    assert.equal((await ask("gateway", "GET", url)).answered, false, url);
  assert.deepEqual(reached, []);
});
