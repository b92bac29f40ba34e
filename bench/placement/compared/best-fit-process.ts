import type { InUseReport } from "../ledger.ts";
import { offer } from "../trace-hosts.ts";
import { BadLines } from "../traces/bad-lines.ts";
import { arrivalsFrom } from "../traces/read.ts";
import { BestFit } from "./best-fit.ts";

/* Exhaustive best fit of the first VMs of a trace. Arguments: its file, hosts, how many arrivals, "spread" or "none" for groups. */
export interface BestFitReport {
  readonly inUse: InUseReport;
  readonly refused: number;
  readonly tookMs: number;
}
const [file = "", hosts = "1000", atMost = "100000", groups = "spread"] = process.argv.slice(2);
const fit = new BestFit(Number(hosts), offer, groups === "spread");
let [arrivals, tookMs] = [0, 0];
for await (const arrival of arrivalsFrom(file, offer, new BadLines())) {
  if (arrivals >= Number(atMost)) break;
  const began = performance.now();
  fit.arrive(arrival);
  tookMs += performance.now() - began;
  arrivals += 1;
}
const report: BestFitReport = { inUse: fit.report, refused: fit.refused, tookMs };
process.stdout.write(`${JSON.stringify(report)}\n`);
