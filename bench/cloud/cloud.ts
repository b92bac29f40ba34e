import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Readable, Writable } from "node:stream";
import { Client } from "../../cli/connection/client.ts";
import type { Bundle } from "../../model/cell/cell.ts";
import { type Testbed, withTestbedDirectory } from "../../testbed/harness.ts";
import { firstProcesses } from "../../testbed/supervisor/first-process.ts";
import { enterMember } from "../../testbed/supervisor/namespaces.ts";
import { down, type UpOptions } from "../../testbed/up.ts";
import { interruptible } from "./interrupted.ts";

/** A testbed with a client of its gateway, for measuring. */
export interface Cloud {
  readonly testbed: Testbed;
  readonly client: Client;
}
export const withCloud = <T>(
  options: Pick<UpOptions, "hosts" | "servers" | "personalities" | "ha" | "profile" | "timeoutMs">,
  work: (cloud: Cloud) => Promise<T>,
): Promise<T> =>
  new Promise<T>((resolve, reject) => {
    withTestbedDirectory(options, async (testbed) => {
      const measured = await interruptible(
        () => takenDown(testbed),
        async () => work({ testbed, client: new Client(await testbed.up()) }),
      );
      resolve(measured);
    }).catch(reject);
  });

/** Where an `up` is still under way, after it: both want the testbed for themselves. */
export async function takenDown({ at }: Testbed): Promise<void> {
  for (const end = performance.now() + 120_000; ; ) {
    try {
      await down({ directory: at.directory, purge: true });
      break;
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
  rmSync(dirname(at.directory), { recursive: true, force: true });
}

/** The cell that is measured: so many small machines in one subnet, each with a copy of the image `tiny`, and one rule. */
export const cellName = "bench";
export const vmPaths = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${cellName}/m${index + 1}/vm`);

export function specification(count: number, port: number): Bundle {
  const machines = Array.from(
    { length: count },
    (_, index) => `  m${index + 1} extends Machine { hostName "m${index + 1}"; }`,
  ).join("\n");
  const text = `
Machine extends {
  bootvol extends VolumeCopy { x.image "<ref:/${cellName}/golden>"; }
  vm extends VM { x.memory 128; x.restartOnFailure true; }
  disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../bootvol>"; x.bootOrder 0; }
  interface extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:/${cellName}/subnet>"; x.vifName hostName; }
  hostName TBD;
}
${cellName} extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  subnet extends Subnet { x.size 32; }
${machines}
  rule extends NetworkRule {
    x.address1 "<ref:/${cellName}/m1/interface>";
    x.address2 "<ref:/${cellName}/m${count}/interface>";
    x.protocol "tcp";
    x.port2 ${port};
    x.direction "1to2";
  }
}
sfConfig extends { cell extends ${cellName}; }
`;
  return { main: "bench.sf", files: { "bench.sf": text } };
}

/** Resolves when the guest's agent answers; goes on asking where the machine is not there yet. */
export async function untilGuestAnswers(client: Client, vm: string, timeoutMs: number): Promise<void> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    try {
      const left = Math.max(1000, end - performance.now());
      const { exitCode } = await client.exec(cellName, {
        vm,
        command: ["/bin/true"],
        timeoutMs: Math.min(30_000, left),
      });
      if (exitCode === 0) return;
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    if (performance.now() > end) throw new Error(`${vm} does not answer after ${timeoutMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
export const untilGuestsAnswer = async (client: Client, vms: readonly string[], timeoutMs: number): Promise<void> => {
  await Promise.all(vms.map((vm) => untilGuestAnswers(client, vm, timeoutMs)));
};

/** Processes of the machine, of every namespace, whose command line has the text in it. */
export function processesWith(text: string): readonly number[] {
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      return readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ").includes(text) ? [Number(entry)] : [];
    } catch {
      return [];
    }
  });
}

/** The process of a VM's QEMU, by the name that its UID gives it. */
export async function qemuOf({ client }: Cloud, vm: string): Promise<number> {
  const element = (await client.model(cellName, vm, true)) as { readonly $state?: { readonly uid: string } };
  const [pid, ...more] = processesWith(`-name guest=cells-${element.$state?.uid}-`).filter((each) =>
    readFileSync(`/proc/${each}/comm`, "utf8").startsWith("qemu"),
  );
  if (pid === undefined || more.length > 0) throw new Error(`${vm} has not just one QEMU`);
  return pid;
}

/** A process that stays in a member's namespaces until its standard input ends. */
export class Resident {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;

  constructor({ testbed }: Cloud, member: string, command: readonly string[]) {
    const [init] = firstProcesses(testbed.at.tag).init;
    if (init === undefined) throw new Error("the testbed is not up");
    const outer = ["--target", String(init.pid), "--mount", "--net", "--pid", "--"];
    this.#child = spawn("nsenter", [...outer, ...enterMember(member), ...command], {
      stdio: ["pipe", "pipe", "inherit"],
    });
  }
  get output(): Readable {
    return this.#child.stdout;
  }
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.stdin.end();
    await ended;
  }
}
