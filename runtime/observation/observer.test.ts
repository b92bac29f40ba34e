import assert from "node:assert/strict";
import { after, test } from "node:test";
import { gauge, sample } from "../../core/telemetry/metrics.ts";
import type { ServiceEvent } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { readEventStream } from "../http/event-stream.ts";
import { peerRequest, servePeers } from "../http/https.ts";
import { createTestInstallation, type TestInstallation } from "../installation.testing.ts";
import { createEventRing } from "./events.ts";
import { parseMetrics } from "./metrics-text.ts";
import { createObserver, lineWriterTo, observed } from "./observer.ts";

const installations: TestInstallation[] = [];
after(async () => {
  for (const installation of installations) await installation.remove();
});

const collecting = (): { readonly lines: string[]; write(line: string): void } => {
  const lines: string[] = [];
  return { lines, write: (line) => void lines.push(line) };
};

test("a line of log is one JSON object with time, service, event and fields, and holds no secret", () => {
  const to = collecting();
  const observer = createObserver("placer", lineWriterTo(to));
  observer.log("host/joined", { host: "h1", pskHex: "deadbeef", layer: { exportName: "x12" } });
  assert.equal(to.lines.length, 1);
  const { time, ...line } = JSON.parse(to.lines[0] ?? "") as Record<string, unknown>;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const fields = { host: "h1", pskHex: "[Redacted]", layer: { exportName: "[Redacted]" } };
  assert.deepEqual(line, { level: "info", service: "placer", event: "host/joined", fields });
});

test("a ring keeps the newest, says where an event belongs, and goes on from what was kept elsewhere", () => {
  const ring = createEventRing("controller.shop", "life", 3);
  ring.seed([{ event: "element/state", fields: { path: "shop/a", type: "VM" }, wallMs: 0 }]);
  const seen: string[] = [];
  const unsubscribe = ring.subscribe(({ id }) => seen.push(id));
  for (let number = 0; number < 3; number += 1)
    ring.record({ event: "process/started", fields: { number }, wallMs: 1 });
  unsubscribe();
  ring.record({ event: "peer/reachable", fields: { peer: "placer" }, wallMs: 2 });
  assert.deepEqual(seen, ["life-2", "life-3", "life-4"]);
  assert.deepEqual(
    ring.past().map(({ id }) => id),
    ["life-3", "life-4", "life-5"],
  );
  assert.equal(ring.past()[0]?.cell, "shop");
  const placer = createEventRing("placer", "life");
  placer.record({ event: "placement/reserved", fields: { vm: "ab-1", path: "shop/web/vm" }, wallMs: 0 });
  assert.deepEqual(placer.past(), [
    {
      id: "life-1",
      time: "1970-01-01T00:00:00.000Z",
      service: "placer",
      event: "placement/reserved",
      cell: "shop",
      path: "shop/web/vm",
      fields: { vm: "ab-1" },
    },
  ]);
});

test("over mutual TLS the gateway sees numbers and events, and nobody else does", async () => {
  const installation = await createTestInstallation("observer");
  installations.push(installation);
  const name = peerName("placer");
  const { configuration } = await installation.configure(name);
  const { configuration: gateway } = await installation.configure(peerName("gateway"));
  const { configuration: other } = await installation.configure(peerName("controller.shop"));
  const observer = createObserver(name, lineWriterTo(collecting()));
  observer.measures(() => [gauge("cells_x", "X.", [sample(7)])]);
  observer.measures(() => {
    throw new Error("a collector that fails");
  });
  const server = await servePeers(
    configuration,
    observed(observer, (_request, response) => void response.end("its own")),
  );
  try {
    const get = (from: typeof gateway, path: string) => peerRequest(from, name, { method: "GET", path });
    const metrics = await get(gateway, "/metrics");
    assert.equal(metrics.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    const read = parseMetrics(await metrics.text());
    assert.ok(read.ok);
    assert.ok(read.value.some((metric) => metric.name === "cells_x" && metric.samples[0]?.value === 7));

    observer.log("service/restored", { reservations: 1 });
    const past = await get(gateway, "/events");
    const events: ServiceEvent[] = [];
    for await (const event of readEventStream<ServiceEvent>(past.body)) events.push(event);
    assert.deepEqual(
      events.map(({ service, event }) => `${service} ${event}`),
      ["placer service/restored"],
    );
    const followed = readEventStream<ServiceEvent>((await get(gateway, "/events?follow=true")).body);
    assert.equal((await followed.next()).value?.event, "service/restored");
    observer.log("host/left", { host: "h1" });
    assert.equal((await followed.next()).value?.event, "host/left");
    await followed.return(undefined);

    for (const path of ["/metrics", "/events"]) {
      const refused = await get(other, path);
      assert.equal(refused.status, 403);
      assert.match(await refused.text(), /only the gateway/);
    }
    assert.equal(await (await get(other, "/elsewhere")).text(), "its own");
  } finally {
    await server.stop();
  }
});
