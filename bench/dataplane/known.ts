import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, percentile, rangeOf } from "../measure.ts";
import { inMachine } from "./in-machine.ts";
import type { InForce } from "./known-process.ts";

interface Size {
  readonly vms: number;
  readonly subnets: number;
  readonly atMostMs: number;
}
const sizes: readonly Size[] = [
  { vms: 1_000, subnets: 3_000, atMostMs: 20 },
  { vms: 10_000, subnets: 30_000, atMostMs: 100 },
];

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const size of quick ? sizes.slice(0, 1) : sizes) {
    say(`${size.vms} machines and ${size.subnets} subnets elsewhere`);
    const found = await inMachine("known-process.ts", (agent) =>
      agent.call<InForce>("inForce", size, quick ? 20 : 400),
    );
    if (found.problems.length > 0) throw new Error(`the host refused something: ${found.problems[0]}`);
    figures.push(...figuresOf(size, found));
  }
  return figures;
}

function figuresOf({ vms, subnets, atMostMs }: Size, found: InForce): readonly Figure[] {
  const whom = `${vms.toLocaleString("en")} VMs and ${subnets.toLocaleString("en")} subnets elsewhere`;
  const { changes, learntMs, addressBytes, slicesKB } = found;
  const plain = { range: null, atMost: null };
  return [
    {
      what: `${whom}: a changed rule in force, p99`,
      unit: "ms",
      value: percentile(changes, 0.99),
      range: rangeOf(changes),
      atMost: atMostMs,
    },
    { what: `${whom}: the same, median`, unit: "ms", value: median(changes), ...plain },
    { what: `${whom}: the documents of the change`, unit: "KB", value: slicesKB, range: null, atMost: 20 },
    { what: `${whom}: all VMs known, from their documents`, unit: "ms", value: learntMs, range: null, atMost: 1_000 },
    {
      what: `${whom}: memory of addresses in the kernel`,
      unit: "MiB",
      value: addressBytes / 1024 ** 2,
      range: null,
      atMost: 2,
    },
  ];
}

export const known: Bench = {
  title: "A changed rule at a host that knows many",
  method:
    "One Host Manager with its store, its executor, its network driver and the kernel's maps; machines have no process. 40 cells of " +
    "which each has one machine here that is reached from each of its subnets by a rule of its own, in slices as controllers cut " +
    "them, and their other machines at 39 other hosts. From the arrival of the changed documents, as text, until the map that packets " +
    "meet has the new version, looked at every millisecond; one cell after the other.",
  run,
};
