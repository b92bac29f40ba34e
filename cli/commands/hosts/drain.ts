import { setTimeout as sleep } from "node:timers/promises";
import type { HostAdministration } from "../../../model/cell/cell.ts";
import { whyNot } from "../../../model/contract/actions/actions.ts";
import { type ElementWithState, elementsOf } from "../../../model/contract/follow/rows.ts";
import type { Trial } from "../../../model/contract/operator/placement.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { isObject, type Json } from "../../../model/json/json.ts";
import { type Client, Refused } from "../../connection/client.ts";
import { type Context, pathIn, printJson } from "../../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { leavable } from "../../terminal/interrupted.ts";
import { conflict, overtaken } from "../model/change.ts";

/**
 * `cells host drain`, `cells host resume` and `cells move`: a machine is emptied, or takes VMs again, and one VM goes to another. What
 * the first two order is `x.state` of the host's element in the root cell, so it stands there whoever ends in the middle.
 */
const [root, hosts] = ["root", "root/hosts"] as const;
const lookAgainMs = 1000;

interface Guest {
  readonly cell: string;
  /** As commands name it. */
  readonly name: string;
  readonly element: ElementWithState;
}
/** VMs of all cells; of a cell whose controller does not answer nothing is known. */
const allVms = async (client: Client, warn: (line: string) => void): Promise<readonly Guest[]> => {
  const found: Guest[] = [];
  for (const { cell } of await client.cells()) {
    try {
      for (const element of elementsOf(await client.model(cell, "", true), ""))
        if (element.type === "VM") found.push({ cell, name: pathIn(cell, element.path), element });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status !== 404) warn(`the cell ${cell} does not answer: ${error.message}`);
    }
  }
  return found;
};
const isAt =
  (host: string) =>
  ({ element }: Guest): boolean =>
    element.state.host === host;

/** What a person wrote there, or that it has joined; throws for a host that has no element. */
const stateOf = async (client: Client, host: string): Promise<HostAdministration> => {
  const all = await client.model(root, hosts, false).catch((error: unknown): Json => {
    if (error instanceof Refused && error.status === 404) return {};
    throw error;
  });
  const element = isObject(all) ? all[host] : undefined;
  if (isObject(element)) {
    const state = element["x.state"];
    return state === "disabled" || state === "maintenance" ? state : "enabled";
  }
  const names = isObject(all) ? Object.keys(all).join(", ") : "";
  throw usage(`there is no host ${host}; ${names === "" ? "the root cell has none yet" : `the hosts are ${names}`}`);
};

const subjectOf = (host: string, administration: HostAdministration) =>
  ({ host, administration, presence: "unknown" }) as const;
const statePath = (host: string): string => `${hosts}/${host}/x.state`;
const put = async (client: Client, host: string, state: HostAdministration): Promise<void> => {
  const path = statePath(host);
  const { version } = await client.put(root, path, state, true);
  await client.put(root, path, state, false, { version }).catch((error: unknown) => {
    throw overtaken(error) ? conflict(root, error, "The same command") : error;
  });
};

export interface DrainOptions {
  readonly yes: boolean;
  readonly wait: boolean;
  readonly timeoutMs: number;
  readonly dryRun: boolean;
}

const lineOf = ({ name, element }: Guest, host: string, stays: string | null): string => {
  if (element.state.power !== "on") return printable(`  ${name}  is placed elsewhere when it starts`);
  return printable(
    stays === null
      ? `! ${name}  is stopped in order at ${host}, and starts elsewhere with its data`
      : `! ${name}  stays at ${host}: ${stays}`,
  );
};

/** The root controller is the one that moves VMs, and does not move its own: it says so of a move to where it is. Null: it would go, or nobody says. */
async function whyStays(client: Client, { cell, element }: Guest, host: string): Promise<string | null> {
  if (cell !== root || element.state.power !== "on") return null;
  try {
    await client.move(cell, { vm: element.path, to: host }, true);
    return null;
  } catch (error) {
    if (error instanceof Refused && error.status === 409) return error.message;
    if (error instanceof Refused) return null;
    throw error;
  }
}

export const drainHost = async (context: Context, host: string, options: DrainOptions): Promise<void> => {
  const { terminal, json } = context;
  const client = context.client();
  const before = await stateOf(client, host);
  const guests = (await allVms(client, terminal.warn)).filter(isAt(host));
  if (!json) {
    terminal.print(whyNot("drain", null, subjectOf(host, before))?.why ?? `${host} takes nothing new from then on`);
    for (const guest of guests) terminal.print(lineOf(guest, host, await whyStays(client, guest, host)));
    if (guests.length === 0) terminal.print(`no VM is there`);
  }
  const leaving = guests.map(({ name }) => name);
  // What is refused is said before anything is asked.
  await client.put(root, statePath(host), "maintenance", true);
  if (options.dryRun) return json ? printJson(context, { host, state: before, leaving }) : undefined;
  if (!options.yes && before !== "maintenance" && guests.length > 0) {
    if (json || !terminal.canAsk) throw usage("nobody can be asked here: add --yes to do it");
    if (!(await terminal.ask(`Drain ${host}?`))) throw new CommandFailure(exitCodes.refused, "nothing was changed");
  }
  await put(client, host, "maintenance");
  const left = options.wait
    ? await leavable(
        `${host} goes on being drained. \`cells host resume ${host}\` takes it back.`,
        untilEmpty(context, client, host, options.timeoutMs),
      )
    : [];
  const staying = left.map(({ name, element }) => ({ vm: name, reason: element.state.reason }));
  if (json) printJson(context, { host, state: "maintenance", leaving, staying });
  else if (!options.wait) terminal.print(`${host} is being drained: \`cells host drain ${host}\` shows how far it is`);
  else if (left.length === 0) terminal.print(`${host} is empty; \`cells host resume ${host}\` lets it take VMs again`);
  if (left.length === 0) return;
  // Nothing more comes of waiting, and this is what helps.
  if (left.every(({ element }) => staysAs(element, "leaves-with-its-host")))
    throw new CommandFailure(
      exitCodes.notAsDeclared,
      printable(
        `${host} is empty but for ${names(left)}, in which the root controller runs: switch ${host} off in order, and another host starts it`,
      ),
    );
  const reasons = staying.map(({ vm, reason }) => printable(`${vm}: ${reason ?? "it is on its way"}`));
  throw new CommandFailure(
    exitCodes.notAsDeclared,
    [`these are still at ${host}, and run; they go as soon as they can:`, ...reasons].join("\n  "),
  );
};

/** Those that are still there when nothing more is to be expected, or the time is over. */
const untilEmpty = async (
  { terminal, json }: Context,
  client: Client,
  host: string,
  timeoutMs: number,
): Promise<readonly Guest[]> => {
  const until = performance.now() + timeoutMs;
  const told = new Map<string, string>();
  let known: readonly Guest[] = [];
  for (let settledLooks = 0; ; ) {
    const all = await allVms(client, () => undefined);
    const here = all.filter(isAt(host));
    const moving = all.filter(({ name, element }) => told.has(name) && element.state.phase !== "ready");
    for (const { name } of known)
      if (!here.some((each) => each.name === name)) {
        const now = all.find((each) => each.name === name)?.element.state;
        if (!json) terminal.print(printable(`${name} has left${now?.host == null ? "" : ` for ${now.host}`}`));
      }
    for (const { name, element } of here) {
      const reason = element.state.reason ?? "";
      if (reason !== "" && told.get(name) !== reason && !json) terminal.print(printable(`${name}: ${reason}`));
      told.set(name, reason);
    }
    known = here;
    if (here.length === 0 && moving.length === 0) return [];
    const isStuck = moving.length === 0 && here.every(({ element }) => staysFor(element));
    settledLooks = isStuck ? settledLooks + 1 : 0;
    if (settledLooks >= 3 || performance.now() > until) return here;
    await sleep(lookAgainMs);
  }
};
/** It says itself why it cannot go; whoever only waits its turn does not. */
const staysFor = (element: ElementWithState): boolean =>
  staysAs(element, "cannot-leave") || staysAs(element, "leaves-with-its-host");
const staysAs = ({ state }: ElementWithState, as: string): boolean =>
  (state.causes ?? []).some(({ kind }) => kind === as);
const names = (guests: readonly Guest[]): string => guests.map(({ name }) => name).join(", ");

export const resumeHost = async (context: Context, host: string): Promise<void> => {
  const client = context.client();
  const before = await stateOf(client, host);
  const against = whyNot("resume", null, subjectOf(host, before));
  if (against === null) await put(client, host, "enabled");
  if (context.json) printJson(context, { host, state: "enabled" });
  else context.terminal.print(against?.why ?? `${host} takes VMs again; those that left stay where they are`);
};

export const moveVm = async (
  context: Context,
  pathText: string,
  to: string,
  { wait, timeoutMs, dryRun }: Omit<DrainOptions, "yes">,
): Promise<void> => {
  const { terminal, json } = context;
  const client = context.client();
  const [cell = "", ...rest] = pathText.split("/");
  const path = [cell.split(".")[0] ?? cell, ...rest].join("/");
  const planned = await client.move(cell, { vm: path, to }, true);
  if (!json)
    terminal.print(
      planned.isThere
        ? `${pathText} is at ${to} already`
        : `! ${pathText}  is stopped in order at ${planned.from}, and starts at ${to} with its data`,
    );
  // Nobody is told where the move's own answer is all that is printed.
  const isTold = dryRun || !json;
  const tried = planned.isThere || !isTold ? null : await triedAt(client, pathText, to);
  if (!json) for (const line of linesOfTrial(tried, to)) terminal.print(printable(line));
  if (dryRun)
    return json
      ? printJson(context, { ...planned, ...(typeof tried === "string" || tried === null ? {} : { tried }) })
      : undefined;
  const accepted = await client.move(cell, { vm: path, to }, false);
  if (!wait || accepted.isThere) {
    if (json) printJson(context, accepted);
    else if (!accepted.isThere) terminal.print(`${pathText}: the move is accepted`);
    return;
  }
  const state = await leavable(
    `The move goes on. \`cells move ${pathText} --to ${accepted.from}\` takes it back.`,
    untilMoved(client, cell, path, accepted.incarnation, timeoutMs),
  );
  const isDone = state?.phase === "ready" && (state.incarnation ?? 0) > accepted.incarnation;
  if (isDone && json) printJson(context, { ...accepted, state });
  else if (isDone) terminal.print(`${pathText} runs at ${state.host}`);
  else
    throw new CommandFailure(
      exitCodes.notAsDeclared,
      printable(`${pathText} has not moved yet: ${state?.reason ?? "it is on its way"}`),
    );
};

/** What the Placer says of the move beforehand; a sentence: why that is not known, on which the move does not hang. */
async function triedAt(client: Client, vm: string, host: string): Promise<Trial | string | null> {
  try {
    return (await client.ask("tryPlacement", { parameters: {}, query: { vm, host } })).hosts[0] ?? null;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}
function linesOfTrial(tried: Trial | string | null, to: string): readonly string[] {
  if (tried === null) return [];
  if (typeof tried === "string")
    return [`! whether ${to} takes it, and which alerts that raises, is not known: ${tried}`];
  const { refusal, alerts } = tried;
  const until = refusal?.lifts === "" ? "" : `, until ${refusal?.lifts}`;
  const waits =
    refusal === undefined ? [] : [`! ${to} does not take it now: ${refusal.why}. It runs on where it is${until}`];
  return [...waits, ...alerts.map(({ kind, says }) => `! alert ${kind}: ${says}`)];
}

const untilMoved = async (client: Client, cell: string, path: string, before: number, timeoutMs: number) => {
  const until = performance.now() + timeoutMs;
  for (;;) {
    const [vm] = elementsOf(await client.model(cell, path, true), path);
    const isDone = vm?.state.phase === "ready" && (vm.state.incarnation ?? 0) > before;
    if (isDone || performance.now() > until || (vm !== undefined && staysFor(vm))) return vm?.state;
    await sleep(lookAgainMs);
  }
};
