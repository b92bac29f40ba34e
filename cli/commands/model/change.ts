import type { Changed } from "../../../model/api.ts";
import { remedy } from "../../../model/cause/remedy.ts";
import type { Bundle, Cell } from "../../../model/cell/cell.ts";
import type { ElementWithState } from "../../../model/contract/follow/rows.ts";
import { printable, printableLines } from "../../../model/diagnostics/render-diagnostic.ts";
import { besideLines } from "../../../model/plan/beside.ts";
import {
  allowDestroyFlag,
  destroysData,
  destroysDataRefusal,
  losesOf,
  lossLines,
  unnamedLosses,
} from "../../../model/plan/data-loss.ts";
import { openedLines } from "../../../model/plan/opened.ts";
import { isEmptyPlan } from "../../../model/plan/plan.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { renderPlan } from "../../../model/plan/render-plan.ts";
import { readSpecification } from "../../../model/specification/specification.ts";
import { evaluate } from "../../../runtime/specification/evaluate.ts";
import { noWalls } from "../../../runtime/specification/no-walls.ts";
import { untilThere } from "../../connection/away.ts";
import { type Changes, watchCell } from "../../connection/changes.ts";
import { type Client, Refused } from "../../connection/client.ts";
import { newKey } from "../../connection/repeated.ts";
import { type Context, cellOfPath, ownNameOf, pathIn, printJson } from "../../context/context.ts";
import { followUntilReady, readElements } from "../../output/follow.ts";
import { renderElements, renderSummary } from "../../output/render.ts";
import { readBundle } from "../../spec/bundle.ts";
import { rendered } from "../../spec/diagnostics.ts";
import { CommandFailure, changesCode, exitCodes, usage } from "../../terminal/failure.ts";
import { leavable } from "../../terminal/interrupted.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { ownersMissing } from "./owners-there.ts";

/** `cells plan`, `cells apply` and `cells delete`: what changes a cell's model. */

/** A file, or texts that are at hand: what they are called, and which command shows again what would happen. */
export type Specified = string | { readonly bundle: Bundle; readonly called: string; readonly again: string };
const calledOf = (of: Specified): string => (typeof of === "string" ? of : of.called);

const rootCell = "root";

/** Reads and checks a specification before the gateway is asked: for its faults, and for the name of its cell. */
const specification = async ({ terminal }: Context, specified: Specified) => {
  const file = calledOf(specified);
  const bundle = typeof specified === "string" ? readBundle(specified) : specified.bundle;
  const evaluated = await evaluate(bundle, { said: (text) => process.stderr.write(printableLines(text)) });
  const read = evaluated.ok ? readSpecification(evaluated.value) : evaluated;
  const document = evaluated.ok ? evaluated.value.evaluated?.document : undefined;
  if (read.ok) return { bundle, cell: read.value, document };
  throw new CommandFailure(exitCodes.refused, rendered(file, bundle, read.error, terminal.colour).join("\n\n"));
};

/** The gateway's refusal, with its diagnostics shown in the texts that were sent. */
const explained = async <T>(
  { terminal }: Context,
  { file, bundle }: { readonly file: string; readonly bundle: Bundle },
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    // Other refusals say everything in their message.
    if (!(error instanceof Refused) || error.diagnostics.length === 0 || error.code === destroysData) throw error;
    const faults = rendered(file, bundle, error.diagnostics, terminal.colour).join("\n\n");
    const isNotEvaluated = error.diagnostics.some(({ code }) => code === noWalls);
    throw isNotEvaluated ? new NotEvaluated(error.exitCode, faults) : new CommandFailure(error.exitCode, faults);
  }
};
/** The gateway, or the controller, does not evaluate TypeScript on its machine. */
class NotEvaluated extends CommandFailure {}

/** @param child the whole name of the child cell that the file is a model of; undefined: its own name is all of it */
const planOf = async (context: Context, specified: Specified, child: string | undefined) => {
  const { bundle, cell, document } = await specification(context, specified);
  const file = calledOf(specified);
  if (child !== undefined && ownNameOf(child) !== cell.name)
    throw usage(`${file} is a model of a cell called ${cell.name}, and ${child} is one called ${ownNameOf(child)}`);
  const name = child ?? cell.name;
  const client = context.client();
  const missing = name === rootCell ? await ownersMissing(client, cell) : [];
  if (missing.length > 0)
    throw new CommandFailure(exitCodes.refused, rendered(file, bundle, missing, context.terminal.colour).join("\n\n"));
  // Also for a new cell: the gateway plans it without making it, by what the installation can give.
  const asked = (sent: Bundle) => explained(context, { file, bundle: sent }, () => client.apply(name, sent, true));
  try {
    return { bundle, cell, name, changed: await asked(bundle) };
  } catch (error) {
    // The program was evaluated here: its outcome is sent instead.
    if (!(error instanceof NotEvaluated) || document === undefined) throw error;
    const outcome: Bundle = { main: "outcome.json", files: { "outcome.json": JSON.stringify(document) } };
    return { bundle: outcome, cell, name, changed: await asked(outcome) };
  }
};

export const plan = async (
  context: Context,
  specified: Specified,
  {
    all,
    cell,
    detailedExitCode = false,
  }: { readonly all: boolean; readonly cell?: string | undefined; readonly detailedExitCode?: boolean },
): Promise<void> => {
  const { changed, name } = await planOf(context, specified, cell);
  if (context.json) printJson(context, changed);
  else {
    context.terminal.print(renderPlan(changed.plan, { color: context.terminal.colour, all }));
    for (const line of [
      ...foreseenLines(changed),
      ...openedLines(changed.opened ?? []),
      ...failedLines(name, changed),
      ...besideLines(changed).flat(),
    ])
      context.terminal.print(line);
    const lost = losesOf(changed.plan).map(({ path }) => path);
    if (lost.length > 0) context.terminal.print(`Applying it without being asked needs ${allowDestroyFlag(lost)}`);
  }
  if (detailedExitCode && !isEmptyPlan(changed.plan)) process.exitCode = changesCode;
};

/**
 * Asks where that is needed and possible, and answers what may be destroyed. `--yes` is no answer to the loss of data that
 * `--allow-destroy` does not name: a person is asked with every volume named, a script gets the option that it lacks.
 */
export const confirm = async (
  { terminal, json }: Context,
  { yes, allowDestroy = [] }: WaitOptions,
  what: string,
  changing: Plan,
): Promise<readonly string[]> => {
  const unnamed = unnamedLosses(changing, allowDestroy);
  if (yes && unnamed.length === 0) return allowDestroy;
  if (!terminal.canAsk || json) {
    if (unnamed.length === 0) throw usage("nobody can be asked here: add --yes to do it");
    const { message } = destroysDataRefusal(unnamed);
    throw new CommandFailure(exitCodes.refused, printableLines(`${message}${yes ? "" : "\nand --yes"}`));
  }
  if (unnamed.length > 0) {
    terminal.print(terminal.paint("red", "This destroys data that no other copy holds:"));
    for (const line of lossLines(unnamed)) terminal.print(`  ${printable(line)}`);
  }
  const names = unnamed.map(({ path }) => printable(path)).join(", ");
  const question = unnamed.length === 0 ? what : `${what} The data of ${names} is lost.`;
  if (!(await terminal.ask(question))) throw new CommandFailure(exitCodes.refused, "nothing was changed");
  return [...allowDestroy, ...unnamed.map(({ path }) => path)];
};

/** Somebody else was faster. */
export const overtaken = (error: unknown): error is Refused => error instanceof Refused && error.status === 412;
export const conflict = (cell: string, error: Refused, again: string): CommandFailure =>
  new CommandFailure(
    exitCodes.refused,
    `nothing was changed: the cell ${cell} is not the one any more for which the plan was made (${error.message}). ${again} shows what would happen now.`,
  );

/**
 * Until nothing that was taken out of the model is left, and with a whole cell until there is no such cell. What others
 * add or take away meanwhile is not waited for.
 */
export const untilRemoved = async (
  client: Client,
  cell: string,
  terminal: Terminal,
  plan: Plan,
  { timeoutMs, whole = false, dropHeld = false }: Pick<WaitOptions, "timeoutMs" | "dropHeld"> & { whole?: boolean },
): Promise<void> => {
  const changes = watchCell(client, cell);
  try {
    await untilLeft(client, cell, terminal, plan, { timeoutMs, whole, dropHeld, changes });
  } finally {
    changes.close();
  }
};

/** What would lift that they are held, each once. */
const waysOut = (elements: readonly ElementWithState[]): readonly string[] => {
  const held = elements.flatMap(({ state }) => (state.causes ?? []).filter(({ kind }) => kind === "held-for-copy"));
  return [...new Set(held.map((cause) => printable(`To lift that: ${remedy(cause)}.`)))];
};

const lastLookMs = 500;
interface Waiting {
  readonly timeoutMs: number;
  readonly whole: boolean;
  /** Elements of the model may have the paths of what goes. */
  readonly dropHeld: boolean;
  readonly changes: Changes;
}
const untilLeft = async (
  client: Client,
  cell: string,
  terminal: Terminal,
  { steps }: Plan,
  { timeoutMs, whole, dropHeld, changes }: Waiting,
): Promise<void> => {
  const end = performance.now() + timeoutMs;
  const left = steps.filter(({ action }) => action !== "delete").length;
  const removed = new Set<string>(steps.flatMap(({ action, path }) => (action === "delete" ? [path] : [])));
  // What another element has replaced is shown by its number alone.
  const isReplaced = steps.some(({ action }) => action === "replace");
  const asked = <T>(what: () => Promise<T>): Promise<T> => untilThere({ terminal }, timeoutMs, what);
  const present = (): Promise<readonly ElementWithState[]> => asked(() => readElements(client, cell));
  const held = async (): Promise<readonly ElementWithState[]> =>
    (await present()).filter(({ path, state }) => state.phase === "deleting" && removed.has(path));
  for (;;) {
    const summary = (await asked(() => client.cells())).find((each) => each.cell === cell);
    if (summary === undefined) return;
    const isAway = summary.phases.unreachable !== undefined;
    if (dropHeld && !isAway && (await held()).length === 0) return;
    if (!whole && !isAway && !dropHeld) {
      if (summary.elements <= left) return;
      // Those that no text has, as the root cell's hosts, are in no plan.
      if (left === 0 && !(await present()).some(({ path }) => removed.has(path))) return;
      // A cell may end its children first, and then the rest.
      if (left > 0 && (summary.phases.deleting === undefined || (!isReplaced && (await held()).length === 0))) return;
    }
    if (performance.now() > end) {
      const those = await held();
      const nothingElse = whole && !isAway && summary.elements === 0;
      if (nothingElse)
        throw new CommandFailure(
          exitCodes.notAsDeclared,
          `nothing of ${cell} is left, and its controller has not ended after ${timeoutMs / 1000} s. It ends as soon as it has told everybody: \`cells get\` shows it until then.`,
        );
      throw new CommandFailure(
        exitCodes.notAsDeclared,
        [
          `${Math.max(those.length, 1)} removed elements are not gone after ${timeoutMs / 1000} s:`,
          ...renderElements(those, terminal.paint).map((line) => `  ${line}`),
          ...waysOut(those),
          `They go as soon as they can: \`cells watch ${cell}\` shows it.`,
        ].join("\n"),
      );
    }
    // The last that is left of a cell goes without an event.
    await changes.next(Math.min(end - performance.now(), whole && summary.elements === 0 ? lastLookMs : Infinity));
  }
};

export interface WaitOptions {
  readonly yes: boolean;
  /** Volumes whose data may be lost; each a path, or several with commas in between. */
  readonly allowDestroy?: readonly string[];
  readonly wait: boolean;
  readonly timeoutMs: number;
  /** Of `delete`: what has left the model there and is held for a copy. */
  readonly dropHeld?: boolean;
  /** Of `apply`: see `planOf`. */
  readonly cell?: string | undefined;
}

/** Paths that a change affects: those of its steps, and the links of its VMs, which become ready together with them. */
const touchedBy = (cell: Cell, { steps }: Plan): ReadonlySet<string> => {
  const touched = new Set<string>(steps.flatMap(({ action, path }) => (action === "none" ? [] : [path])));
  for (const element of cell.elements.values())
    if ((element.type === "VirtualInterface" || element.type === "VolumeConnection") && touched.has(element.vm))
      touched.add(element.path);
  return touched;
};

/** Elements that have failed, and that this change does not start again. */
const failedLines = (cell: string, { failed = [] }: Changed): readonly string[] =>
  failed.length === 0
    ? []
    : [
        "Failed, and left so by this:",
        ...failed.map(({ path, type, reason }) => {
          const named = pathIn(cell, path);
          const start = type === "VM" ? `; \`cells start ${named}\` starts it again` : "";
          return printable(`  ${path} (${type}): ${reason ?? "it has failed"}${start}`);
        }),
      ];

/** Printed when a command is interrupted after its change was accepted. */
export const goesOn = (cell: string): string =>
  `The change was accepted and goes on without this command: \`cells watch ${cell}\` shows it.`;

/** Elements of which it is known already that they will not become ready. */
const foreseenLines = ({ foreseen = [] }: Changed): readonly string[] =>
  foreseen.length === 0
    ? []
    : [
        "Known before, as things stand now:",
        ...foreseen.map(({ path, type, says }) => printable(`  ${path} (${type}): ${says}`)),
      ];

/** The cell is new. */
const isFirst = ({ steps }: Plan): boolean => steps.every(({ action }) => action === "create");

export const printPlan = (terminal: Terminal, cell: string, planned: Changed): void => {
  terminal.print(renderPlan(planned.plan, { color: terminal.colour }));
  for (const line of [
    ...foreseenLines(planned),
    ...openedLines(planned.opened ?? []),
    ...failedLines(cell, planned),
    ...besideLines({ upgraded: planned.upgraded ?? [] }).flat(),
  ])
    terminal.print(line);
};

/** Makes the cell what the file says, and waits until it is. */
export const apply = async (context: Context, specified: Specified, options: WaitOptions): Promise<void> => {
  const { terminal, json } = context;
  const file = calledOf(specified);
  const planAgain = typeof specified === "string" ? `\`cells plan ${specified}\`` : specified.again;
  const asked = () => planOf(context, specified, options.cell);
  const { bundle, cell, name, changed: planned } = await untilThere(context, options.timeoutMs, asked);
  if (!json) printPlan(terminal, name, planned);
  const allowDestroy = isEmptyPlan(planned.plan)
    ? []
    : await confirm(context, options, `Apply this to the cell ${name}?`, planned.plan);
  const client = context.client();
  let wasAway = false;
  const onRepeat = () => {
    wasAway = true;
  };
  const conditions = { allowDestroy, key: newKey(), onRepeat };
  const send = (version: number): Promise<Changed> => {
    const sent = () => client.apply(name, bundle, false, { ...conditions, version });
    return untilThere(context, options.timeoutMs, () => explained(context, { file, bundle }, sent), onRepeat);
  };
  const changed = await send(planned.version).catch(async (error: unknown) => {
    if (!overtaken(error)) throw error;
    // A cell that was deleted starts to count anew once its controller has ended; there is nothing in it to overwrite.
    const again =
      isFirst(planned.plan) || wasAway ? (await untilThere(context, options.timeoutMs, asked)).changed : null;
    // It was accepted, and only the answer was lost.
    if (again !== null && wasAway && isEmptyPlan(again.plan)) return again;
    if (again === null || !isFirst(again.plan)) throw conflict(name, error, planAgain);
    return send(again.version);
  });
  let elements: readonly ElementWithState[] = [];
  if (options.wait) {
    const { steps } = changed.plan;
    const concerned = new Set<string>([
      ...cell.elements.keys(),
      ...steps.flatMap(({ action, path }) => (action === "none" ? [] : [path])),
    ]);
    const { timeoutMs } = options;
    const touched = touchedBy(cell, changed.plan);
    const wanted = { timeoutMs, silent: json, concerned, ...(touched.size === 0 ? {} : { touched }) };
    const follow = async (): Promise<readonly ElementWithState[]> => {
      const ready = await followUntilReady(client, name, terminal, wanted);
      await untilRemoved(client, name, terminal, changed.plan, { timeoutMs });
      return ready;
    };
    const back = isFirst(changed.plan) ? `\`cells delete ${name}\`` : "`cells apply` of the text as it was before";
    elements = await leavable(`${goesOn(name)} ${back} takes it back.`, follow());
  }
  if (json) printJson(context, { ...changed, elements });
  else if (options.wait) terminal.print(`${name} is as declared: ${renderSummary(elements, terminal.paint)}`);
};

const isAbsent = (error: unknown): boolean => error instanceof Refused && error.status === 404;
/** Nothing would be taken out any more. */
const isGone = (context: Context, { timeoutMs }: WaitOptions, asked: () => Promise<Changed>): Promise<boolean> =>
  untilThere(context, timeoutMs, asked).then(
    ({ plan }) => isEmptyPlan(plan),
    (error: unknown) => {
      if (isAbsent(error)) return true;
      throw error;
    },
  );

/** Takes an element, a group or a whole cell out of the model, and waits until nothing is left of it. */
export const remove = async (context: Context, pathText: string, options: WaitOptions): Promise<void> => {
  const { terminal, json } = context;
  const { cell, path, whole } = cellOfPath(pathText);
  const client = context.client();
  const { dropHeld = false } = options;
  const of = dropHeld ? { dropHeld } : {};
  const asked = () => client.delete(cell, whole ? "" : path, true, of);
  const planned = await untilThere(context, options.timeoutMs, asked);
  if (!json) terminal.print(renderPlan(planned.plan, { color: terminal.colour }));
  const question = dropHeld ? `Give up what is held of ${pathText}?` : `Delete ${pathText}?`;
  const allowDestroy = await confirm(context, options, question, planned.plan);
  let wasAway = false;
  const onRepeat = () => {
    wasAway = true;
  };
  const conditions = { version: planned.version, allowDestroy, key: newKey(), onRepeat, ...of };
  const send = () => client.delete(cell, whole ? "" : path, false, conditions);
  const changed = await untilThere(context, options.timeoutMs, send, onRepeat).catch(async (error: unknown) => {
    // It was accepted, and only the answer was lost.
    if (wasAway && (overtaken(error) || isAbsent(error)) && (await isGone(context, options, asked))) return planned;
    throw overtaken(error) ? conflict(cell, error, "The same command without --yes") : error;
  });
  if (options.wait) {
    const back =
      "`cells apply` of a text that has it makes it anew, with its data as far as `cells bin list` shows that.";
    const how = { timeoutMs: options.timeoutMs, whole: whole && !dropHeld, ...of };
    const removed = untilRemoved(client, cell, terminal, changed.plan, how);
    await leavable(`${goesOn(cell)} ${back}`, removed);
  }
  if (json) printJson(context, changed);
  else terminal.print(`${pathText} is ${options.wait ? "gone" : "being deleted"}`);
};
