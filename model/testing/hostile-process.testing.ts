import type { Bundle, Cell } from "../cell/cell.ts";
import { standardPrototypes } from "../cell/schema.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { renderDiagnostic } from "../diagnostics/render-diagnostic.ts";
import { planChange } from "../plan/plan.ts";
import { planFaults } from "../plan/plan-check.ts";
import { renderPlan } from "../plan/render-plan.ts";
import { smartFrogTree } from "../smartfrog/tree.ts";
import { formatSmartFrog } from "../smartfrog-format/format.ts";
import { checkDocument, readSpecification } from "../specification/specification.ts";
import { cpuUnitMs } from "./cpu-unit.testing.ts";
import { hostileTexts } from "./hostile.testing.ts";
import type { HostileText } from "./hostile-builders.testing.ts";

/**
 * What came of one hostile text, as a line that this program writes for each. Arguments: the texts' names. They are
 * worked on one after another, so that memory is that of the largest so far.
 */
export interface HostileOutcome {
  readonly name: string;
  readonly ok: boolean;
  /** Codes and messages of what was wrong. */
  readonly faults: readonly { readonly code: string; readonly message: string }[];
  /** CPU time of the longest step of the work, such as reading or planning, in milliseconds, of all threads. */
  readonly cpuMs: number;
  /** The same in units of work (`cpu-unit.testing.ts`). */
  readonly units: number;
  /** Largest resident memory of the whole process. */
  readonly memoryMiB: number;
  /** Names that every object has now and had not before. */
  readonly polluted: readonly string[];
}

let longestMs = 0;
function step<T>(work: () => T): T {
  const before = process.cpuUsage();
  const outcome = work();
  const { user, system } = process.cpuUsage(before);
  longestMs = Math.max(longestMs, Math.round((user + system) / 1000));
  return outcome;
}

/** Its faults, which a person would read as well. */
function work(bundle: Bundle, kind: HostileText["work"]): readonly Diagnostic[] {
  if (kind === "tree") {
    const outcome = step(() => smartFrogTree(bundle, standardPrototypes));
    if (!outcome.ok) return outcome.errors;
    JSON.stringify(outcome);
    return [];
  }
  if (kind === "format") {
    const outcome = step(() => formatSmartFrog(bundle.main, bundle.files[bundle.main] ?? ""));
    return outcome.ok ? [] : outcome.error;
  }
  const read = step(() => readSpecification(bundle));
  if (read.ok && kind === "change") changes(read.value);
  return read.ok ? [] : read.error;
}

/** What a controller does with a cell: it is stored and read again, and it comes, stays and goes. */
function changes(cell: Cell): void {
  const again = step(() => checkDocument(cell.document));
  if (!again.ok) throw new Error(`what was read is refused again: ${again.error[0]?.message}`);
  for (const [from, to] of [
    [null, cell],
    [cell, again.value],
    [cell, null],
  ] as const) {
    const plan = step(() => planChange(from, to));
    const faults = step(() => planFaults(from, to, plan));
    if (faults.length > 0) throw new Error(`the plan is wrong: ${faults[0]}`);
    step(() => renderPlan(plan, { color: false, all: true }));
  }
}

for (const name of process.argv.slice(2)) {
  const hostile = hostileTexts[name];
  if (hostile === undefined) throw new Error(`there is no hostile text "${name}"`);
  const bundle = hostile.text();
  longestMs = 0;
  // A shared machine is faster at one moment than at the next: what a unit takes is measured on both sides.
  const unitBeforeMs = cpuUnitMs();
  const faults = work(bundle, hostile.work);
  step(() => faults.map((fault) => renderDiagnostic(fault, bundle.files, false)));
  const unitMs = (unitBeforeMs + cpuUnitMs()) / 2;
  const polluted: string[] = [];
  for (const property in {}) polluted.push(property);
  const outcome: HostileOutcome = {
    name,
    ok: faults.length === 0,
    faults: faults.map(({ code, message }) => ({ code, message })),
    cpuMs: longestMs,
    units: longestMs / unitMs,
    memoryMiB: Math.round(process.resourceUsage().maxRSS / 1024),
    polluted,
  };
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}
