import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { memberRunDirectory } from "../../testbed/places.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { type Cloud, cellName, Resident, specification, vmPaths, withCloud } from "../cloud/cloud.ts";
import { median, percentile, rangeOf } from "../measure.ts";

const watcher = fileURLToPath(new URL("rules-watch.ts", import.meta.url));
const hosts = ["h1", "h2"] as const;
const ports = [7001, 7002] as const;

/** What a host's kernel applies to packets, version by version. */
class Watch {
  readonly #resident: Resident;
  #version = 0;
  #at = 0n;
  #waiting: { readonly version: number; readonly resolve: (at: bigint) => void } | null = null;

  constructor(cloud: Cloud, host: string, cellNumber: number) {
    const map = `${memberRunDirectory(host)}/bpf/diverter/maps/policies`;
    this.#resident = new Resident(cloud, host, [process.execPath, watcher, map, String(cellNumber)]);
    createInterface({ input: this.#resident.output }).on("line", (line) => {
      const [version = "0", at = "0"] = line.split(" ");
      this.#version = Number(version);
      this.#at = BigInt(at);
      if (this.#waiting !== null && this.#version >= this.#waiting.version) {
        this.#waiting.resolve(this.#at);
        this.#waiting = null;
      }
    });
  }
  get version(): number {
    return this.#version;
  }
  /** When that version, or a later one, was first seen in force. */
  reached(version: number): Promise<bigint> {
    if (this.#version >= version) return Promise.resolve(this.#at);
    return new Promise((resolve) => {
      this.#waiting = { version, resolve };
    });
  }
  stop(): Promise<void> {
    return this.#resident.stop();
  }
}

const ms = (from: bigint, to: bigint): number => Number(to - from) / 1e6;
const withDeadline = <T>(work: Promise<T>, what: string): Promise<T> =>
  Promise.race([
    work,
    new Promise<never>((_resolve, reject) => setTimeout(() => reject(new Error(what)), 30_000).unref()),
  ]);

/** The rule says `port` now, by what both hosts' maps answer. */
async function control({ client }: Cloud, port: number): Promise<void> {
  const [from = "", to = ""] = vmPaths(2);
  for (const each of ports) {
    const { allowed, verdict } = await client.why(cellName, { from, to, protocol: "tcp", port: each });
    if (allowed !== (each === port)) throw new Error(`the rule for port ${port} is not in force: ${verdict}`);
  }
}

async function change(cloud: Cloud, rounds: number): Promise<{ answered: number[]; inForce: number[] }> {
  const watches = hosts.map((host) => new Watch(cloud, host, 1));
  const result = { answered: [] as number[], inForce: [] as number[] };
  try {
    await withDeadline(Promise.all(watches.map((watch) => watch.reached(1))), "the hosts have no rules");
    for (let round = 0; round < rounds; round += 1) {
      const port = ports[round % 2 === 0 ? 1 : 0];
      const next = Math.max(...watches.map(({ version }) => version)) + 1;
      const start = process.hrtime.bigint();
      await cloud.client.apply(cellName, specification(2, port), false);
      result.answered.push(ms(start, process.hrtime.bigint()));
      const all = Promise.all(watches.map((watch) => watch.reached(next)));
      const reached = await withDeadline(all, `version ${next} of the rules did not reach both hosts within 30 s`);
      result.inForce.push(Math.max(...reached.map((at) => ms(start, at))));
      if (round % 50 === 0) await control(cloud, port);
    }
    return result;
  } finally {
    await Promise.all(watches.map((watch) => watch.stop()));
  }
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  return withCloud({ hosts: 2, servers: 1 }, async (cloud) => {
    say("two machines on two hosts");
    await cloud.client.apply(cellName, specification(2, ports[0]), false);
    await untilBothHostsRun(cloud);
    say("changing a rule");
    // An even number: the next change must be one.
    await change(cloud, 6);
    const { answered, inForce } = await change(cloud, quick ? 10 : 300);
    return [
      { what: "p99", unit: "ms", value: percentile(inForce, 0.99), range: rangeOf(inForce), atMost: 100 },
      { what: "median", unit: "ms", value: median(inForce), range: null, atMost: null },
      {
        what: "median until the answer to the request",
        unit: "ms",
        value: median(answered),
        range: null,
        atMost: null,
      },
    ];
  });
}

async function untilBothHostsRun({ client }: Cloud): Promise<void> {
  const end = performance.now() + 180_000;
  for (;;) {
    const status = await client.status();
    if (status.hosts.filter(({ vms }) => vms === 1).length === hosts.length) return;
    if (performance.now() > end) throw new Error("the two machines do not run on two hosts after three minutes");
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

export const ruleChange: Bench = {
  title: "A changed rule in force",
  method:
    "From the request with the edited specification to the moment when both hosts' kernels apply the new rules, read from " +
    "the maps in force every millisecond; one change after another.",
  run,
};
