import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BenchOptions, Figure } from "../../bench.ts";
import { figureOf, reportOf } from "../../measure.ts";
import { alike } from "./alike.ts";
import type { AlikeReport } from "./alike-process.ts";

/*
 * `hspace` and `hail` of Debian's ganeti-htools, beside our Placer: the same hosts, the same VMs, one machine, one run. Their packages are fetched and unpacked into a
 * directory of their own, whose programs run where they lie: nothing is installed.
 *
 * hspace fills a cluster that it imagines, a VM after another, first with large ones (its policy's largest) and then with those asked for. Its checks that any one node may be
 * lost (N+1) are off, since no Placer here keeps room for that unless it is told to; with them each VM costs it many times as much. hail is a program that is started for one VM, with the
 * cluster as a text: what Ganeti's master does for each. The machine's start of a process is in its figure, as it is in every use of it.
 */
const run = promisify(execFile);
const packages = ["ganeti-htools-3.0", "libpcre3"];
const host = "40960g,256g,64";

export const ganetiMethod =
  "hspace and hail of Debian's ganeti-htools, unpacked beside: hosts of 256 GiB and 64 processors, plain disks, no room kept for a lost node; hspace's time by the VMs that " +
  "it places (of its largest size first, then of 8 GiB and 2 processors), less what it takes to begin; hail's is a process for one VM. Ours: the second of these sizes, in a new process, " +
  "in time as it passes as theirs.";

export interface Ganeti {
  /** So many VMs of its largest and of our size at so many hosts. */
  hspace(hosts: number, vms: number): Promise<{ readonly ms: number; readonly placed: number }>;
  /** One more beside those; says where. */
  hail(hosts: number, vms: number): Promise<{ readonly ms: number; readonly node: string }>;
}

/** @param folder an empty one, for the packages and what they write */
export async function ganetiIn(folder: string): Promise<Ganeti> {
  await run("apt-get", ["download", "-q", "-o", "APT::Sandbox::User=root", ...packages], { cwd: folder });
  const found = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
  for (const each of found) await run("dpkg", ["-x", join(folder, each), join(folder, "root")]);
  const there = join(folder, "root/usr/lib/ganeti/3.0/usr");
  const env = { ...process.env, LD_LIBRARY_PATH: join(folder, "root/lib/x86_64-linux-gnu") };
  const timed = async (program: string, ...args: readonly string[]) => {
    const began = performance.now();
    const { stdout } = await run(join(there, program), args, { cwd: folder, env });
    return { ms: performance.now() - began, stdout };
  };
  const fill = (hosts: number, vms: number, ...more: readonly string[]) => {
    const size = `10g,${alike.memoryMiB}m,${alike.cpus}`;
    const cluster = [`--simulate=p,${hosts},${host}`, "--disk-template=plain", `--standard-alloc=${size}`];
    return timed("bin/hspace", ...cluster, "-l", `${vms}`, "--machine-readable", "--no-capacity-checks", ...more);
  };
  return {
    hspace: async (hosts, vms) => {
      const { ms, stdout } = await fill(hosts, vms);
      return { ms, placed: placedOf(stdout) };
    },
    hail: async (hosts, vms) => {
      await fill(hosts, vms, "-S", "cluster");
      await writeFile(join(folder, "request.json"), JSON.stringify(request));
      const { ms, stdout } = await timed(
        "lib/ganeti/iallocators/hail",
        ...["-t", "cluster.standard", "--no-capacity-checks", "request.json"],
      );
      return { ms, node: nodeOf(stdout) };
    },
  };
}

/** What hspace says it has placed, of both sizes. */
export function placedOf(said: string): number {
  const counts = ["HTS_TRL_INST_CNT", "HTS_ALLOC_INSTANCES"].map((name) => {
    const [, count] = new RegExp(`^${name}='?(\\d+)'?$`, "m").exec(said) ?? [];
    if (count === undefined) throw new Error(`hspace does not say ${name}`);
    return Number(count);
  });
  return counts.reduce((all, each) => all + each, 0);
}
export function nodeOf(said: string): string {
  const { success, info, result } = JSON.parse(said) as { success: boolean; info: string; result: readonly string[] };
  if (!success || result[0] === undefined) throw new Error(`hail finds no node: ${info}`);
  return result[0];
}
const request = {
  cluster_name: "bench",
  cluster_tags: [],
  enabled_hypervisors: ["kvm"],
  ipolicy: {},
  nodegroups: {},
  nodes: {},
  instances: {},
  request: {
    type: "allocate",
    name: "one",
    memory: alike.memoryMiB,
    vcpus: alike.cpus,
    required_nodes: 1,
    disks: [{ size: 10_240, mode: "rw" }],
    disk_space_total: 10_240,
    disk_template: "plain",
    spindle_use: 1,
    tags: [],
    nics: [],
    os: "none",
    hypervisor: "kvm",
  },
};

/** What of both can be measured in some minutes. Where they cannot be fetched or do not run, nothing stands beside ours, and why is said. */
export async function measureGaneti({ say, long = false }: BenchOptions): Promise<readonly Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "cells-ganeti-"));
  const figures: Figure[] = [];
  try {
    const ganeti = await ganetiIn(folder);
    for (const [hosts, vms] of [[20, 200], [100, 200], ...(long ? ([[300, 100]] as const) : [])] as const) {
      say(`hspace and hail at ${hosts} hosts`);
      const add = (...[about, ...more]: Parameters<typeof figureOf>): void =>
        void figures.push(figureOf(`${hosts} hosts alike, ${about}`, ...more));
      const [first, all] = [await ganeti.hspace(hosts, 1), await ganeti.hspace(hosts, vms)];
      const count = all.placed - first.placed;
      add("one VM placed by hspace", "ms", (all.ms - first.ms) / count, null, `${count} of them`);
      const { ms, node } = await ganeti.hail(hosts, vms);
      add("one VM placed by hail, with its start", "ms", ms, null, `${vms} stand there; at ${node}`);
      const ours = await reportOf<AlikeReport>(join(import.meta.dirname, "alike-process.ts"), hosts, vms);
      add(
        "one VM placed by ours",
        "ms",
        ours.tookMs / ours.placed,
        null,
        `${ours.placed} of them, the first ones of its process`,
      );
      add("hspace's time to ours", "×", (all.ms - first.ms) / count / (ours.tookMs / ours.placed), null);
    }
  } catch (error) {
    say(`nothing of Ganeti stands beside ours: ${(error as Error).message}`);
  } finally {
    await rm(folder, { recursive: true });
  }
  return figures;
}
