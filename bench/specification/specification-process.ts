import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { readSpecification } from "../../model/specification/specification.ts";

/** What one process of this program measured of itself: milliseconds of CPU time of reading, or of a plan as the clock has it. */
export interface ReadCosts {
  readonly ms: number;
  /** Of checking that plan, by the clock; only where there is one. */
  readonly checkMs?: number;
  readonly elements: number;
}

/*
 * Reads the specifications in the files that are its arguments; with two, it plans the change of one into the other, and
 * what counts is the plan, and its check by itself. As `cells` itself it loads no more than it needs, with what V8 has compiled before.
 */
const cells = process.argv.slice(2).map((file) => {
  const main = basename(file);
  const before = process.cpuUsage();
  const read = readSpecification({ main, files: { [main]: readFileSync(file, "utf8") } });
  const { user, system } = process.cpuUsage(before);
  if (!read.ok) throw new Error(`${main}: ${read.error[0]?.message}`);
  return { cell: read.value, ms: (user + system) / 1000 };
});
const [first, second] = cells;
if (first === undefined) throw new Error("the arguments are one or two files");
let { ms } = first;
let checkMs: number | undefined;
if (second !== undefined) {
  const { planChange } = await import("../../model/plan/plan.ts");
  const { planFaults } = await import("../../model/plan/plan-check.ts");
  const start = process.hrtime.bigint();
  const made = planChange(first.cell, second.cell);
  const between = process.hrtime.bigint();
  const [fault] = planFaults(first.cell, second.cell, made);
  ms = Number(between - start) / 1e6;
  checkMs = Number(process.hrtime.bigint() - between) / 1e6;
  if (fault !== undefined) throw new Error(fault);
  if (!made.steps.some(({ action }) => action === "restart")) throw new Error("the plan has no restart in it");
}
const costs: ReadCosts = { ms, elements: first.cell.elements.size, ...(checkMs === undefined ? {} : { checkMs }) };
process.stdout.write(JSON.stringify(costs));
