import { readFileSync } from "node:fs";
import { join } from "node:path";
import { buildTinyImage } from "../../image/build.ts";
import { losesOf } from "../../model/plan/data-loss.ts";
import type { ImageManifest } from "../../runtime/installation.ts";
import { cacheDirectory } from "../../testbed/places.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, rangeOf, ratios } from "../measure.ts";
import { type Cloud, cellName, qemuOf, specification, untilGuestsAnswer, vmPaths, withCloud } from "./cloud.ts";
import { linesSince } from "./logs.ts";
import { type LocalFiles, ShellLoop } from "./shell-loop.ts";

const timeoutMs = 300_000;

async function imageFiles(): Promise<LocalFiles> {
  const directory = await buildTinyImage({ cacheDirectory: cacheDirectory(), onProgress: () => undefined });
  const manifest = JSON.parse(readFileSync(join(directory, "manifest.json"), "utf8")) as ImageManifest;
  if (manifest.boot === null) throw new Error("the image tiny has no kernel of its own any more");
  const { kernel, initrd } = manifest.boot;
  return {
    kernel: join(directory, kernel),
    initrd: join(directory, initrd),
    disk: join(directory, manifest.disk),
    bytes: manifest.sizeMiB * 2 ** 20,
  };
}

interface Applied {
  /** From the request of a cell that is not there yet to the last guest agent's answer, in seconds. */
  readonly answered: number;
  /** To the moment when the last QEMU was launched: the cloud's own part. */
  readonly launched: number;
}
async function applied({ client, testbed }: Cloud, count: number): Promise<Applied> {
  const start = Date.now();
  await client.apply(cellName, specification(count, 7001), false);
  await untilGuestsAnswer(client, vmPaths(count), timeoutMs);
  const answered = (Date.now() - start) / 1000;
  const launches = linesSince(testbed.at.logs, start).filter(
    ({ event, fields }) => event === "machine/stage" && fields.stage === "running",
  );
  return { answered, launched: ((launches.at(-1)?.at ?? start) - start) / 1000 };
}

async function deleted({ client }: Cloud): Promise<void> {
  const { plan } = await client.delete(cellName, "", true);
  await client.delete(cellName, "", false, { allowDestroy: losesOf(plan).map(({ path }) => path) });
  for (const end = performance.now() + timeoutMs; (await client.cells()).length > 0; ) {
    if (performance.now() > end) throw new Error("the cell is not gone after five minutes");
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const count = quick ? 2 : 10;
  const files = await imageFiles();
  return withCloud({ hosts: 3, servers: 2 }, async (cloud) => {
    say(`${count} machines for the first time`);
    const first = await applied(cloud, count);
    const pids: number[] = [];
    for (const vm of vmPaths(count)) pids.push(await qemuOf(cloud, vm));
    const loop = await ShellLoop.like(pids, files);
    try {
      await deleted(cloud);
      const launches: number[] = [];
      const measured = await interleave(quick ? 1 : 4, {
        loop: async () => {
          say("by a shell loop");
          return (await loop.measure(files, timeoutMs)) / 1000;
        },
        cloud: async () => {
          say("by apply");
          const { answered, launched } = await applied(cloud, count);
          await deleted(cloud);
          launches.push(launched);
          return answered;
        },
      });
      const each = ratios(measured.cloud, measured.loop);
      const seconds = (what: string, values: readonly number[]): Figure => ({
        what,
        unit: "s",
        value: median(values),
        range: rangeOf(values),
        atMost: null,
      });
      return [
        {
          what: `${count} machines by apply against a shell loop`,
          unit: "×",
          value: median(each),
          range: rangeOf(each),
          atMost: 1.3,
        },
        seconds("by apply, of a cell that was not there", measured.cloud),
        seconds("until the last QEMU was launched", launches),
        seconds("by apply, for the first time after the testbed's start", [first.answered]),
        seconds("by a shell loop", measured.loop),
      ];
    } finally {
      await loop.remove();
    }
  });
}

export const apply: Bench = {
  title: "Ten machines from one specification",
  method:
    "From the request to the last guest agent's answer, on three hosts with two storage servers, against a shell loop that " +
    "starts the same QEMUs with the same arguments on local qcow2 files that are there already. In turn; ratios are of " +
    "neighbours.",
  run,
};
