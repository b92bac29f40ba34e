import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ActualVm, CellPolicy, DesiredVm } from "../core/documents/vocabulary.ts";
import { readAnything, type Service } from "../core/env.ts";
import { cellName, elementPath, hostName, ipv4, mac, peerName, uid } from "../model/cell/identifiers.ts";
import type { Json } from "../model/json/json.ts";
import { peerRequest } from "../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../runtime/installation.ts";
import { runService } from "../runtime/process/process.ts";
import { createQemuDriver } from "./drivers/hypervisor/qemu.ts";
import type { HostStatus } from "./host-requests.ts";
import { tryBootDisks } from "./root-vm/boot-trial.testing.ts";

/**
 * The inside of `main.test.ts`: a Host Manager process with its real drivers, and a controller that desires documents at
 * it, in namespaces of their own. Arguments: a directory, then the parent cgroups. Exit status 0 when all of it held.
 */
const [directory = "", ...cgroups] = process.argv.slice(2);
const ip = (...args: readonly string[]) => execFileSync("ip", args);
const shop = peerName("controller.shop");
const h1 = peerName("host.h1");

interface Controller {
  readonly actual: Map<string, Json>;
  reachable: boolean;
}
/** Desires what it is asked to and keeps what it is told. */
const controllerService: Service<Controller> = {
  restore: () => ({ actual: new Map(), reachable: false }),
  step: (state, input) => {
    switch (input.kind) {
      case "start":
        return { state, effects: [{ kind: "subscribe", to: h1, prefix: `${shop}/` }] };
      case "actual":
        if (input.value === null) state.actual.delete(input.key);
        else state.actual.set(input.key, input.value);
        return { state, effects: [] };
      case "request": {
        const { key = null, value = null } = input.request as { readonly key?: string; readonly value?: Json };
        const response = state.actual.get(`${shop}/vm/c1-1`) ?? null;
        const reply = { kind: "reply", id: input.id, response } as const;
        return { state, effects: key === null ? [reply] : [{ kind: "desire", to: h1, key, value }, reply] };
      }
      default:
        return { state, effects: [] };
    }
  },
  entitled: () => false,
  accepts: () => false,
  read: readAnything,
};

const configurationOf = async (
  name: string,
  role: ProcessConfiguration["role"],
  address: string,
): Promise<ProcessConfiguration> => {
  const own = join(directory, name);
  await mkdir(join(own, "run"), { recursive: true });
  return {
    name: peerName(name),
    role,
    address,
    directory: own,
    runDirectory: join(own, "run"),
    certificate: await issueCertificate(join(directory, "authority"), peerName(name), [address]),
    peersFile: join(directory, "peers.json"),
  };
};

/** With what its unit leaves it of root's rights on a real machine, and no more. */
const unit = readFileSync(join(import.meta.dirname, "../packaging/systemd/cells-host.service"), "utf8");
const capabilities = (/^CapabilityBoundingSet=(.*)$/m.exec(unit)?.[1] ?? assert.fail())
  .split(" ")
  .map((capability) => `+${capability.replace("CAP_", "").toLowerCase()}`);
const startHost = (file: string): ChildProcess =>
  spawn(
    "setpriv",
    [
      `--bounding-set=-all,${capabilities.join(",")}`,
      "--no-new-privs",
      "--",
      process.execPath,
      join(import.meta.dirname, "main.ts"),
      file,
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
const ended = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => child.once("exit", (code) => resolve(code)));

ip("link", "set", "lo", "up");
ip("link", "add", "up0", "type", "veth", "peer", "name", "wire0");
for (const device of ["up0", "wire0"]) ip("link", "set", device, "up");
for (const address of ["10.0.1.1/16", "10.0.3.1/16"]) ip("addr", "add", address, "dev", "up0");
// Not from /sys, which shows the devices of the namespace that it was mounted in.
const [uplink] = JSON.parse(execFileSync("ip", ["-j", "link", "show", "up0"], { encoding: "utf8" })) as {
  readonly address: string;
}[];
const uplinkMac = uplink?.address ?? "";

await createAuthority(join(directory, "authority"));
await writeFile(
  join(directory, "peers.json"),
  JSON.stringify({ peers: { "host.h1": "10.0.1.1", "controller.shop": "10.0.3.1" } }),
);
const hostConfiguration: ProcessConfiguration = {
  ...(await configurationOf("host.h1", "host", "10.0.1.1")),
  host: { host: "h1", uplink: "up0", mac: uplinkMac, memoryMiB: 512, reservedMiB: 128, cpus: 1, cgroups },
};
const hostFile = join(directory, "host.json");
await writeFile(hostFile, JSON.stringify(hostConfiguration));
const controllerConfiguration = await configurationOf("controller.shop", "controller", "10.0.3.1");
const controller = await runService({ configuration: controllerConfiguration, service: controllerService });

const seen = async (): Promise<ActualVm | null> => (await controller.request({})) as unknown as ActualVm | null;
const until = async (holds: (vm: ActualVm | null) => boolean): Promise<ActualVm | null> => {
  for (;;) {
    const vm = await seen();
    if (holds(vm)) return vm;
    await sleep(50);
  }
};
const desire = (key: string, value: unknown): Promise<Json> => controller.request({ key, value: value as Json });
const askHost = async (method: string, path: string, body?: object): Promise<{ status: number; json: unknown }> => {
  const answer = await peerRequest(controllerConfiguration, h1, {
    method,
    path,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, json: JSON.parse(await answer.text()) };
};

const policy: CellPolicy = {
  cell: cellName("shop"),
  cellNumber: 1,
  version: 1,
  rules: [],
  networks: [],
  controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:03:01"), identity: 100 },
  hosts: [hostName("h1")],
};
const vm = (incarnation: number): DesiredVm => ({
  uid: uid("c1-1"),
  cell: cellName("shop"),
  path: elementPath("shop/web"),
  name: "web",
  incarnation,
  power: "on",
  memoryMiB: 64,
  cpus: 1,
  disks: [],
  interfaces: [
    {
      uid: uid("c1-2"),
      path: elementPath("shop/web/nic"),
      mac: mac("52:54:00:00:00:02"),
      address: ipv4("10.64.0.2"),
      prefixLength: 24,
      gateway: ipv4("10.64.0.1"),
      nameServer: ipv4("10.0.3.1"),
      hostName: "web",
      domain: "shop.cells.internal",
      identity: 1,
      vmIdentity: 2,
      subnetIdentity: 3,
      audience: [],
    },
  ],
  data: null,
});

/** Every program at a device of this namespace: a program keeps its number as long as it is the same one. */
const attachedPrograms = (): readonly string[] => {
  const devices = JSON.parse(execFileSync("ip", ["-j", "link", "show"], { encoding: "utf8" })) as {
    readonly ifname: string;
  }[];
  return devices.flatMap(({ ifname }) =>
    ["ingress", "egress"].flatMap((side) => {
      const filters = execFileSync("tc", ["filter", "show", "dev", ifname, side], { encoding: "utf8" });
      return [...filters.matchAll(/ id (\d+)/g)].map(([, id]) => `${ifname} ${side} ${id}`);
    }),
  );
};

/** proc_pid_status(5): a machine's process is nobody, can become nobody else, and sits where it is limited. */
const checkPrivileges = async (pid: number): Promise<void> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const field = (name: string): string => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1] ?? "absent";
  for (const id of ["Uid", "Gid"]) assert.doesNotMatch(field(id), /\b0\b/);
  assert.equal(field("Groups").trim(), "");
  for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) assert.match(field(set), /^0+$/, set);
  assert.deepEqual([field("NoNewPrivs"), field("Seccomp")], ["1", "2"]);
  const adjustment = (of: string | number) => Number(readFileSync(`/proc/${of}/oom_score_adj`, "utf8"));
  assert.ok(adjustment(pid) > adjustment(host.pid ?? 0), "the machine goes before its Host Manager");
  const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
  // dash sets PWD by itself.
  const names = environment.map((line) => line.split("=")[0]).filter((name) => name !== "PWD");
  assert.deepEqual(names.sort(), ["LC_ALL", "PATH"]);
  const limits = new Map<string, string>();
  for (const parent of cgroups) {
    const group = join(parent, "cells-c1-1");
    assert.ok(readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").includes(String(pid)), group);
    for (const file of ["memory.limit_in_bytes", "cpu.shares", "cpu.cfs_quota_us", "pids.max"])
      for (const [where, directory] of [
        ["machine", group],
        ["all", parent],
      ] as const)
        if (existsSync(join(directory, file)))
          limits.set(`${where} ${file}`, readFileSync(join(directory, file), "utf8").trim());
  }
  const mebibytes = (count: number): string => String(count * 1024 * 1024);
  const expected: Readonly<Record<string, string>> = {
    "machine memory.limit_in_bytes": mebibytes(64 + 256),
    "machine cpu.shares": "1024",
    "machine cpu.cfs_quota_us": "125000",
    "machine pids.max": "129",
    "all memory.limit_in_bytes": mebibytes(512 - 128),
    "all cpu.shares": "512",
  };
  for (const [what, value] of Object.entries(expected))
    if (limits.has(what)) assert.equal(limits.get(what), value, what);
  assert.ok(cgroups.length === 0 || limits.size > 0);
};

/** Its control socket takes one client, which the Host Manager is. */
const recordedPid = async (): Promise<number> => {
  const record = await readFile(join(hostConfiguration.runDirectory, "vms", "c1-1", "record.json"), "utf8");
  return (JSON.parse(record) as { readonly process: { readonly pid: number } }).process.pid;
};

const driver = createQemuDriver({ runDirectory: hostConfiguration.runDirectory });
let host = startHost(hostFile);
try {
  await desire("policy/shop", policy);
  await desire("vm/c1-1", vm(1));
  await until((actual) => actual?.phase === "ready" && actual.power === "on");
  const before = (await askHost("GET", "/status")).json as HostStatus;
  assert.deepEqual([before.vms, before.usedMiB, before.host], [1, 64, "h1"]);
  await checkPrivileges(await recordedPid());
  const programs = attachedPrograms();
  assert.ok(programs.length >= 2, "programs at the tap and at the uplink");
  const exec = await askHost("POST", "/exec", { vm: "c1-1", incarnation: 1, command: ["/bin/true"], timeoutMs: 300 });
  assert.equal(exec.status, 504, "this machine has no guest system, so nobody answers");
  assert.equal((await askHost("POST", "/exec", { vm: "c1-9", command: ["/bin/true"] })).status, 404);

  const gone = ended(host);
  host.kill("SIGTERM");
  assert.equal(await gone, 0);
  const [machine] = await driver.list();
  assert.equal(machine?.incarnation, 1, "the machine outlives its Host Manager");
  await driver.close();
  host = startHost(hostFile);
  await until((actual) => actual?.phase === "ready");
  for (;;) {
    // Its edge listens a moment after it has adopted.
    const status = await askHost("GET", "/status").catch(() => null);
    if (status?.status === 200 && (status.json as HostStatus).vms === 1) break;
    await sleep(50);
  }
  process.kill(machine?.pid ?? 0, 0);
  assert.deepEqual(attachedPrograms(), programs, "the same programs, so the same maps, as before the restart");

  process.kill(machine?.pid ?? 0, "SIGKILL");
  const crashed = await until((actual) => actual?.ended === "crashed");
  assert.equal(crashed?.incarnation, 1);
  await desire("vm/c1-1", vm(2));
  await until((actual) => actual?.incarnation === 2 && actual.power === "on");
  await tryBootDisks({
    directory,
    until,
    vm: vm(3),
    desire: (document) => desire("vm/c1-1", document),
    machine: recordedPid,
    restartHost: async () => {
      const gone = ended(host);
      host.kill("SIGTERM");
      await gone;
      host = startHost(hostFile);
    },
  });
  await desire("vm/c1-1", null);
  await until((actual) => actual === null);
  const taps = execFileSync("ip", ["-o", "link", "show", "type", "tun"], { encoding: "utf8" });
  assert.equal(taps, "", "its tap is gone");
  assert.ok(cgroups.every((parent) => !existsSync(join(parent, "cells-c1-1"))));
} finally {
  const gone = ended(host);
  host.kill("SIGTERM");
  await gone;
  const rest = createQemuDriver({ runDirectory: hostConfiguration.runDirectory, cgroups });
  for (const machine of await rest.list()) await rest.stop(machine.vm, 0);
  await rest.close();
  await controller.stop();
}
