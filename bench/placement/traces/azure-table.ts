import { basename } from "node:path";
import { type Arrival, numbering } from "./arrival.ts";
import { BadLine, type BadLines } from "./bad-lines.ts";
import { textLines } from "./text.ts";

/*
 * `vmtable.csv` of Azure's public data sets of 2017 and 2019: no header; VM, subscription, deployment, created, deleted (seconds), highest, mean and 95th percentile of its
 * processors' use, category, cores, GB. That of 2019 has buckets for the last two, whose upper bounds it says, and `>24` for what is above the last one.
 *
 * Neither is in order of time. So its text is read a line at a time, and of each VM six numbers are kept and put in order: 24 bytes, 65 MB of 2.7 million VMs.
 */
export interface Row {
  readonly subscription: string;
  readonly deployment: string;
  readonly created: number;
  readonly deleted: number | null;
  readonly cpus: number;
  readonly memoryMiB: number;
}
const columns = 11;
const mostSeconds = 2 ** 31 - 1;

function secondOf(text: string, where: string, column: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > mostSeconds)
    throw new BadLine(`${where}: whole seconds expected as ${column}, found "${text}"`);
  return Number(text);
}
/** A bucket above the last bound counts as the power of two after it. */
function amountOf(text: string, where: string, unit: string): number {
  const [, above, number = ""] = /^(>?)(\d{1,6}(?:\.\d+)?)$/.exec(text) ?? [];
  const amount = Number(number);
  if (number === "" || amount <= 0)
    throw new BadLine(`${where}: ${unit} expected as 16, 1.75 or >24, more than 0, found "${text}"`);
  return above === ">" ? 2 ** (Math.floor(Math.log2(amount)) + 1) : amount;
}

/** @throws a `BadLine` that begins with where that is */
export function azureRow(line: string, where: string): Row {
  const values = line.trimEnd().split(",");
  if (values.length !== columns)
    throw new BadLine(`${where}: ${columns} values with commas expected, found ${line === "" ? 0 : values.length}`);
  const [vm = "", subscription = "", deployment = "", created = "", deleted = "", , , , , cores = "", memory = ""] =
    values;
  for (const [name, value] of Object.entries({ VM: vm, subscription, deployment }))
    if (value === "") throw new BadLine(`${where}: a ${name} expected, found nothing`);
  const [from, until] = [
    secondOf(created, where, "created"),
    deleted === "" ? null : secondOf(deleted, where, "deleted"),
  ];
  if (until !== null && until < from)
    throw new BadLine(`${where}: deleted at ${until}, before it was created at ${from}`);
  return {
    subscription,
    deployment,
    created: from,
    deleted: until,
    cpus: Math.ceil(amountOf(cores, where, "cores")),
    memoryMiB: Math.ceil(amountOf(memory, where, "GB") * 1024),
  };
}

/** Six numbers of each VM, in room that doubles. */
class Rows {
  private kept = new Int32Array(6 * 1024);
  count = 0;

  add(numbers: readonly number[]): void {
    if (6 * (this.count + 1) > this.kept.length) {
      const larger = new Int32Array(2 * this.kept.length);
      larger.set(this.kept);
      this.kept = larger;
    }
    this.kept.set(numbers, 6 * this.count);
    this.count += 1;
  }

  private number(row: number, column: number): number {
    return this.kept[6 * row + column] ?? 0;
  }

  *inOrder(): Generator<Arrival> {
    const order = Uint32Array.from({ length: this.count }, (_, row) => row);
    order.sort((one, other) => this.number(one, 0) - this.number(other, 0) || one - other);
    for (const row of order) {
      const ends = this.number(row, 5);
      yield {
        second: this.number(row, 0),
        account: this.number(row, 1),
        group: this.number(row, 2),
        cpus: this.number(row, 3),
        memoryMiB: this.number(row, 4),
        endsAt: ends < 0 ? null : ends,
      };
    }
  }
}

/** All of a table in order of creation, and as in the file where that is the same second. */
export async function* azureTable(file: string, bad: BadLines): AsyncGenerator<Arrival> {
  const [accounts, groups, rows] = [numbering(), numbering(), new Rows()];
  let line = 0;
  for await (const text of textLines(file)) {
    line += 1;
    const row = bad.line(() => azureRow(text, `${basename(file)}:${line}`));
    if (row === null) continue;
    const { created, subscription, deployment, cpus, memoryMiB, deleted } = row;
    rows.add([created, accounts(subscription), groups(deployment), cpus, memoryMiB, deleted ?? -1]);
  }
  yield* rows.inOrder();
}
