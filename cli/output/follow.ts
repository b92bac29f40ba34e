import { awaitedElement, isUpToOthers } from "../../model/cause/cause.ts";
import { type ElementWithState, elementsOf } from "../../model/contract/follow/rows.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { watchCell } from "../connection/changes.ts";
import { type Client, Refused } from "../connection/client.ts";
import { isReady, isSettled } from "../connection/elements.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { renderElements, renderSummary } from "./render.ts";

/** Actual state of a cell's elements; none when the cell or the path is not there. */
export const readElements = async (client: Client, cell: string, path = ""): Promise<readonly ElementWithState[]> => {
  try {
    return elementsOf(await client.model(cell, path, true), path);
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return [];
    throw error;
  }
};

const signature = ({ path, state }: ElementWithState): string =>
  [path, state.uid, state.phase, state.reason, state.host, state.power].join("\0");

/** Elements that look different from before; those that are gone are named by their path. */
export const changesSince = (
  before: readonly ElementWithState[],
  now: readonly ElementWithState[],
): { readonly changed: readonly ElementWithState[]; readonly gone: readonly string[] } => {
  const known = new Set(before.map(signature));
  const present = new Set(now.map(({ path }) => path));
  return {
    changed: now.filter((element) => !known.has(signature(element))),
    gone: before.flatMap(({ path }) => (present.has(path) ? [] : [path])),
  };
};

export interface FollowOptions {
  readonly timeoutMs: number;
  /** Ends the following when it returns true. */
  readonly until: (elements: readonly ElementWithState[]) => boolean;
  /** Prints nothing; the caller prints the result as JSON. */
  readonly silent?: boolean;
  /** The cell has just answered a request, so if it does not answer now it is waited for. */
  readonly known?: boolean;
  /** Looks again after this long even if there was no event. */
  readonly lookAgainMs?: () => number;
  /** Restricts what is shown and waited for. */
  readonly filter?: (element: ElementWithState) => boolean;
}

/**
 * Shows how a cell becomes what was declared: redrawn in place on a terminal, a line per change elsewhere. The cell's events
 * only say when to look. Each look reads the whole state, so nothing is missed and nothing outdated is shown. Returns the
 * last state, and whether `until` held in time. A controller or gateway that stops answering is waited for, since an upgrade
 * of the cloud restarts each of them; if the time ends first, its failure is thrown.
 */
export const follow = async (
  client: Client,
  cell: string,
  terminal: Terminal,
  options: FollowOptions,
): Promise<{ readonly elements: readonly ElementWithState[]; readonly reached: boolean }> => {
  const end = performance.now() + options.timeoutMs;
  let before: readonly ElementWithState[] = [];
  let away: string | null = null;
  let seen = options.known === true;
  const changes = watchCell(client, cell);
  try {
    for (;;) {
      const look = await readElements(client, cell).catch((error: unknown) => {
        if (!seen || !isAway(error) || performance.now() > end) throw error;
        return error;
      });
      if (look instanceof CommandFailure) {
        if (away === null && options.silent !== true) terminal.warn(`${look.message}; waits until it does`);
        away = look.message;
        await changes.next(end - performance.now());
        continue;
      }
      const elements = look.filter(options.filter ?? (() => true));
      [seen, away] = [true, null];
      if (options.silent !== true) show(before, elements, terminal);
      before = elements;
      if (options.until(elements)) return { elements, reached: true };
      if (performance.now() > end) return { elements, reached: false };
      await changes.next(Math.min(end - performance.now(), options.lookAgainMs?.() ?? Number.POSITIVE_INFINITY));
    }
  } finally {
    changes.close();
    terminal.settle();
  }
};

/** The gateway did not answer, or it could not reach the controller. */
const isAway = (error: unknown): error is CommandFailure =>
  error instanceof Refused ? [502, 503].includes(error.status) : isUnreachable(error);
const isUnreachable = (error: unknown): error is CommandFailure =>
  error instanceof CommandFailure && error.exitCode === exitCodes.unreachable;

const show = (before: readonly ElementWithState[], elements: readonly ElementWithState[], terminal: Terminal): void => {
  if (terminal.live) {
    terminal.draw([...renderElements(elements, terminal.paint), renderSummary(elements, terminal.paint)]);
    return;
  }
  const { changed, gone } = changesSince(before, elements);
  for (const line of renderElements(changed, terminal.paint)) terminal.print(line);
  for (const path of gone) terminal.print(`- removed  ${path}`);
};

/** An element that has failed is given this time to leave that phase: its service may not have heard of the change yet. */
const graceMs = 2_000;
/** What waits for others is given this time: they may be on their way, and so may be what gives up its room. */
const graceForOthersMs = 20_000;
const mostExplained = 3;

/** Paths of those that wait for what is up to others, and of those that wait for one of these. */
const upToOthers = (elements: readonly ElementWithState[]): ReadonlySet<string> => {
  const paths = new Set<string>();
  for (let found = -1; found < paths.size; ) {
    found = paths.size;
    for (const { path, state } of elements) {
      const isHeld = (state.causes ?? []).some(
        (cause) => isUpToOthers(cause) || (cause.kind === "waits-for" && paths.has(cause.element)),
      );
      if (state.phase === "waiting" && isHeld) paths.add(path);
    }
  }
  return paths;
};

/**
 * After a change was accepted: waits until every element is ready that was declared, and rejects with exit code 4 where that
 * does not come, in time or at all. What is stuck is not waited for, nor, once nothing else of it goes on, what others have to make
 * room for or to grant; nor what waits for something and is not `touched` by
 * the change (absent: all is). `concerned`: the paths of all that was declared. Others may be added to the cell at the same
 * time, to the root cell by whoever makes a cell: those are somebody else's to wait for.
 */
export const followUntilReady = async (
  client: Client,
  cell: string,
  terminal: Terminal,
  wanted: {
    readonly timeoutMs: number;
    readonly silent: boolean;
    readonly concerned: ReadonlySet<string>;
    readonly touched?: ReadonlySet<string>;
    readonly graceForOthersMs?: number;
  },
): Promise<readonly ElementWithState[]> => {
  const {
    timeoutMs,
    silent,
    concerned,
    touched = concerned,
    graceForOthersMs: graceForOthers = graceForOthersMs,
  } = wanted;
  const isOthers = ({ path, state }: ElementWithState): boolean => !touched.has(path) && state.phase !== "working";
  let settledAt: number | null = null;
  let grace = graceMs;
  const until = (elements: readonly ElementWithState[]): boolean => {
    if (elements.every(isReady)) return true;
    const held = upToOthers(elements);
    const isOver = elements.every((element) => isSettled(element) || isOthers(element) || held.has(element.path));
    grace = elements.every((element) => isSettled(element) || isOthers(element)) ? graceMs : graceForOthers;
    settledAt = isOver ? (settledAt ?? performance.now()) : null;
    return settledAt !== null && performance.now() - settledAt >= grace;
  };
  const lookAgainMs = (): number => (settledAt === null ? Number.POSITIVE_INFINITY : grace);
  const filter = ({ path }: ElementWithState): boolean => concerned.has(path);
  const options = { timeoutMs, until, silent, filter, lookAgainMs, known: true };
  const { elements, reached } = await follow(client, cell, terminal, options);
  const open = elements.filter((element) => !isReady(element));
  if (open.length === 0) return elements;
  const list = (shown: readonly ElementWithState[]): readonly string[] =>
    renderElements(shown, terminal.paint).map((line) => `  ${line}`);
  if (!reached)
    throw new CommandFailure(
      exitCodes.notAsDeclared,
      [
        `${open.length} of ${elements.length} elements are not ready after ${timeoutMs / 1000} s:`,
        ...list(open),
        `The cell's controller goes on trying: \`cells watch ${cell}\` shows it.`,
      ].join("\n"),
    );
  const held = upToOthers(elements);
  const isHeld = (element: ElementWithState): boolean =>
    !isSettled(element) && touched.has(element.path) && held.has(element.path);
  const [stuck, waiting] = [open.filter(isSettled), open.filter(isHeld)];
  const others = open.filter((element) => !isSettled(element) && !isHeld(element));
  throw new CommandFailure(
    exitCodes.notAsDeclared,
    [
      ...(stuck.length === 0
        ? []
        : [
            `${stuck.length} of ${elements.length} elements do not become ready before something is changed:`,
            ...list(stuck),
            ...(await remedies(client, cell, stuck)),
          ]),
      ...(waiting.length === 0
        ? []
        : [
            `${waiting.length} of ${elements.length} elements wait for what nothing of this change brings, and go on by themselves when it comes:`,
            ...list(waiting),
            ...(await remedies(client, cell, waiting)),
          ]),
      ...(others.length === 0
        ? []
        : [
            `Not ready, and not touched by this change:`,
            ...list(others),
            `\`cells watch ${cell}\` shows what becomes of it.`,
          ]),
    ].join("\n"),
  );
};

/** What to do about those that failed, or that wait for something other than an element, as `cells why` says it. */
const remedies = async (
  client: Client,
  cell: string,
  stuck: readonly ElementWithState[],
): Promise<readonly string[]> => {
  const first = stuck.filter(({ state }) => state.phase === "failed" || awaitedElement(state.causes ?? []) === null);
  const failed = first.slice(0, mostExplained);
  const verdicts = await Promise.all(
    failed.map(({ path }) =>
      client.whyElement(cell, path).then(
        ({ verdict }) => verdict,
        () => null,
      ),
    ),
  );
  return verdicts.flatMap((verdict) => (verdict === null ? [] : [printable(verdict)]));
};
