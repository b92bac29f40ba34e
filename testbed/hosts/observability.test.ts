import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { isEventName } from "../../core/telemetry/event-names.ts";
import type { Labels, Metric } from "../../core/telemetry/metrics.ts";
import type { CellSummary, InstallationStatus, ServiceEvent } from "../../model/api.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { parseMetrics } from "../../runtime/observation/metrics-text.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { execIn } from "../tenants/questions.testing.ts";

/**
 * What people and a Prometheus see of an installation that really runs: numbers that move with packets, one time line
 * over all processes, a picture that says what is so, and no secret anywhere. Two small guests ping one another.
 */
const machine = (name: string): string => `
  ${name} extends {
    boot extends VolumeCopy { x.image "<ref:/look/golden>"; }
    vm extends VM { x.memory 128; }
    disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; x.bootOrder 0; }
    net extends Subnet { x.size 16; }
    nic extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.vifName "${name}"; }
  }`;
const specification = `look extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  ${machine("left")}
  ${machine("right")}
  ping extends NetworkRule {
    x.address1 "<ref:/look/left/nic>"; x.address2 "<ref:/look/right/nic>"; x.protocol "icmp"; x.direction "1to2";
  }
}
`;

const cells = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
const get = (t: Testbed, path: string, signal?: AbortSignal, credential = t.client().credential): Promise<Response> =>
  fetch(`${t.client().url}${path}`, {
    headers: { authorization: `Bearer ${credential}` },
    ...(signal === undefined ? {} : { signal }),
  });
const scrape = async (t: Testbed): Promise<readonly Metric[]> => {
  const response = await get(t, "/metrics");
  assert.equal(response.status, 200);
  const read = parseMetrics(await response.text());
  assert.ok(read.ok, read.ok ? "" : read.error);
  return read.value;
};
/** Sum over the series that have these labels; undefined when there is none. */
const figure = (metrics: readonly Metric[], name: string, labels: Labels): number | undefined => {
  const series = metrics
    .find((metric) => metric.name === name)
    ?.samples.filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
  return series === undefined || series.length === 0 ? undefined : series.reduce((sum, { value }) => sum + value, 0);
};
const until = async <T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> => {
  const end = performance.now() + 120_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    assert.ok(performance.now() < end, `never so: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};
const inGuest = (t: Testbed, vm: string, command: string): ReturnType<Testbed["cells"]> =>
  execIn(t, vm, ["sh", "-c", command]);
const logsOf = (t: Testbed): ReadonlyMap<string, string> =>
  new Map(readdirSync(t.at.logs).map((name) => [name, readFileSync(join(t.at.logs, name), "utf8")]));
const statusOf = async (t: Testbed): Promise<InstallationStatus & { readonly cells: readonly CellSummary[] }> =>
  JSON.parse(await cells(t, "status", "--json"));

/** What `cells web` opens: the page's files, and a code that signs in the browser once. */
const thePageIsServed = async (t: Testbed): Promise<void> => {
  const { url } = t.client();
  const page = await fetch(`${url}/ui/`);
  assert.equal(page.status, 200);
  const [, script = ""] = /<script[^>]* src="([^"]+)"/.exec(await page.text()) ?? [];
  assert.equal((await fetch(new URL(script, `${url}/ui/`))).status, 200, script);
  const { code: oneTimeCode } = JSON.parse(await cells(t, "api", "POST", "/login/codes")) as { readonly code: string };
  const signIn = async () => {
    const headers = { origin: url, "cells-page": "1", "content-type": "application/json" };
    const answer = await fetch(`${url}/login`, {
      method: "POST",
      headers,
      body: JSON.stringify({ oneTimeCode, as: "the operator" }),
    });
    return { status: answer.status, cookie: answer.headers.get("set-cookie")?.split(";")[0] ?? "" };
  };
  const { status, cookie } = await signIn();
  assert.equal(status, 201);
  assert.equal((await fetch(`${url}/cells`, { headers: { cookie } })).status, 200);
  assert.deepEqual(await signIn(), { status: 401, cookie: "" });
};

const everyServiceIsMeasured = async (t: Testbed): Promise<void> => {
  const [metrics, status] = [await scrape(t), await statusOf(t)];
  const services = status.services.map(({ peer = "" }) => peer).sort();
  assert.ok(services.includes("controller.look") && services.includes("host.h2") && services.includes("gateway"));
  const up = metrics.find(({ name }) => name === "up")?.samples ?? [];
  assert.deepEqual(up.map(({ labels }) => labels.service).sort(), services);
  assert.ok(up.every(({ value }) => value === 1));
  for (const service of services) {
    assert.ok((figure(metrics, "process_resident_memory_bytes", { service }) ?? 0) > 0, service);
    if (service !== "gateway") assert.ok((figure(metrics, "cells_inputs_total", { service }) ?? 0) > 0, service);
  }
  assert.equal(figure(metrics, "cells_elements", { type: "VM", phase: "ready" }), 2);
  assert.equal(figure(metrics, "cells_vm_incarnations_total", { path: "look/left/vm" }), 1);
  assert.equal(figure(metrics, "cells_leases", { state: "held" }), 2);
  assert.equal(figure(metrics, "cells_host_vms", { stage: "running" }), 2);
  assert.ok((figure(metrics, "cells_vm_cpu_seconds_total", { path: "look/right/vm" }) ?? 0) > 0);
  assert.ok((figure(metrics, "cells_agent_space_bytes", { space: "free" }) ?? 0) > 0);
};

/** Numbers move with packets; lines of log do not. */
const packetsAreCounted = async (t: Testbed, address: string): Promise<void> => {
  const interfaceOf = { path: "look/left/nic" };
  await until(
    "the guest pings",
    async () => (await inGuest(t, "look/left/vm", `ping -c 1 -W 1 ${address}`)).code === 0,
  );
  const before = await scrape(t);
  const hostLines = (): number =>
    ["h1.log", "h2.log"].reduce((sum, name) => sum + (logsOf(t).get(name) ?? "").split("\n").length, 0);
  const linesBefore = hostLines();
  assert.equal((await inGuest(t, "look/left/vm", `ping -c 20 -i 0.1 ${address}`)).code, 0);
  await inGuest(t, "look/left/vm", `nc -w 1 ${address} 9 </dev/null`);
  const after = await scrape(t);
  const grown = (name: string, labels: Labels): number =>
    (figure(after, name, labels) ?? Number.NaN) - (figure(before, name, labels) ?? 0);
  assert.ok(grown("cells_interface_packets_total", { ...interfaceOf, direction: "sent" }) >= 20);
  assert.ok(grown("cells_interface_packets_total", { ...interfaceOf, direction: "received" }) >= 20);
  assert.ok(grown("cells_interface_bytes_total", { ...interfaceOf, direction: "sent" }) >= 20 * 64);
  assert.ok(grown("cells_rule_packets_total", { cell: "look", rule: "look/ping" }) >= 20);
  assert.ok(grown("cells_interface_drops_total", { ...interfaceOf, reason: "no-rule" }) >= 1);
  assert.ok(grown("cells_interface_drops_total", { ...interfaceOf, reason: "spoofed-mac" }) === 0);
  // On a busy machine a peer may be lost and found meanwhile; forty packets would be more.
  assert.ok(hostLines() - linesBefore < 20, "no line of log for packets, dropped ones neither");
};

const thePictureIsTrue = async (t: Testbed): Promise<void> => {
  const { hosts, servers, services, cells: summaries } = await statusOf(t);
  const machines = hosts.flatMap((host) => host.machines ?? []);
  assert.deepEqual(machines.map(({ path }) => path).sort(), ["look/left/vm", "look/right/vm"]);
  assert.ok(machines.every(({ stage, residentMiB }) => stage === "running" && (residentMiB ?? 0) > 50));
  assert.ok(hosts.every(({ load, reservedMiB }) => load !== undefined && (reservedMiB ?? 0) > 0));
  assert.ok(services.every(({ state, memoryMiB, since }) => state === "running" && (memoryMiB ?? 0) > 10 && since));
  assert.deepEqual(
    servers.map(({ state }) => state),
    ["up"],
  );
  assert.deepEqual(
    summaries.map(({ cell, waiting }) => [cell, waiting]),
    [["look", []]],
  );
  const text = await cells(t, "status");
  for (const part of ["look/left/vm", "h2", "s1", "controller.look", "14 of 14 run"])
    assert.ok(text.includes(part), text);
};

/** A service that is away is up 0; that it ended, was started and answers is told to whoever follows, by all concerned. */
const aDeathIsSeen = async (t: Testbed): Promise<void> => {
  await t.stop("dns-manager");
  assert.equal(figure(await scrape(t), "up", { service: "dns-manager" }), 0);
  assert.equal((await statusOf(t)).services.find(({ name }) => name === "dns-manager")?.state, "stopped");
  await t.start("dns-manager");
  await until("up is 1 again", async () => figure(await scrape(t), "up", { service: "dns-manager" }) === 1);

  const stopping = new AbortController();
  const since = new Date().toISOString();
  const followed = await get(t, `/events?follow=true&since=${since}`, stopping.signal);
  assert.ok(followed.body);
  const awaited = new Set([
    "supervisor service/ended SIGKILL",
    "supervisor service/started 1",
    "supervisor service/answers",
    "placer process/started",
    "controller.look peer/unreachable placer",
    "controller.look peer/reachable placer",
  ]);
  await t.kill("placer");
  for await (const { service, event, fields } of readEventStream<ServiceEvent>(followed.body)) {
    const { how, restarts, peer } = fields;
    if (service === "supervisor" && peer !== "placer") continue;
    const detail = event === "service/ended" ? how : event === "service/started" ? restarts : undefined;
    const about = event.startsWith("peer/") ? peer : detail;
    awaited.delete([service, event, about].filter((part) => part !== undefined).join(" "));
    if (awaited.size === 0) break;
  }
  stopping.abort();
  const past = (await cells(t, "events", "--since", since, "--json")).trim().split("\n");
  const events = past.map((line) => JSON.parse(line) as ServiceEvent);
  assert.deepEqual(
    events.map(({ time }) => time),
    events.map(({ time }) => time).sort(),
    "in the order of time",
  );
  assert.ok(events.some(({ service, event }) => service === "supervisor" && event === "service/ended"));
  assert.equal(figure(await scrape(t), "cells_service_restarts_total", { service: "placer" }), 1);
  assert.match(
    await cells(t, "events", "--since", since),
    /^\S+ {2}supervisor +service\/ended {2}peer=placer how=SIGKILL/m,
  );
  const ofCell = await cells(t, "events", "--cell", "look", "--service", "h1", "--json");
  assert.ok(
    ofCell
      .trim()
      .split("\n")
      .every((line) => (JSON.parse(line) as ServiceEvent).cell === "look"),
  );
};

/** Who looks after one cell sees its events by its own route, and nothing of the installation. Returns the credential. */
const aTenantSeesItsCell = async (t: Testbed): Promise<string> => {
  const made = JSON.parse(await cells(t, "credential", "add", "look", "--note", "team", "--output", "json"));
  const { credential } = made as { readonly credential: string };
  const status = async (path: string): Promise<number> => {
    const response = await get(t, path, undefined, credential);
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await status("/cells/look/events"), 200);
  assert.equal(await status("/cells/look/events?follow=true&past=false"), 200);
  for (const path of ["/events", "/events?cell=look", "/metrics", "/status"])
    assert.equal(await status(path), 403, path);
  return credential;
};

const everyLineIsOneOfTheTable = (t: Testbed): void => {
  const logs = logsOf(t);
  assert.ok(logs.size >= 9, [...logs.keys()].join(" "));
  for (const [name, text] of logs) {
    const lines = text.trim().split("\n");
    for (const line of lines) {
      const { time, service, event, fields } = JSON.parse(line) as Record<string, unknown>;
      assert.ok(typeof event === "string" && isEventName(event), `${name}: ${line}`);
      assert.ok(typeof service === "string" && typeof fields === "object" && !Number.isNaN(Date.parse(String(time))));
    }
    assert.ok(lines.length < 1000, `${name} has ${lines.length} lines for two machines`);
  }
};

/** Every secret that exists in the installation, as it lies in stores and key files. To be asked when nothing runs. */
const secretsOf = (t: Testbed, credentials: readonly string[]): readonly string[] => {
  const found = new Set<string>(credentials);
  const files = readdirSync(t.at.directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { name, parentPath } of files) {
    const path = join(parentPath, name);
    if (name === "state.sqlite") {
      const database = new DatabaseSync(path);
      for (const row of database.prepare("SELECT value FROM entries").all()) {
        for (const [, , secret] of String(row.value).matchAll(/"(pskHex|pskIdentity|exportName)":"([^"]+)"/g))
          if (secret !== undefined) found.add(secret);
      }
      database.close();
    } else if (/key/.test(name)) {
      const text = readFileSync(path, "utf8");
      if (text.includes("PRIVATE KEY"))
        for (const line of text.split("\n")) if (/^[\w+/=]{32,}$/.test(line)) found.add(line);
    }
  }
  return [...found];
};
const leaks = (secrets: readonly string[], texts: ReadonlyMap<string, string>): readonly string[] =>
  [...texts].flatMap(([name, text]) => (secrets.some((secret) => text.includes(secret)) ? [name] : []));

test("an installation shows what it does, and none of its secrets", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context) => {
  await withTestbed({ hosts: 2, servers: 1 }, async (t) => {
    const file = join(dirname(t.configFile), "look.sf");
    writeFileSync(file, specification);
    await cells(t, "apply", file, "--yes");
    const right = JSON.parse(await cells(t, "get", "look/right/nic", "--state", "--output", "json")) as {
      readonly $state: { readonly address: string };
    };
    await context.test("the gateway has the page, and a one-time code signs in", () => thePageIsServed(t));
    await context.test("every service has metrics", () => everyServiceIsMeasured(t));
    await context.test("packets are counted and not logged", () => packetsAreCounted(t, right.$state.address));
    await context.test("the status is a true picture", () => thePictureIsTrue(t));
    await context.test("a death is seen in metrics, status and time line", () => aDeathIsSeen(t));
    const credentials = [t.client().credential];
    await context.test("a cell's credential opens its own events", async () => {
      credentials.push(await aTenantSeesItsCell(t));
    });
    await context.test("every line of log is one of the table", () => everyLineIsOneOfTheTable(t));
    await context.test("no log, event or number holds a secret", async () => {
      const shown = new Map<string, string>();
      for (const path of ["/events", "/metrics", "/status", "/cells/look/events"])
        shown.set(path, await (await get(t, path)).text());
      await t.down();
      const secrets = secretsOf(t, credentials);
      assert.ok(secrets.length > 20, `only ${secrets.length} secrets were found`);
      assert.deepEqual(leaks(secrets, logsOf(t)), []);
      assert.deepEqual(leaks(secrets, shown), []);
      for (const secret of secrets) {
        writeFileSync(join(t.at.logs, "planted.log"), `{"fields":{"why":"could not open ${secret}"}}\n`);
        assert.deepEqual(leaks(secrets, logsOf(t)), ["planted.log"], "a planted one is found");
      }
    });
  });
});
