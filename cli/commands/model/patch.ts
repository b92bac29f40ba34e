import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { Changed } from "../../../model/api.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import type { Json } from "../../../model/json/json.ts";
import { type JsonPatchOperation, patchLimits, readPatch } from "../../../model/json/patch.ts";
import { sameJson } from "../../../model/json/same.ts";
import { isEmptyPlan } from "../../../model/plan/plan.ts";
import { untilThere } from "../../connection/away.ts";
import { Refused } from "../../connection/client.ts";
import { newKey } from "../../connection/repeated.ts";
import { type Context, ownNameOf, printJson } from "../../context/context.ts";
import { followUntilReady } from "../../output/follow.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { leavable } from "../../terminal/interrupted.ts";
import { confirm, conflict, goesOn, printPlan, untilRemoved, type WaitOptions } from "./change.ts";

/** `cells patch`: operations on several parts of a model at once, which may rest on what is there now. */

interface PatchOptions extends WaitOptions {
  readonly dryRun: boolean;
}
interface PatchFile {
  readonly operations: readonly JsonPatchOperation[];
  /** Whole name of the cell. */
  readonly cell: string;
}

/** @param file `-`: standard input */
const patchIn = async (file: string, child: string | undefined): Promise<PatchFile> => {
  const written = file === "-" ? await text(process.stdin) : readPatchFile(file);
  if (Buffer.byteLength(written) > patchLimits.bytes) throw usage(`${file} is longer than ${patchLimits.bytes} bytes`);
  let json: Json;
  try {
    json = JSON.parse(written) as Json;
  } catch (error) {
    throw usage(`${file} is not JSON: ${(error as Error).message}`);
  }
  const read = readPatch(json);
  if (!read.ok) throw new CommandFailure(exitCodes.refused, `${file}: ${printable(read.error.message)}`);
  const own = child === undefined ? undefined : ownNameOf(child);
  const names = new Set(read.value.map(({ to }) => to[0] ?? ""));
  const [first = "", ...others] = names;
  if (own === undefined && (first === "" || others.length > 0))
    throw usage("name the cell with --cell where not every pointer begins with it: /shop/web/x.memory");
  return { operations: json as unknown as readonly JsonPatchOperation[], cell: child ?? first };
};
const readPatchFile = (file: string): string => {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw usage(`${file} cannot be read: ${(error as Error).message}`);
  }
};

/** With what the test that failed wanted and found. */
const explained = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 412 || !error.patch) throw error;
    const { wanted, found } = error.patch;
    const lines = [
      ...(wanted === undefined ? [] : [`  wanted ${printable(JSON.stringify(wanted))}`]),
      ...(found === undefined ? [] : [`  found  ${printable(JSON.stringify(found))}`]),
    ];
    throw new CommandFailure(exitCodes.refused, [`nothing was changed: ${error.message}`, ...lines].join("\n"));
  }
};

const isOlder = (error: unknown): boolean => error instanceof Refused && error.code === "version-mismatch";
/** Others may change the cell between the plan and the change. */
const attempts = 5;

export const patch = async (context: Context, file: string, options: PatchOptions): Promise<void> => {
  const { terminal, json } = context;
  const { operations, cell } = await patchIn(file, options.cell);
  const client = context.client();
  const asked = (): Promise<Changed> =>
    untilThere(context, options.timeoutMs, () => explained(() => client.patch(cell, operations, true)));
  let planned = await asked();
  if (!json) printPlan(terminal, cell, planned);
  if (options.dryRun) {
    if (json) printJson(context, planned);
    return;
  }
  const allowDestroy = isEmptyPlan(planned.plan)
    ? []
    : await confirm(context, options, `Make these changes to the cell ${cell}?`, planned.plan);
  let wasAway = false;
  const onRepeat = () => {
    wasAway = true;
  };
  const conditions = { allowDestroy, key: newKey(), onRepeat };
  const send = (): Promise<Changed> => {
    const sent = () => client.patch(cell, operations, false, { ...conditions, version: planned.version });
    return untilThere(context, options.timeoutMs, () => explained(sent), onRepeat);
  };
  let changed: Changed | null = null;
  for (let attempt = 1; changed === null; attempt += 1)
    try {
      changed = await send();
    } catch (error) {
      if (!isOlder(error)) throw error;
      // Where an answer was lost, that change may have been this one.
      if (wasAway || attempt === attempts) throw conflict(cell, error as Refused, `\`cells patch ${file} --dry-run\``);
      const again = await asked();
      // What was changed beside this one is nobody's concern here, as long as the same comes of it.
      if (!sameJson(stepsOf(again), stepsOf(planned)))
        throw conflict(cell, error as Refused, `\`cells patch ${file} --dry-run\``);
      planned = again;
    }
  const paths = new Set<string>(changed.plan.steps.flatMap(({ action, path }) => (action === "none" ? [] : [path])));
  const isWaiting = options.wait && paths.size > 0;
  const { plan } = changed;
  const follow = async () => {
    const wanted = { timeoutMs: options.timeoutMs, silent: json, concerned: paths, touched: paths };
    const ready = await followUntilReady(client, cell, terminal, wanted);
    await untilRemoved(client, cell, terminal, plan, { timeoutMs: options.timeoutMs });
    return ready;
  };
  const elements = isWaiting ? await leavable(goesOn(cell), follow()) : [];
  if (json) printJson(context, { ...changed, elements });
  else if (isWaiting) terminal.print(`${cell} is as the patch has it`);
  else terminal.print(paths.size === 0 ? "nothing changes" : `the change of ${cell} is accepted`);
};
const stepsOf = ({ plan }: Changed): Json =>
  plan.steps.filter(({ action }) => action !== "none") as unknown as readonly Json[];
