import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { AgentBinned } from "../../core/documents/bin.ts";
import type {
  AgentImage,
  AgentLease,
  AgentLeaseActual,
  AgentReadersActual,
  AgentVolumeActual,
  Attachment,
  DesiredDisk,
  Layer,
} from "../../core/documents/vocabulary.ts";
import { readAnything, type Service } from "../../core/env.ts";
import { hostName, type PeerName, peerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";
import { isAlive, signal, waitGone } from "../drivers/hypervisor/process/process.ts";
import { createStorageDriver } from "../drivers/storage/driver-nbd.ts";
import { qemuIdentity, setprivArguments } from "../drivers/unix-users.ts";
import { findExports } from "./export-process.ts";

/** Two real agents, a Storage Manager reduced to its words, and QEMU's own tools as the VM's host. Needs root and QEMU. */
const run = promisify(execFile);
const manager = peerName("storage-manager");
const host = peerName("host.h1");
const agents = [peerName("agent.s1"), peerName("agent.s2")] as const;
const origin = uid("test-1");
const overlay = uid("test-2");
const fromImage = uid("test-3");
const children: ChildProcess[] = [];
let base = "";
let words: RunningService;
const actual = new Map<string, Json>();
const agentProcesses = new Map<PeerName, ChildProcess>();

/** Says what the test asks it to say, remembers what it hears. */
const managerService: Service<null> = {
  restore: () => null,
  step: (state, input) => {
    if (input.kind === "start")
      return { state, effects: agents.map((to) => ({ kind: "subscribe" as const, to, prefix: "" })) };
    if (input.kind === "actual") {
      const key = `${input.from}/${input.key}`;
      if (input.value === null) actual.delete(key);
      else actual.set(key, input.value);
    }
    if (input.kind !== "request") return { state, effects: [] };
    const { to, key, value } = input.request as { to: PeerName; key: string; value: Json };
    const reply = { kind: "reply" as const, id: input.id, response: null };
    return { state, effects: [{ kind: "desire", to, key, value }, reply] };
  },
  entitled: () => false,
  accepts: () => false,
  read: readAnything,
};

const desire = (to: PeerName, key: string, value: Json): Promise<Json> => words.request({ to, key, value });

const until = <T>(what: string, probe: () => T | undefined | false): Promise<T> =>
  eventually(what, probe, () => `; known: ${[...actual.keys()].join(" ")}`);
/** Runs `work`, prints how long it took; nothing is asserted about it. */
async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const from = performance.now();
  const result = await work();
  console.log(`  ${what}: ${Math.round(performance.now() - from)} ms`);
  return result;
}
const actualOf = <T>(agent: PeerName, key: string): T | undefined => actual.get(`${agent}/${key}`) as T | undefined;
const volumeReady = (agent: PeerName, volume: Uid): Promise<AgentVolumeActual> =>
  until(`volume ${volume}`, () => {
    const found = actualOf<AgentVolumeActual>(agent, `volume/${volume}`);
    return found?.phase === "ready" && found;
  });
const readersReady = (agent: PeerName, volume: Uid): Promise<Layer> =>
  until(`readers ${volume}`, () => actualOf<AgentReadersActual>(agent, `readers/${volume}`)?.layer ?? undefined);

/** Asks for a lease and waits until that epoch holds; null: a fence. */
async function lease(agent: PeerName, volume: Uid, epoch: number, incarnation: number | null): Promise<Layer | null> {
  const holder = incarnation === null ? null : { vm: uid("test-9"), incarnation, host: hostName("h1") };
  const asked: AgentLease = { volume, epoch, holder };
  await desire(agent, `lease/${volume}`, asked as unknown as Json);
  const found = await until(`lease ${volume} ${epoch}`, () => {
    const now = actualOf<AgentLeaseActual>(agent, `lease/${volume}`);
    return now?.epoch === epoch && now.phase === "ready" && now;
  });
  return found.layer;
}

const configurations = new Map<PeerName, ProcessConfiguration>();
async function configure(name: PeerName, role: ProcessConfiguration["role"]): Promise<ProcessConfiguration> {
  const directory = join(base, name);
  await mkdir(join(directory, "run"), { recursive: true, mode: 0o711 });
  const configuration: ProcessConfiguration = {
    name,
    role,
    address: "127.0.0.1",
    distributionPort: await freePort(),
    httpPort: await freePort(),
    directory,
    runDirectory: join(directory, "run"),
    certificate: await issueCertificate(join(base, "ca"), name, ["127.0.0.1"]),
    peersFile: join(base, "peers.json"),
    ...(role === "agent" ? { agent: { server: name.slice(6), imagesDirectory: join(base, "images") } } : {}),
  };
  await writeFile(join(directory, "configuration.json"), JSON.stringify(configuration), { mode: 0o600 });
  configurations.set(name, configuration);
  return configuration;
}

function startAgent(name: PeerName): void {
  const main = join(import.meta.dirname, "main.ts");
  const child = spawn(process.execPath, [main, join(base, name, "configuration.json")], {
    stdio: ["ignore", process.env.STORAGE_TEST_LOG ? "inherit" : "ignore", "inherit"],
  });
  children.push(child);
  agentProcesses.set(name, child);
}
async function stopAgent(name: PeerName): Promise<void> {
  const child = agentProcesses.get(name);
  if (child === undefined || child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}
const exportsOf = (agent: PeerName) => findExports(join(base, agent, "run", "exports"));

/** The chain as the VM's QEMU would have it, under QEMU's user, readable and writable at a unix socket. */
interface Machine {
  io(...commands: string[]): Promise<string>;
  stop(): Promise<void>;
}
let machines = 0;
async function startMachine(attachment: Attachment, reconnectDelay: number): Promise<Machine> {
  const configuration = configurations.get(host);
  assert.ok(configuration);
  const disk = { connection: uid("test-5"), readOnly: false, attachment } as DesiredDisk;
  const composed = await createStorageDriver({ configuration }).compose(disk);
  machines += 1;
  const directory = join(base, `machine-${machines}`);
  await mkdir(directory, { mode: 0o777 });
  await chmod(directory, 0o777);
  const socket = join(directory, "nbd");
  const child = spawn(
    "setpriv",
    [
      ...setprivArguments(qemuIdentity),
      "qemu-storage-daemon",
      ...composed.objects.flatMap((object) => ["--object", object]),
      ...composed.blockdevs.flatMap((node) => [
        "--blockdev",
        node.replace(/"reconnect-delay":\d+/, `"reconnect-delay":${reconnectDelay}`),
      ]),
      "--nbd-server",
      `addr.type=unix,addr.path=${socket}`,
      "--export",
      `type=nbd,id=e,node-name=${composed.node},name=disk,writable=on`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  children.push(child);
  for (let tries = 0; !(await stat(socket).catch(() => null)); tries += 1) {
    if (child.exitCode !== null || tries > 2000) throw new Error(`the composed chain did not open: ${said}`);
    await sleep(10);
  }
  const image = `nbd+unix:///disk?socket=${socket}`;
  return {
    io: async (...commands) => {
      const { stdout } = await run("qemu-io", ["-f", "raw", ...commands.flatMap((c) => ["-c", c]), image]);
      if (/failed/i.test(stdout)) throw new Error(stdout);
      return stdout;
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    },
  };
}

before(async () => {
  base = await mkdtemp(join(tmpdir(), "storage-"));
  await chmod(base, 0o711);
  await createAuthority(join(base, "ca"));
  await mkdir(join(base, "images", "small"), { recursive: true });
  const image = join(base, "images", "small");
  await run("qemu-img", ["create", "-q", "-f", "qcow2", join(image, "disk.qcow2"), "32M"]);
  await run("qemu-io", ["-f", "qcow2", "-c", "write -P 0x11 0 8M", join(image, "disk.qcow2")]);
  await writeFile(join(image, "kernel"), "a kernel");
  await writeFile(join(image, "initrd"), "an initial RAM file system");
  const boot = { kernel: "kernel", initrd: "initrd", commandLine: "console=ttyS0" };
  const manifest = { name: "small", digest: "d1", disk: "disk.qcow2", sizeMiB: 32, boot };
  await writeFile(join(image, "manifest.json"), JSON.stringify(manifest));
  const peers: Record<string, string> = {};
  for (const [name, role] of [
    [manager, "storage-manager"],
    [host, "host"],
    [peerName("gateway"), "gateway"],
    [agents[0], "agent"],
    [agents[1], "agent"],
  ] as const) {
    const { distributionPort, httpPort } = await configure(name, role);
    peers[name] = `127.0.0.1:${distributionPort}:${httpPort}`;
  }
  await writeFile(join(base, "peers.json"), JSON.stringify({ peers }));
  for (const agent of agents) startAgent(agent);
  words = await runService({ configuration: configurations.get(manager)!, service: managerService });
});

after(async () => {
  for (const agent of agents) await stopAgent(agent);
  await words?.stop();
  for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  for (const agent of agents)
    for (const found of exportsOf(agent)) {
      signal(found.process, "SIGKILL");
      await waitGone(found.process, 5000);
    }
  await rm(base, { recursive: true, force: true });
});

test("an overlay on one server over an origin on another, through leases, fences, crashes and restarts", async () => {
  const [s1, s2] = agents;
  await until("servers", () => actual.has(`${s1}/server`) && actual.has(`${s2}/server`));
  assert.ok(actual.has(`${s1}/image/small`));

  await desire(s1, `volume/${origin}`, { uid: origin, source: { kind: "image", image: "small" }, sizeMiB: null });
  const made = await timed("volume from an image", () => volumeReady(s1, origin));
  assert.equal(made.sizeMiB, 32);
  assert.equal(made.boot?.digest, "d1");
  await desire(s1, `readers/${origin}`, { volume: origin });
  await desire(s2, `volume/${overlay}`, { uid: overlay, source: { kind: "overlay" }, sizeMiB: 48 });
  const bottom = await timed("read-only export", () => readersReady(s1, origin));
  await timed("overlay", () => volumeReady(s2, overlay));

  const attach = (epoch: number, top: Layer | null): Attachment => {
    assert.ok(top);
    return { volume: overlay, epoch, sizeMiB: 48, layers: [top, bottom], boot: made.boot };
  };
  const first = await timed("first grant", () => lease(s2, overlay, 1, 1));
  assert.notEqual(first?.pskHex, bottom.pskHex);
  const old = await startMachine(attach(1, first), 1);
  await old.io("read -P 0x11 0 8M", "read -P 0 8M 40M", "write -P 0x22 1M 1M", "write -P 0x33 47M 1M", "flush");

  // A stranger who knows the address, but neither name nor key.
  const stranger = `nbd://127.0.0.1:${first?.port}/${first?.exportName}`;
  await assert.rejects(run("qemu-io", ["-f", "raw", "-r", "-c", "read 0 512", stranger]));
  const served = exportsOf(s2)[0];
  assert.ok(served);
  const privileges = await readFile(`/proc/${served.process.pid}/status`, "utf8");
  assert.match(privileges, /^Uid:\s+64056\s+64056/m);
  assert.match(privileges, /^CapEff:\s+0+$/m);
  const command = await readFile(`/proc/${served.process.pid}/cmdline`, "utf8");
  assert.ok(!command.includes(first?.pskHex ?? "?") && !command.includes(first?.exportName ?? "?"));

  await timed("fence", () => lease(s2, overlay, 2, null));
  assert.equal(isAlive(served.process), false);
  await assert.rejects(old.io("write -P 0x44 2M 64k", "flush"));
  const second = await timed("next grant", () => lease(s2, overlay, 3, 2));
  assert.notEqual(second?.exportName, first?.exportName);
  const next = await startMachine(attach(3, second), 30);
  await assert.rejects(old.io("write -P 0x44 2M 64k", "flush"));
  await old.stop();
  await next.io("read -P 0x22 1M 1M", "read -P 0x33 47M 1M", "read -P 0x11 2M 6M", "write -P 0x55 3M 64k");

  await stopAgent(s2);
  const before = exportsOf(s2)[0];
  assert.ok(before && isAlive(before.process), "an export outlives its agent");
  await next.io("write -P 0x66 4M 64k", "read -P 0x66 4M 64k");
  startAgent(s2);
  await until("the agent is back", () => actualOf<AgentLeaseActual>(s2, `lease/${overlay}`)?.layer ?? undefined);
  await sleep(300);
  assert.deepEqual(exportsOf(s2)[0]?.process, before.process, "adopted, not started again");

  signal(before.process, "SIGKILL");
  await timed("read across a crash of the export", () => next.io("read -P 0x66 4M 64k", "write -P 0x77 5M 64k"));
  await until("another daemon", () => exportsOf(s2).some((found) => found.process.pid !== before.process.pid));

  await stopAgent(s2);
  const powered = exportsOf(s2)[0];
  assert.ok(powered);
  signal(powered.process, "SIGKILL");
  await waitGone(powered.process, 5000);
  startAgent(s2);
  await timed("read across a boot of the server", () => next.io("read -P 0x77 5M 64k"));
  assert.deepEqual(await lease(s2, overlay, 3, 2), second, "same port, name and key");
  await next.stop();

  await desire(s2, `volume/${overlay}`, { uid: overlay, source: { kind: "overlay" }, sizeMiB: 64 });
  const third = await (async () => {
    await lease(s2, overlay, 4, null);
    return lease(s2, overlay, 5, 3);
  })();
  const grown = await startMachine(attach(5, third), 30);
  await grown.io("read -P 0x77 5M 64k", "write -P 0x88 0 64M", "flush", "read -P 0x88 0 64M");
  await grown.stop();

  await assertRemoved(s1, s2);
});

async function assertRemoved(s1: PeerName, s2: PeerName): Promise<void> {
  for (const key of ["lease", "volume"]) await desire(s2, `${key}/${overlay}`, null);
  for (const key of ["readers", "volume"]) await desire(s1, `${key}/${origin}`, null);
  await until("withdrawn", () => ![...actual.keys()].some((key) => /(volume|lease|readers)\/test-[12]$/.test(key)));
  assert.deepEqual([...exportsOf(s1), ...exportsOf(s2)], []);
  for (const [agent, volume] of [
    [s1, origin],
    [s2, overlay],
  ] as const)
    assert.equal(await stat(join(base, agent, "volumes", `${volume}.qcow2`)).catch(() => null), null);
  await assertBroughtBack(s2);
}

/** What was written to the overlay is in the bin, and in a volume that begins with that file. */
async function assertBroughtBack(s2: PeerName): Promise<void> {
  const file = `${overlay}.1`;
  const binned = await until("the bin", () => actualOf<AgentBinned>(s2, `bin/${file}`));
  assert.deepEqual([binned.volume, binned.overlay, binned.offered], [overlay, true, false]);
  const blank = { uid: overlay, source: { kind: "overlay" }, sizeMiB: 64 };
  await desire(s2, `volume/${overlay}`, blank);
  const refused = await until("a reason", () => actualOf<AgentVolumeActual>(s2, `volume/${overlay}`));
  assert.match(refused.reason ?? "", /cells bin restore s2\/test-2\.1/);
  await desire(s2, `volume/${overlay}`, null);

  const asOperator = (method: string, path: string) =>
    peerRequest(configurations.get(peerName("gateway"))!, s2, { method, path });
  assert.equal((await asOperator("POST", `/bin/${file}`)).status, 200);
  await until("offered", () => actualOf<AgentBinned>(s2, `bin/${file}`)?.offered);
  const again = uid("test-8");
  await desire(s2, `volume/${again}`, { uid: again, source: { kind: "overlay" }, sizeMiB: 64, from: file });
  assert.equal((await volumeReady(s2, again)).sizeMiB, 64);
  await until("out of the bin", () => !actual.has(`${s2}/bin/${file}`));
  const top = await lease(s2, again, 1, 1);
  assert.ok(top);
  const machine = await startMachine({ volume: again, epoch: 1, sizeMiB: 64, layers: [top], boot: null }, 1);
  await machine.io("read -P 0x88 0 64M");
  await machine.stop();
  for (const key of ["lease", "volume"]) await desire(s2, `${key}/${again}`, null);
  await until("in the bin again", () => actual.has(`${s2}/bin/${again}.1`) && !actual.has(`${s2}/volume/${again}`));
  assert.equal((await asOperator("DELETE", `/bin/${again}.1`)).status, 200);
  await until("emptied", () => !actual.has(`${s2}/bin/${again}.1`));
  const refusal = await peerRequest(configurations.get(host)!, s2, { method: "GET", path: "/bin" });
  assert.equal(refusal.status, 403);
}

test("kernels come from the agent once, and only to hosts", async () => {
  const [s1] = agents;
  const configuration = configurations.get(host)!;
  await desire(s1, `volume/${fromImage}`, { uid: fromImage, source: { kind: "image", image: "small" }, sizeMiB: 40 });
  const made = await volumeReady(s1, fromImage);
  assert.equal(made.sizeMiB, 40);
  const layer = await lease(s1, fromImage, 1, 1);
  assert.ok(layer);
  const attachment: Attachment = { volume: fromImage, epoch: 1, sizeMiB: 40, layers: [layer], boot: made.boot };
  const driver = createStorageDriver({ configuration });
  const disk = { connection: uid("test-6"), readOnly: false, attachment } as DesiredDisk;
  const [one, two] = await Promise.all([driver.compose(disk), driver.compose(disk)]);
  assert.deepEqual(one, two);
  assert.equal(await readFile(one.boot?.kernel ?? "", "utf8"), "a kernel");
  assert.equal(one.boot?.commandLine, "console=ttyS0");
  assert.ok([...one.objects, ...one.blockdevs].every((text) => !text.includes(layer.pskHex)));
  const other = await driver.compose({ ...disk, connection: uid("test-7") });
  await driver.release(disk);
  assert.ok(await stat(join(other.secretDirectories[0] ?? "", "keys.psk")), "others keep their keys");
  await driver.release({ ...disk, connection: uid("test-7") });
  assert.equal(await stat(other.secretDirectories[0] ?? "").catch(() => null), null);
  assert.equal(await stat(one.secretDirectories[0] ?? "").catch(() => null), null);

  const ask = (as: string, path: string) => peerRequest(configurations.get(peerName(as))!, s1, { method: "GET", path });
  assert.equal((await ask("gateway", "/boot/d1/kernel")).status, 403);
  assert.equal((await ask("host.h1", "/boot/d2/kernel")).status, 404);
  const status = JSON.parse(await (await ask("gateway", "/status")).text()) as { server: string; volumes: number };
  assert.equal(status.server, "s1");
  assert.equal(status.volumes, 1);

  const nobody = { ...layer, port: await freePort() };
  await assert.rejects(
    driver.compose({ ...disk, attachment: { ...attachment, layers: [nobody] } }),
    /storage server s[12] does not serve its disk \(127\.0\.0\.1:\d+: ECONNREFUSED\)/,
  );

  const wrong = { ...attachment, boot: { ...made.boot!, digest: "d1", kernelSha256: "00" } };
  await rm(join(configuration.directory, "boot"), { recursive: true });
  await assert.rejects(driver.compose({ ...disk, attachment: wrong }), /not what its image records/);
  for (const key of ["lease", "volume"]) await desire(s1, `${key}/${fromImage}`, null);
  await until("withdrawn", () => !actual.has(`${s1}/volume/${fromImage}`));
});

test("an agent whose store was put back starts no export of then, and an operator adopts it", async () => {
  const [s1] = agents;
  const volume = uid("test-20");
  const about = { cell: "shop", path: "shop/data", origin: null };
  await desire(s1, `volume/${volume}`, { uid: volume, source: { kind: "empty" }, sizeMiB: 8, about });
  await volumeReady(s1, volume);
  const { mark } = await until("a mark", () => actualOf<{ mark: { start: string } }>(s1, "server"));
  await desire(s1, "seen", { start: mark.start, last: null });
  const first = await lease(s1, volume, 1, 1);
  assert.ok(first);
  const attachment: Attachment = { volume, epoch: 1, sizeMiB: 8, layers: [first], boot: null };
  const machine = await startMachine(attachment, 30);
  await machine.io("write -P 0x11 0 64k", "flush");

  // A copy of then, and what happened since.
  const store = join(base, s1);
  const copy = join(base, "copy");
  const names = (await readdir(store)).filter((name) => name.startsWith("state.sqlite"));
  await stopAgent(s1);
  await mkdir(copy);
  for (const name of names) await cp(join(store, name), join(copy, name)).catch(() => undefined);
  startAgent(s1);
  await lease(s1, volume, 2, null);
  await lease(s1, volume, 3, 2);
  await stopAgent(s1);
  for (const found of exportsOf(s1)) {
    signal(found.process, "SIGKILL");
    await waitGone(found.process, 5000);
  }
  for (const name of names) await rm(join(store, name), { force: true });
  await cp(copy, store, { recursive: true });

  startAgent(s1);
  const held = await until("that it is older", () => {
    const now = actualOf<AgentLeaseActual>(s1, `lease/${volume}`);
    return now?.phase === "failed" && now;
  });
  assert.deepEqual([held.epoch, held.layer], [1, null]);
  assert.match(held.reason ?? "", /cells server adopt s1/);
  await sleep(2000);
  assert.deepEqual(exportsOf(s1), [], "nothing listens where the guest of then would find it");

  const asGateway = configurations.get(peerName("gateway")) ?? assert.fail();
  const answer = await peerRequest(asGateway, s1, { method: "POST", path: "/adopt" });
  const leases = JSON.parse(await answer.text()) as readonly { volume: string; epoch: number; known: number }[];
  assert.deepEqual(
    leases.filter((each) => each.volume === volume).map(({ epoch, known }) => [epoch, known]),
    [[1, 3]],
  );
  await until("an epoch above all", () => {
    const now = actualOf<AgentLeaseActual>(s1, `lease/${volume}`);
    return now?.epoch === 4 && now.phase === "ready" && now.holder === null;
  });
  const next = await lease(s1, volume, 5, 3);
  assert.notEqual(next?.exportName, first.exportName);
  await machine.stop();
  const later = await startMachine({ ...attachment, epoch: 5, layers: [next ?? assert.fail()] }, 1);
  await later.io("read -P 0x11 0 64k");
  await later.stop();
  const again = await peerRequest(asGateway, s1, { method: "POST", path: "/adopt" });
  assert.equal(again.status, 409, "there is nothing to adopt any more");
  for (const key of ["lease", "volume"]) await desire(s1, `${key}/${volume}`, null);
  await until("withdrawn", () => !actual.has(`${s1}/volume/${volume}`));
  await desire(s1, "seen", null);
});

test("an image that is not there is said, not guessed", async () => {
  const missing = uid("test-4");
  await desire(agents[0], `volume/${missing}`, { uid: missing, source: { kind: "image", image: "none" }, sizeMiB: 8 });
  const failed = await until("a failure", () => {
    const found = actualOf<AgentVolumeActual>(agents[0], `volume/${missing}`);
    return found?.phase === "waiting" && found;
  });
  assert.match(failed.reason ?? "", /has no image "none"/);
  assert.equal(failed.badImage, true);
  await desire(agents[0], `volume/${missing}`, null);
  await until("withdrawn", () => !actual.has(`${agents[0]}/volume/${missing}`));
});

test("a volume of one image and no other of its name says which it was made of", async () => {
  const [s1] = agents;
  const said = (of: Uid) => actualOf<AgentVolumeActual>(s1, `volume/${of}`);
  const [first, other] = [uid("test-5"), uid("test-6")];
  const image = { kind: "image", image: "small" } as const;
  await desire(s1, `volume/${first}`, { uid: first, source: image, sizeMiB: null });
  assert.equal(await until("the volume", () => said(first)?.image), actualOf<AgentImage>(s1, "image/small")?.digest);
  await desire(s1, `volume/${other}`, { uid: other, source: { ...image, digest: "another" }, sizeMiB: null });
  const end = await until("its end", () => ["ready", "waiting"].includes(said(other)?.phase ?? "") && said(other));
  assert.match(end.reason ?? "", /^the image "small" here is not the one that volume test-6 was made of/);
  for (const volume of [first, other]) await desire(s1, `volume/${volume}`, null);
  await until("withdrawn", () => said(first) === undefined && said(other) === undefined);
});
