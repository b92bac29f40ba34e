import type { Changed, ElementState } from "../../../model/api.ts";
import { whyNot } from "../../../model/contract/actions/actions.ts";
import { type PowerVerb, powerOrder, wantedOf } from "../../../model/contract/actions/power.ts";
import { elementsOf } from "../../../model/contract/follow/rows.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { isEmptyPlan } from "../../../model/plan/plan.ts";
import { renderPlan } from "../../../model/plan/render-plan.ts";
import type { Client } from "../../connection/client.ts";
import { describe } from "../../connection/elements.ts";
import { type Context, cellOfPath, pathIn, printJson } from "../../context/context.ts";
import { followUntilReady } from "../../output/follow.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { leavable } from "../../terminal/interrupted.ts";
import { conflict, goesOn, overtaken } from "./change.ts";

/**
 * `cells start`, `stop` and `restart`. Each puts one attribute of the model, `x.desiredState` or the counter `x.restart`, so
 * that what they order is desired state like everything else: a file that says something else of it takes it back.
 */
interface Vm {
  readonly state: ElementState;
  readonly wanted: "on" | "off";
  readonly counter: number;
}

const vmAt = async (client: Client, pathText: string): Promise<Vm> => {
  const { cell, path, whole } = cellOfPath(pathText);
  const found = (await client.model(cell, whole ? "" : path, true)) as JsonObject;
  if (whole || found["x.type"] !== "VM") {
    const below = elementsOf(found, whole ? "" : path).filter(({ type }) => type === "VM");
    const names = below.map((vm) => pathIn(cell, vm.path)).join(", ");
    throw usage(`${pathText} is no VM${names === "" ? "" : `; these are: ${names}`}`);
  }
  const { "x.desiredState": wanted, "x.restart": counter, $state } = found;
  return {
    state: $state as unknown as ElementState,
    wanted: wantedOf(wanted),
    counter: typeof counter === "number" ? counter : 0,
  };
};

/** What is put, by its name and value. The same value as before: nothing is to be done. */
const orderOf = (verb: PowerVerb, pathText: string, { state, wanted, counter }: Vm): readonly [string, Json] => {
  const { phase, reason, power = null, host = null } = state;
  const so = { phase, reason, power, host, wanted, isHostHeard: null } as const;
  const against = whyNot(verb, null, { path: pathText, ...so });
  if (against !== null && !against.isSo) throw new CommandFailure(exitCodes.refused, against.why);
  return powerOrder(verb, { phase, wanted, counter });
};

const takenBack: Readonly<Record<PowerVerb, PowerVerb | null>> = { start: "stop", stop: "start", restart: null };

export interface PowerOptions {
  readonly wait: boolean;
  readonly timeoutMs: number;
}

export const power = async (
  context: Context,
  verb: PowerVerb,
  pathText: string,
  { wait, timeoutMs }: PowerOptions,
): Promise<void> => {
  const { terminal, json } = context;
  const client = context.client();
  const { cell, path } = cellOfPath(pathText);
  const vm = await vmAt(client, pathText);
  const [attribute, value] = orderOf(verb, pathText, vm);
  const send = (dryRun: boolean, version?: number): Promise<Changed> =>
    client.put(cell, `${path}/${attribute}`, value, dryRun, version === undefined ? {} : { version });
  const planned = await send(true);
  const isNothing = isEmptyPlan(planned.plan);
  if (!json && !isNothing) terminal.print(renderPlan(planned.plan, { color: terminal.colour }));
  const changed = isNothing
    ? planned
    : await send(false, planned.version).catch((error: unknown) => {
        throw overtaken(error) ? conflict(cell, error, "The same command") : error;
      });
  const paths = new Set([path]);
  const elements = wait
    ? await leavable(
        `${goesOn(cell)}${takenBack[verb] === null ? "" : ` \`cells ${takenBack[verb]} ${pathText}\` takes it back.`}`,
        followUntilReady(client, cell, terminal, { timeoutMs, silent: json, concerned: paths, touched: paths }),
      )
    : [];
  if (json) printJson(context, { ...changed, elements });
  else if (wait) for (const element of elements) terminal.print(`${pathText}: ${describe(element)}`);
  else terminal.print(`${pathText}: ${isNothing ? "nothing to do" : "the change is accepted"}`);
};
