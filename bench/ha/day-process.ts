import { createRandom } from "../../simulator/kernel/random.ts";
import { runHistory } from "../../simulator/run.ts";
import { parseHistory } from "../../simulator/world/history.ts";

/**
 * `day-process.ts HOSTS VMS MINUTES SEED LOST`: nothing is lost but one packet in twenty, and a tenth of the hosts stand still for 5 s after about
 * 30 s each, as in `bench presence`. What an HA Manager starts elsewhere then, and what a host ends, is false. With `LOST` 1 a host loses
 * its power in the middle of it, which shows that it would be seen. Prints a `DayReport`.
 */
export interface DayReport {
  readonly pauses: number;
  /** Machines that started in a later incarnation than their first, of which everyone had started before the first pause. */
  readonly restarts: number;
  /** Incarnations that were said to be over, machines that a host ended since nobody heard it, and hosts that were declared dead. */
  readonly overs: number;
  readonly isolated: number;
  readonly declared: number;
  /** Items of the HA Manager, each of a VM of whose host it was doubted that it is there. */
  readonly items: number;
  readonly cpuS: number;
}

const [hosts = 0, vms = 0, minutes = 0, seed = 1, lost = 0] = process.argv.slice(2).map(Number);
const firstMs = 60_000;
const untilMs = firstMs + minutes * 60_000;
const [pauseMs, runMs] = [5000, 30_000];
const cells = 2;
const random = createRandom(seed, "pauses");

const steps: { readonly atMs: number; readonly text: string }[] = [];
for (let cell = 1; cell <= cells; cell += 1) {
  const machines = Array.from({ length: Math.ceil(vms / cells) }, (_, index) => `vm:a${index + 1}:64:data`).join(" ");
  steps.push({ atMs: 100 * cell, text: `apply c${cell} ${machines}` });
}
steps.push({ atMs: firstMs, text: `loss 5 for ${untilMs - firstMs}` });
let pauses = 0;
for (let host = 1; host <= Math.max(1, Math.round(hosts / 10)); host += 1)
  for (let atMs = firstMs + 2 * random.next() * runMs; atMs + pauseMs < untilMs; ) {
    steps.push({ atMs: Math.round(atMs), text: `pause host.h${host} for ${pauseMs}` });
    pauses += 1;
    atMs += pauseMs + 2 * random.next() * runMs;
  }
if (lost === 1) steps.push({ atMs: (firstMs + untilMs) / 2, text: `power-off h${hosts} for 600000` });
steps.sort((one, other) => one.atMs - other.atMs);
const servers = Math.max(2, Math.ceil(hosts / 10));
const head = [`hosts ${hosts}`, `servers ${servers}`, `cells ${cells}`, `seed ${seed}`, "ha 1"];
const text = [...head, ...steps.map(({ atMs, text }) => `at ${atMs} ${text}`), `until ${untilMs}`].join("\n");
const from = process.cpuUsage();
const { faults, log } = await runHistory(parseHistory(text), { keepLog: true, heals: false });
if (faults.length > 0) throw new Error(faults.join("; "));
const { user, system } = process.cpuUsage(from);

const countOf = (pattern: RegExp): number => [...log.matchAll(pattern)].length;
const begun = [...log.matchAll(/^([\d.]+) machine\.\w+ started \{"vm":"([^"]+)","incarnation":(\d+),/gm)];
const firsts = new Set(begun.flatMap(([, ms, vm]) => (Number(ms) < firstMs ? [vm] : [])));
if (firsts.size < cells * Math.ceil(vms / cells)) throw new Error(`${firsts.size} VMs run before the first pause`);
const report: DayReport = {
  pauses,
  restarts: begun.filter(([, ms]) => Number(ms) >= firstMs).length,
  overs: countOf(/ ha-manager ha\/over /g),
  isolated: countOf(/ host\/isolated /g),
  declared: countOf(/ presence\.1 presence\/declared /g),
  items: countOf(/ ha-manager ha\/scheduled /g),
  cpuS: (user + system) / 1e6,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
