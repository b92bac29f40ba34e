import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createCellManager } from "../../core/cells/manager.ts";
import { createController } from "../../core/controller/controller.ts";
import type { ControllerResponse } from "../../core/controller/requests/requests.ts";
import type { ControllerOptions, RootOptions } from "../../core/controller/state.ts";
import type { ActualHost, DesiredVm } from "../../core/documents/vocabulary.ts";
import { createPlacer } from "../../core/placer/placer.ts";
import type { HostState } from "../../host/known.ts";
import { createHostManager } from "../../host/service/manager.ts";
import type { Action } from "../../host/service/planner.ts";
import { cellName, hostName, ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { serviceOptions } from "../../runtime/controller/services/root-secret.ts";
import { runAuthority } from "../../runtime/identity/authority/authority.ts";
import { keepIdentity } from "../../runtime/identity/own/enrol.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";

/*
 * From `x.gateway` in the root cell's model to the gateway's certificate and its place on the management network: the
 * authority, the root controller, the Cell Manager, the primary cell's controller, the Placer and a Host Manager, all real,
 * with TLS on loopback in between. There is no machine: what the host would start is asked of it.
 */
const at = "10.0.0.40";
const gateway: JsonObject = {
  "x.type": "VM",
  "x.memory": 160,
  "x.desiredState": "on",
  "x.data": { service: { roles: { gateway: {} } } },
};
const card: JsonObject = {
  "x.type": "VirtualInterface",
  "x.vm": "<ref:../gateway>",
  "x.subnet": "<ref:../net>",
  "x.address": at,
};
const net: JsonObject = { "x.type": "Subnet", "x.addressRange": "management" };
const root: JsonObject = {
  root: {
    "x.type": "Cell",
    cells: {
      primary: {
        "x.type": "CellController",
        "x.name": "primary",
        "x.gateway": at,
        "x.cell": { primary: { "x.type": "Cell", net, gateway, card } },
      },
    },
  },
};
const host: ActualHost = {
  host: hostName("h1"),
  state: "up",
  address: ipv4("10.0.1.1"),
  mac: mac("02:00:00:00:01:01"),
  memoryMiB: 1024,
  reservedMiB: 0,
  cpus: 2,
  cpuSpeedMHz: 0,
  accelerator: "tcg",
};

let installation: TestInstallation;
let authority: ProcessConfiguration;
let fingerprint = "";
const closing: (() => Promise<void> | void)[] = [];
const peers: Record<string, string> = {};

/** The authority is the one that the test's certificates are from; its own it makes itself. */
const configure = async (name: string, change: Partial<ProcessConfiguration> = {}): Promise<ProcessConfiguration> => {
  const peersFile = join(installation.directory, "all-peers.json");
  const place = name === "authority" ? "place-of-authority" : name;
  const { configuration } = await installation.configure(peerName(place), {
    change: { name: peerName(name), peersFile, ...change },
  });
  const { distributionPort, httpPort } = configuration;
  peers[name] = `127.0.0.1:${distributionPort}:${httpPort}`;
  await writeFile(peersFile, JSON.stringify({ peers }));
  return configuration;
};

before(async () => {
  installation = await createTestInstallation("entrance");
  const { httpPort: enrolmentPort = 0 } = (await installation.configure(peerName("spare"))).configuration;
  const own = join(installation.directory, "authority");
  const directory = join(installation.directory, "authority-own");
  await cp(own, join(directory, "authority"), { recursive: true });
  fingerprint = fingerprintOfCertificate(await readFile(join(own, "authority.pem"), "utf8"));
  const certificate = {
    certFile: join(directory, "c.pem"),
    keyFile: join(directory, "k.pem"),
    caFile: join(directory, "a.pem"),
  };
  authority = await configure("authority", { role: "authority", directory, certificate, authority: { enrolmentPort } });
  const running = await runAuthority(authority);
  closing.push(running.stop);
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await installation.remove();
});

const run = async (name: string, of: (configuration: ProcessConfiguration) => Parameters<typeof runService>[0]) => {
  const configuration = await configure(name);
  const running = await runService(of(configuration));
  closing.push(() => running.stop());
  return running;
};
/** What a controller makes services with, as its process would have it. */
const meansOf = async (configuration: ProcessConfiguration, cell: string): Promise<RootOptions> => {
  const controller = { cell, cellUid: cell, cellNumber: 1, domain: "", mac: "", credentialHashes: [] };
  const enrolment = { authority: "10.0.0.31:7102", fingerprint };
  return (await serviceOptions({ ...configuration, controller, enrolment })) ?? assert.fail("it was enrolled");
};
const runCell = async (cell: string, cellUid: string, more: (means: RootOptions) => Partial<ControllerOptions>) => {
  const configuration = await configure(`controller.${cell}`);
  const means = await meansOf(configuration, cell);
  const service = createController({
    cell: cellName(cell),
    cellUid: uid(cellUid),
    cellNumber: cell === "root" ? 1 : 2,
    domain: "cells.internal",
    address: ipv4("10.0.3.2"),
    mac: mac("02:00:00:00:00:01"),
    self: configuration.name,
    cellManager: true as const,
    ...more(means),
  });
  const running = await runService({ configuration, service });
  closing.push(() => running.stop());
  return { running, means };
};
/** What the host would do next, when nothing of it was done. */
const nextOf = async (running: RunningService): Promise<readonly Action[]> => {
  const actions = (await running.request({ kind: "next" })) as unknown as readonly Action[];
  for (const action of actions)
    if (action.kind === "implement-network") {
      const outcome = {
        kind: action.kind,
        revision: "",
        allocation: { interfaces: [], policies: [] },
        error: "nobody does it here",
      };
      await running.request({ kind: "done", outcome } as unknown as Json);
    }
  return actions;
};

test("the root cell's model alone gives the primary cell its gateway: at its controller, the authority and the host", async () => {
  let state: HostState | null = null;
  const running = await run("host.h1", (configuration) => {
    const service = createHostManager({ host, wake: () => undefined, hasAuthority: true });
    const restore: typeof service.restore = (restored) => {
      state = service.restore(restored);
      return state;
    };
    return { configuration, service: { ...service, restore } };
  });
  await running.request({ kind: "found", machines: [] });
  const cells = await run("cell-manager", (configuration) => ({
    configuration,
    service: createCellManager({ self: configuration.name, firstNumber: 2 }),
  }));
  // What its maker reads in the root cell's model.
  await cells.request({ kind: "found", controllers: [] });
  await run("placer", (configuration) => ({
    configuration,
    service: createPlacer({ self: configuration.name, hosts: [peerName("host.h1")] }),
  }));
  const { running: controller } = await runCell("root", "root", (means) => ({ root: means }));
  const primary = await runCell("primary", "root-1", (services) => ({ services, child: true }));

  const known = (): HostState => state ?? assert.fail("the host has started");
  await eventually("the host has heard that there is no way in", () => known().entrances.heard);
  assert.equal(known().entrances.known.size, 0);
  const answer = (await controller.request({ method: "PUT", path: "", json: root })) as unknown as ControllerResponse;
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  await eventually("the host knows of it", () => known().entrances.known.get(peerName("controller.primary")) === at);

  await eventually("the VM is desired at the host", () => known().vms.size === 1);
  const [wanted] = known().vms.values();
  const { desired, client } = wanted ?? assert.fail("it was there");
  assert.deepEqual([client, desired.path], ["controller.primary", "primary/gateway"]);
  let admitted: DesiredVm["interfaces"] = [];
  await eventually("its interface is made", async () => {
    for (const action of await nextOf(running)) {
      assert.notEqual(action.kind, "refuse-machine");
      if (action.kind === "implement-network") admitted = action.global.interfaces.map((each) => each.desired);
    }
    return admitted.length > 0;
  });
  assert.deepEqual(
    admitted.map(({ address, management }) => [address, management]),
    [[at, true]],
  );

  // The guest shows the token that it was given, and is the gateway from then on.
  const { roles } = desired.data as unknown as { roles: { gateway: { name: string; token: string } } };
  assert.equal(roles.gateway.token, primary.means.token(desired.uid, desired.incarnation, "gateway").token);
  const own = join(installation.directory, "gateway");
  const configuration = await configure("gateway", {
    certificate: { certFile: join(own, "c.pem"), keyFile: join(own, "k.pem"), caFile: join(own, "a.pem") },
    enrolment: { authority: `127.0.0.1:${authority.authority?.enrolmentPort}`, fingerprint },
  });
  const refused: string[] = [];
  const { ready, stop } = keepIdentity({
    configuration,
    token: roles.gateway.token,
    log: (_event, fields) => refused.push(String(fields.why)),
  });
  closing.push(stop);
  await eventually(`the gateway is enrolled: ${refused.join("; ")}`, () =>
    Promise.race([ready.then(() => true), new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))]),
  );
  const certificate = new X509Certificate(await readFile(configuration.certificate.certFile));
  assert.match(certificate.subject, /CN=gateway/);
  assert.match(certificate.subjectAltName ?? "", /10\.0\.0\.40/);
});
