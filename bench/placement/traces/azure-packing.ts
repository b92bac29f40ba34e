import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Arrival, numbering } from "./arrival.ts";
import { BadLine, type BadLines } from "./bad-lines.ts";

/*
 * Azure's packing trace of 2020: a database of SQLite with tables `vm` (vmId, tenantId, vmTypeId, priority, starttime, endtime: days, less than 0 for what was
 * there before, no end for what stayed) and `vmType` (vmTypeId, machineId, core, memory, …: the share of such a machine that it takes, a row for each
 * machine that it fits on).
 *
 * All hosts are alike here. So what counts is the machine that most types have; a type that is not for it counts with the largest shares that it has anywhere.
 */
export interface Machine {
  /** What a host offers, all machines' own needs included. */
  readonly memoryMiB: number;
  readonly cpus: number;
  /** The memory of a guest whose machine takes so much. */
  guest(memoryMiB: number): number;
}
type Share = { readonly core: number; readonly memory: number };
type Value = string | number | bigint | null | Uint8Array;
const daySeconds = 86_400;

const said = (value: Value | undefined): string =>
  value === null || value === undefined ? "nothing" : JSON.stringify(typeof value === "object" ? "bytes" : `${value}`);
function share(value: Value | undefined, where: string, column: string): number {
  if (typeof value !== "number" || !(value > 0 && value <= 1))
    throw new BadLine(
      `${where}: a share of a machine expected as ${column}, more than 0 and at most 1, found ${said(value)}`,
    );
  return value;
}
function second(value: Value | undefined, where: string, column: string): number {
  if (typeof value !== "number" || !Number.isFinite(value))
    throw new BadLine(`${where}: days expected as ${column}, found ${said(value)}`);
  return Math.round(value * daySeconds);
}

/** @throws what a row of `vmType` lacks: of each there are thousands of VMs */
function sharesIn(database: DatabaseSync, name: string): ReadonlyMap<string, Share> {
  const byType = new Map<string, Map<string, Share>>();
  const types = new Map<string, number>();
  for (const row of database.prepare("SELECT rowid AS row, vmTypeId, machineId, core, memory FROM vmType").iterate()) {
    const where = `${name}, row ${row.row} of vmType`;
    const found = { core: share(row.core, where, "core"), memory: share(row.memory, where, "memory") };
    const [type, machine] = [`${row.vmTypeId}`, `${row.machineId}`];
    const machines = byType.get(type) ?? new Map<string, Share>();
    if (!machines.has(machine)) types.set(machine, (types.get(machine) ?? 0) + 1);
    byType.set(type, machines.set(machine, found));
  }
  const [[most = ""] = []] = [...types].sort(([, one], [, other]) => other - one);
  const largest = (all: readonly Share[]): Share => ({
    core: Math.max(...all.map(({ core }) => core)),
    memory: Math.max(...all.map(({ memory }) => memory)),
  });
  return new Map([...byType].map(([type, all]) => [type, all.get(most) ?? largest([...all.values()])]));
}

/** @throws a `BadLine` that begins with where that is */
export function packingRow(
  { starttime, endtime, vmTypeId, tenantId }: Readonly<Record<string, Value>>,
  shares: ReadonlyMap<string, Share>,
  machine: Machine,
  where: string,
): Omit<Arrival, "account" | "group"> {
  const found = shares.get(`${vmTypeId}`);
  if (found === undefined) throw new BadLine(`${where}: vmType has no type ${said(vmTypeId)}`);
  if (tenantId === null || tenantId === undefined) throw new BadLine(`${where}: a tenantId expected, found nothing`);
  const from = second(starttime, where, "starttime");
  const until = endtime === null ? null : second(endtime, where, "endtime");
  if (until !== null && until < from)
    throw new BadLine(`${where}: it ends on day ${endtime}, before it starts on ${starttime}`);
  return {
    second: from,
    cpus: Math.max(1, Math.floor(found.core * machine.cpus)),
    memoryMiB: Math.max(1, machine.guest(Math.floor(found.memory * machine.memoryMiB))),
    endsAt: until,
  };
}

/** All VMs in order of their starts. What a tenant starts at the same moment came together. */
export function* packingTrace(file: string, machine: Machine, bad: BadLines): Generator<Arrival> {
  const name = basename(file);
  using database = new DatabaseSync(file, { readOnly: true });
  try {
    const shares = sharesIn(database, name);
    const [accounts, groups] = [numbering(), numbering()];
    const query =
      "SELECT rowid AS row, tenantId, vmTypeId, starttime, endtime FROM vm ORDER BY starttime, tenantId, rowid";
    for (const row of database.prepare(query).iterate()) {
      const read = bad.line(() => packingRow(row, shares, machine, `${name}, row ${row.row} of vm`));
      if (read === null) continue;
      const account = accounts(`${row.tenantId}`);
      yield { ...read, account, group: groups(`${account} ${read.second}`) };
    }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_SQLITE_ERROR") throw error;
    throw new Error(`${name}: a database with the tables vm and vmType expected: ${message}`);
  }
}
