import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { processCpuMs } from "../measure.ts";
import { wakeUpsOf } from "./idle.ts";

const program = join(import.meta.dirname, "links-process.ts");
const links = 20;
/** What a process has done so far. */
interface Done {
  readonly segments: number;
  readonly wakeUps: number;
  readonly cpuMs: number;
}
interface Arrangement {
  readonly done: () => Done;
  readonly end: () => void;
}

/** Segments of TCP both ways, of all connections to these ports (ss(8)). */
const segmentsTo = (ports: readonly number[]): number => {
  const which = ports.flatMap((port, index) => [...(index === 0 ? [] : ["or"]), "dport", "=", `:${port}`]);
  const text = execFileSync("ss", ["-tinH", ...which], { encoding: "utf8" });
  return [...text.matchAll(/segs_(?:out|in):(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
};

/** Resolves when this line has come. */
const line = async (child: ChildProcess, wanted: string): Promise<void> => {
  if (child.stdout === null) throw new Error("a process without an output");
  for await (const each of createInterface({ input: child.stdout })) if (each === wanted) return;
  throw new Error(`a process of the bench ended before it said "${wanted}"`);
};

/** A process of `self` with a link to each of so many others. */
async function arrange(installation: TestInstallation, self: string, other: string): Promise<Arrangement> {
  const children: ChildProcess[] = [];
  const start = (...words: readonly string[]): ChildProcess => {
    const child = spawn(process.execPath, [program, ...words], { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    return child;
  };
  const end = (): void => {
    for (const child of children) child.kill("SIGKILL");
  };
  try {
    const own = await installation.configure(peerName(self));
    const names = Array.from({ length: links }, (_, index) => peerName(`${other}.${self.split(".")[0]}${index}`));
    const others = [];
    for (const name of names) others.push(await installation.configure(name));
    await line(start("listen", ...others.map(({ file }) => file)), "listening");
    const child = start("dial", own.file, ...names);
    await line(child, String(links));
    const ports = others.map(({ configuration }) => configuration.distributionPort ?? 0);
    const pid = child.pid ?? 0;
    return { end, done: () => ({ segments: segmentsTo(ports), wakeUps: wakeUpsOf(pid), cpuMs: processCpuMs(pid) }) };
  } catch (error) {
    end();
    throw error;
  }
}

async function measureAll({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const seconds = quick ? 20 : 120;
  const installation = await createTestInstallation("links");
  const all: Arrangement[] = [];
  try {
    const counted = await arrange(installation, "host.h1", "controller");
    all.push(counted);
    const resting = await arrange(installation, "placer", "controller");
    all.push(resting);
    // What was said at the beginning is answered by then.
    await sleep(15_000);
    const before = [counted, resting].map(({ done }) => done());
    await sleep(seconds * 1000);
    const after = [counted, resting].map(({ done }) => done());
    const perMinute = (which: 0 | 1, what: keyof Done): number =>
      (((after[which]?.[what] ?? 0) - (before[which]?.[what] ?? 0)) * 60) / seconds;
    const figure = (what: string, of: keyof Done, unit: string): Figure => {
      const [most, least] = [perMinute(0, of), perMinute(1, of)];
      say(`${what}: ${most.toFixed(1)} and ${least.toFixed(1)}`);
      return {
        what: `${what}, where silence counts against where it does not`,
        unit: "×",
        value: most / Math.max(least, 1e-3),
        range: null,
        atMost: null,
        note: `a minute: ${most.toFixed(1)} and ${least.toFixed(1)}${unit}`,
      };
    };
    return [
      figure("segments of TCP", "segments", ""),
      figure("wake-ups of its threads", "wakeUps", ""),
      figure("processor time", "cpuMs", " ms"),
    ];
  } finally {
    for (const { end } of all) end();
    await installation.remove();
  }
}

export const idleLinks: Bench = {
  title: "Links that nobody uses",
  method:
    `Two processes side by side, each with ${links} links to services of another process, on loopback and outside of a guest, ` +
    "and nothing to say. Of one the silence counts (a host), of the other it does not (a Placer).",
  run: measureAll,
};
