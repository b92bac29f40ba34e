import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { Labels, Metric } from "../../core/telemetry/metrics.ts";
import type { InstallationStatus, ServiceEvent } from "../../model/api.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { parseMetrics } from "../../runtime/observation/metrics-text.ts";
import type { Testbed } from "../harness.ts";

/** What tests of Presence ask of a testbed: its time line, its numbers, and lost datagrams. */

export const hosts = ["h1", "h2", "h3", "h4"] as const;
export const presencePort = 7100;

const get = async (t: Testbed, path: string): Promise<string> => {
  const response = await fetch(`${t.client().url}${path}`, {
    headers: { authorization: `Bearer ${t.client().credential}` },
  });
  assert.equal(response.status, 200, path);
  return response.text();
};
export const statusOf = async (t: Testbed): Promise<InstallationStatus> =>
  JSON.parse(await get(t, "/status")) as InstallationStatus;
export const scrape = async (t: Testbed): Promise<readonly Metric[]> => {
  const read = parseMetrics(await get(t, "/metrics"));
  assert.ok(read.ok, read.ok ? "" : read.error);
  return read.value;
};
/** Sum over the series that have these labels; 0 when there is none. */
export const figure = (metrics: readonly Metric[], name: string, labels: Labels = {}): number =>
  (metrics.find((metric) => metric.name === name)?.samples ?? [])
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);

/** The time line as it stands; what happened before `fromMs` is left out. */
export const eventsSince = async (t: Testbed, fromMs: number): Promise<readonly ServiceEvent[]> => {
  const response = await fetch(`${t.client().url}/events`, {
    headers: { authorization: `Bearer ${t.client().credential}` },
  });
  const events: ServiceEvent[] = [];
  assert.ok(response.body !== null);
  for await (const event of readEventStream<ServiceEvent>(response.body)) events.push(event);
  return events.filter(({ time }) => Date.parse(time) >= fromMs);
};

/** Waits for an event; everything since `fromMs` is in the failure. */
export const untilEvent = async (
  t: Testbed,
  fromMs: number,
  what: string,
  is: (event: ServiceEvent) => boolean,
): Promise<ServiceEvent> => {
  const end = performance.now() + 60_000;
  for (;;) {
    const events = await eventsSince(t, fromMs);
    const found = events.find(is);
    if (found !== undefined) return found;
    const last = events.slice(-20).map(({ service, event, fields }) => `${service} ${event} ${JSON.stringify(fields)}`);
    assert.ok(performance.now() < end, `never so: ${what}; last:\n${last.join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};

/** A program for `tc` that loses this share of the datagrams of Presence. Returns its file. */
export const compileLoss = (t: Testbed, percent: number): string => {
  const [source, object] = [join(import.meta.dirname, "lossy.testing.c"), join(t.configFile, "..", "lossy.o")];
  const options = ["-O2", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", "-Wall", "-Werror"];
  execFileSync("clang", [...options, `-DPERCENT=${percent}`, `-DPORT=${presencePort}`, "-c", source, "-o", object]);
  return object;
};
/** At the egress of a host's uplink, where Diverter has nothing. Returns how many datagrams have been lost there since. */
export const loseDatagrams = async (t: Testbed, host: string, object: string): Promise<() => Promise<number>> => {
  const ran = async (command: string): Promise<string> => {
    const { code, stdout, stderr } = await t.exec(host, command.split(" "));
    assert.equal(code, 0, `${command}: ${stderr}`);
    return stdout;
  };
  const lost = async (): Promise<number> =>
    Number(/dropped (\d+)/.exec(await ran("tc -s qdisc show dev eth0 clsact"))?.[1]);
  const before = await lost();
  await ran(`tc filter add dev eth0 egress bpf da obj ${object} sec tc`);
  return async () => (await lost()) - before;
};
export const loseNothing = async (t: Testbed, host: string): Promise<void> => {
  const { code, stderr } = await t.exec(host, ["tc", "filter", "del", "dev", "eth0", "egress"]);
  assert.equal(code, 0, stderr);
};
