import { runHistory } from "../../simulator/run.ts";
import { parseHistory } from "../../simulator/world/history.ts";

/**
 * `many-process.ts HOSTS CELLS VMS POWER SEED`: so many cells of so many VMs, each of which is at a host of its own, and these hosts lose their power one after
 * the other. `POWER` is what their management controllers do, `none`: they have none; or `one`: none, and all cells are at one host. The history runs twice,
 * since which hosts these are is seen in the first run; controllers of power change who is placed at which of them, which is read from the second. Prints a
 * `ManyReport`.
 */
export interface ManyReport {
  /** Of each VM, from the loss of its host, seconds of simulated time: until its next process is asked for, and runs. */
  readonly asked: readonly number[];
  readonly started: readonly number[];
  /** Of each host, until it is declared dead. */
  readonly declared: readonly number[];
  /** Of each host, from then until the last of its VMs' next processes is asked for. */
  readonly lastAsked: readonly number[];
  readonly cpuS: number;
  readonly residentMiB: number;
}

const [hosts = 0, cells = 0, vms = 0] = process.argv.slice(2).map(Number);
const [power = "none", seed = "1"] = process.argv.slice(5);
const isOne = power === "one";
const firstLossMs = isOne ? 150_000 : 45_000;
const everyMs = 6_700;
const lossAt = (index: number): number => firstLossMs + index * everyMs;

/** A host has room for all of them. */
const head = [
  `hosts ${hosts}`,
  `servers ${Math.max(2, Math.ceil(hosts / 25))}`,
  `cells ${cells + (isOne ? 1 : 0)}`,
  `seed ${seed}`,
  `memory ${Math.max(4096, vms * 320 * (isOne ? cells : 1))}`,
  "ha 1",
  ...(isOne ? ["root 1"] : []),
];
const machines = Array.from({ length: vms }, (_, index) => `vm:a${index + 1}:64${isOne ? "" : ":in=all"}`).join(" ");
const apart = (index: number): string => `at ${100 + 20 * index} apply c${index + 1} group:all:together ${machines}`;
const atOne = (index: number): string => `at ${3000 + 20 * index} apply c${index + 2} ${machines}`;
const drained = Array.from({ length: hosts - 1 }, (_, index) => `at ${1000 + index} drain h${index + 2} for 120000`);
const applied = [
  ...(isOne ? ["at 10 apply root vm:r1:64", ...drained] : []),
  ...Array.from({ length: cells }, (_, index) => (isOne ? atOne(index) : apart(index))),
];
const logOf = async (steps: readonly string[], untilMs: number): Promise<string> => {
  const { faults, log } = await runHistory(parseHistory([...head, ...steps, `until ${untilMs}`].join("\n")), {
    keepLog: true,
    heals: false,
  });
  if (faults.length > 0) throw new Error(faults.join("; "));
  return log;
};
/** Of that incarnation or a later one: one that is placed at a host which is lost by then starts nowhere. */
const startedIn = (log: string, incarnation: number): readonly (readonly [vm: string, host: string, ms: number])[] =>
  [...log.matchAll(/^([\d.]+) machine\.(h\d+) started \{"vm":"([^"]+)","incarnation":(\d+),/gm)].flatMap(
    ([, ms = "", host = "", vm = "", of]) => (Number(of) >= incarnation ? [[vm, host, Number(ms)] as const] : []),
  );

const from = process.cpuUsage();
/** The host of each VM's first process. */
const hostsOf = (log: string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>();
  for (const [vm, host] of startedIn(log, 1)) if (!found.has(vm)) found.set(vm, host);
  for (const [vm, host] of isOne ? found : []) if (host !== "h1") found.delete(vm);
  if (found.size < cells * vms) throw new Error(`${found.size} of ${cells * vms} VMs have started`);
  return found;
};
const lost = [...new Set(hostsOf(await logOf(applied, firstLossMs - 5_000)).values())];
const registered = isOne || power === "none" ? [] : lost.map((host) => `at 50 controller ${host} ${power} for 1000000`);
const losses = lost.map((host, index) => `at ${lossAt(index)} power-off ${host} for 600000`);
const log = await logOf([...registered, ...applied, ...losses], lossAt(lost.length) + 30_000);
const first = hostsOf(log);
const spared = [...first].find(([, host]) => !lost.includes(host));
if (spared !== undefined) throw new Error(`${spared[0]} was at ${spared[1]}, which was not lost: try another seed`);
const lossOf = (vm: string): number => lossAt(lost.indexOf(first.get(vm) ?? ""));

const since = (found: readonly (readonly [vm: string, ms: number])[]): ReadonlyMap<string, number> => {
  const times = new Map<string, number>();
  for (const [vm, ms] of found) if (!times.has(vm)) times.set(vm, ms);
  const missing = [...first.keys()].filter((vm) => !times.has(vm));
  if (missing.length > 0)
    throw new Error(`${missing.length} VMs did not start elsewhere: ${missing.slice(0, 3).join(", ")}`);
  return times;
};
const started = since(startedIn(log, 2).map(([vm, , ms]) => [vm, ms]));
// Its controller asks a host for it.
const staged =
  /^([\d.]+) controller\.\w+ vm\/stage \{"vm":"([^"]+)","path":"[^"]+","incarnation":[2-9],"stage":"running"/gm;
const asked = since([...log.matchAll(staged)].map(([, ms = "", vm = ""]) => [vm, Number(ms)]));
const declaredAt = new Map<string, number>();
for (const [, ms = "", host = ""] of log.matchAll(/^([\d.]+) presence\.\d+ presence\/declared \{"host":"(h\d+)"/gm))
  if (!declaredAt.has(host)) declaredAt.set(host, Number(ms));
const seconds = (times: ReadonlyMap<string, number>): readonly number[] =>
  [...times].map(([vm, ms]) => (ms - lossOf(vm)) / 1000);
const lastOf = (host: string): number => Math.max(...[...asked].map(([vm, ms]) => (first.get(vm) === host ? ms : 0)));
const { user, system } = process.cpuUsage(from);
const report: ManyReport = {
  asked: seconds(asked),
  started: seconds(started),
  declared: lost.flatMap((host, index) => {
    const at = declaredAt.get(host);
    return at === undefined ? [] : [(at - lossAt(index)) / 1000];
  }),
  lastAsked: lost.flatMap((host) => {
    const at = declaredAt.get(host);
    return at === undefined ? [] : [Math.max(0, lastOf(host) - at) / 1000];
  }),
  cpuS: (user + system) / 1e6,
  residentMiB: process.resourceUsage().maxRSS / 1024,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
