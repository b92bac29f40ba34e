import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { mountBpffs, unmountBpffs } from "../program/dataplane.ts";
import { indexOf } from "../program/libbpf.ts";
import { createTap, tapName } from "../taps/devices.ts";
import { mostInterfaces } from "./draw/worlds.testing.ts";
import { describe, framesAnEpisode, runEpisode, shortest } from "./episode.testing.ts";
import { uidOf } from "./subject/documents.testing.ts";
import { HostUnderTest } from "./subject/host.testing.ts";
import { ProgramRun } from "./subject/program-run.testing.ts";
import { newTally } from "./trial.testing.ts";
import type { HostKey } from "./world.testing.ts";

/**
 * The fuzz, for a network and mount namespace of its own: `--seed` the first world, `--frames` how many in all, `--episode`
 * how many in one world, `--changes` in a thousand frames, `--object` another program than the committed one, `--whole` tells a failure as it came up, not the shortest. Ends
 * with one line of JSON.
 */
export interface FuzzReport {
  readonly frames: number;
  readonly delivered: number;
  readonly between: number;
  readonly outside: number;
  readonly dropped: number;
  readonly differences: number;
  readonly crossings: number;
  readonly cpuSeconds: number;
  readonly seconds: number;
  readonly story: string | null;
}

function main(): void {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: "1" },
      frames: { type: "string", default: "100000" },
      episode: { type: "string", default: String(framesAnEpisode) },
      changes: { type: "string", default: "6" },
      object: { type: "string" },
      whole: { type: "boolean", default: false },
    },
  });
  const [first, frames, changes] = [Number(values.seed), Number(values.frames), Number(values.changes)];
  const episode = Number(values.episode);
  const directory = mkdtempSync(join(tmpdir(), "diverter-fuzz-"));
  const bpffs = join(directory, "bpf");
  mountBpffs(bpffs);
  try {
    const owner = { uid: 0, gid: 0 };
    const taps = Array.from({ length: mostInterfaces }, (_, at) =>
      tapName(uidOf({ at } as Parameters<typeof uidOf>[0])),
    );
    for (const tap of [...taps, "uplink", "outside"]) createTap(tap, owner);
    const devices = { taps: taps.map(indexOf), uplink: indexOf("uplink"), outside: indexOf("outside") };
    const run = new ProgramRun();
    const host = (key: HostKey): HostUnderTest => new HostUnderTest(directory, key, devices, run, values.object);
    const subjects = { a: host("a"), b: host("b") };
    const tally = newTally();
    const began = performance.now();
    const used = process.cpuUsage();
    let story: string | null = null;
    let crossings = 0;
    for (let seed = first; tally.frames < frames && story === null; seed += 1) {
      const failure = runEpisode(seed, subjects, tally, Math.min(episode, frames - tally.frames), changes);
      if (failure === null) continue;
      if (failure.isCrossing) crossings += 1;
      story = describe(values.whole ? failure : shortest(failure, subjects));
    }
    const { user, system } = process.cpuUsage(used);
    const report: FuzzReport = {
      ...tally,
      differences: story === null ? 0 : 1,
      crossings,
      story,
      cpuSeconds: (user + system) / 1e6,
      seconds: (performance.now() - began) / 1000,
    };
    process.stdout.write(`${JSON.stringify(report)}\n`);
    for (const subject of Object.values(subjects)) subject.close();
  } finally {
    unmountBpffs(bpffs);
    rmSync(directory, { recursive: true, force: true });
  }
}
main();
