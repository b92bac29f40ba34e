import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackDebian } from "../../../image/debian-packages.ts";
import { freePort } from "../../../runtime/process/free-port.testing.ts";
import type { BenchOptions, Figure } from "../../bench.ts";
import { figureOf, killed, processCpuMs, reportOf } from "../../measure.ts";
import { serve, untilAnswers } from "../../tenancy/served-by-uwsgi.ts";
import { reservedMiB } from "../many-hosts.ts";
import { hostSize } from "../trace-hosts.ts";
import { alike } from "./alike.ts";
import type { AlikeReport } from "./alike-process.ts";

/*
 * Placement and Nova's scheduler, as Debian's packages have them, beside our Placer. They lie in a directory of their own with the Debian that they need, and are started in it alone: nothing is
 * installed. Placement is one worker of uWSGI on loopback, without Keystone (`noauth2`), its hosts put in by its REST; both have SQLite for their databases. Nova's scheduler is asked within its
 * process (`ask-nova.py`), since a message bus and a conductor would be in the figure otherwise.
 */
const packages = ["python3-nova", "python3-placement", "uwsgi-core", "uwsgi-plugin-python3"];

export const openStackMethod =
  "placement-api and nova-scheduler of Debian, unpacked beside: one worker of uWSGI on loopback, no Keystone, SQLite; the scheduler's `select_destinations` called in its process, without a message bus, a conductor " +
  "or nova-compute; its claim in Placement is in the figure. The same hosts and VMs as hspace's.";

const placementConf = `[DEFAULT]
log_file = /var/lib/placement/placement.log
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:////var/lib/placement/placement.db
sync_on_startup = true
`;
const novaConf = (port: number): string => `[DEFAULT]
transport_url = fake:///
state_path = /var/lib/nova
log_file = /var/lib/nova/nova.log
service_down_time = 86400
[api_database]
connection = sqlite:////var/lib/nova/api.db
[database]
connection = sqlite:////var/lib/nova/cell.db
[oslo_concurrency]
lock_path = /var/lib/nova
[filter_scheduler]
track_instance_changes = false
[placement]
auth_type = admin_token
token = admin
endpoint = http://127.0.0.1:${port}
endpoint_override = http://127.0.0.1:${port}
`;

export interface NovaReport {
  readonly placed: number;
  readonly hostsInUse: number;
  readonly tookMs: number;
  /** Of the scheduler's process alone. */
  readonly cpuMs: number;
  /** Of these at Placement: what it gives, and what is claimed there. */
  readonly candidatesMs: number;
  readonly claimsMs: number;
}
/** What `ask-nova.py` prints last; all before it are its libraries' words. */
export function reportIn(said: string): NovaReport {
  const report = JSON.parse(said.trim().split("\n").at(-1) ?? "") as Partial<NovaReport>;
  for (const name of ["placed", "hostsInUse", "tookMs", "cpuMs", "candidatesMs", "claimsMs"] as const)
    if (typeof report[name] !== "number") throw new Error(`Nova's program does not say ${name}`);
  return report as NovaReport;
}

/**
 * A scheduler beside a Placement of their own, in a directory with Debian and their packages.
 *
 * @param ends gets what ends it
 */
export async function askNova(
  folder: string,
  hosts: number,
  vms: number,
  ends: (() => Promise<void>)[],
): Promise<NovaReport & { readonly placementCpuMs: number }> {
  const port = await freePort();
  for (const [name, text] of Object.entries({ placement: placementConf, nova: novaConf(port) })) {
    await rm(join(folder, "var/lib", name), { recursive: true, force: true });
    for (const within of ["etc", "var/lib"]) await mkdir(join(folder, within, name), { recursive: true });
    await writeFile(join(folder, "etc", name, `${name}.conf`), text);
  }
  await copyFile(join(import.meta.dirname, program), join(folder, program));
  const child = serve(folder, "/usr/bin/placement-api", port);
  ends.push(() => killed(child));
  await untilAnswers("Placement", child, () => fetch(`http://127.0.0.1:${port}/`), 200);
  const sizes = [hostSize.memoryMiB, hostSize.cpus, reservedMiB, alike.memoryMiB, alike.cpus];
  const words = ["python3", `/${program}`, port, hosts, vms, ...sizes].map(String);
  let [said, before] = ["", 0];
  const asks = spawn("chroot", [folder, ...words], { stdio: ["ignore", "pipe", "ignore"] });
  asks.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    if (before === 0 && said.includes("begins\n")) before = treeCpuMs(child.pid ?? 0);
  });
  const [code] = (await once(asks, "close")) as [number | null];
  if (code !== 0) throw new Error(`Nova's program ended with ${code}`);
  return { ...reportIn(said), placementCpuMs: treeCpuMs(child.pid ?? 0) - before };
}
/** Of a process and all below it. */
function treeCpuMs(pid: number): number {
  const below = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  return below.reduce((sum, each) => sum + treeCpuMs(each), processCpuMs(pid));
}
const program = "ask-nova.py";

/** Where it cannot be fetched or does not run, nothing stands beside ours, and why is said. */
export async function measureOpenStack({ say }: BenchOptions): Promise<readonly Figure[]> {
  const parent = await mkdtemp(join(tmpdir(), "cells-nova-"));
  const ends: (() => Promise<void>)[] = [];
  const [hosts, vms] = [100, 200];
  try {
    say(`Placement and Nova's scheduler at ${hosts} hosts`);
    const folder = join(parent, "debian");
    await unpackDebian(folder, packages);
    const theirs = await askNova(folder, hosts, vms, ends);
    const ours = await reportOf<AlikeReport>(join(import.meta.dirname, "alike-process.ts"), hosts, vms);
    const [oneOfTheirs, oneOfOurs] = [theirs.tookMs / theirs.placed, ours.tookMs / ours.placed];
    const add = (...[about, ...more]: Parameters<typeof figureOf>): void =>
      void figures.push(figureOf(`${hosts} hosts alike, ${about}`, ...more));
    const figures: Figure[] = [];
    const { placed, hostsInUse, cpuMs, placementCpuMs, candidatesMs, claimsMs } = theirs;
    add("one VM placed by nova-scheduler", "ms", oneOfTheirs, null, `${placed} of them, at ${hostsInUse} hosts`);
    add("processor time of that, Nova's and Placement's", "ms", (cpuMs + placementCpuMs) / placed, null);
    add("of that Placement's candidates", "ms", candidatesMs / placed, null);
    add("of that its claim in Placement", "ms", claimsMs / placed, null);
    add("nova-scheduler's time to ours", "×", oneOfTheirs / oneOfOurs, null, `ours ${oneOfOurs.toFixed(3)} ms`);
    return figures;
  } catch (error) {
    say(`nothing of OpenStack stands beside ours: ${(error as Error).message}`);
    return [];
  } finally {
    for (const each of ends) await each();
    await rm(parent, { recursive: true, force: true });
  }
}
