import { renderElements, renderSummary } from "../output/render.ts";
import type { Terminal } from "../output/terminal.ts";
import { CommandFailure, exitCodes } from "../program/failure.ts";
import { watchCell } from "./changes.ts";
import { type Client, Refused } from "./client.ts";
import { type ElementWithState, elementsOf, isReady } from "./elements.ts";

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
  /** Resolves when this holds. */
  readonly until: (elements: readonly ElementWithState[]) => boolean;
  /** Nothing is shown: the answer is printed as JSON at the end. */
  readonly silent?: boolean;
  /** Whoever asks has just been answered: who is away is away for a moment. */
  readonly known?: boolean;
  /** Restricts what is shown and waited for. */
  readonly filter?: (element: ElementWithState) => boolean;
}

/**
 * Shows how a cell becomes what was declared: drawn over on a terminal, a line per change elsewhere. The cell's events
 * tell when to look; it looks at the whole state each time rather than adding up events, so nothing is missed and nothing is shown that is no longer so.
 * Returns the last state and whether the wish came true in time. Once it has seen the cell, a controller or a gateway that
 * is away is waited for, as each is for a moment in an upgrade of the cloud itself; one that stays away is the failure.
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
      await changes.next(end - performance.now());
    }
  } finally {
    changes.close();
    terminal.settle();
  }
};

/** Nobody answered, or nobody to whom the gateway passes it on. */
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

/**
 * After a change was accepted: waits until every element is ready that was declared, and says what is stuck otherwise. Rejects with exit code 4.
 * `concerned`: their paths. Others may be added to the cell at the same time, to the root cell by whoever makes a cell:
 * those are somebody else's to wait for.
 */
export const followUntilReady = async (
  client: Client,
  cell: string,
  terminal: Terminal,
  wanted: { readonly timeoutMs: number; readonly silent: boolean; readonly concerned: ReadonlySet<string> },
): Promise<readonly ElementWithState[]> => {
  const { timeoutMs, silent, concerned } = wanted;
  const until = (elements: readonly ElementWithState[]): boolean => elements.every(isReady);
  const filter = ({ path }: ElementWithState): boolean => concerned.has(path);
  const { elements, reached } = await follow(client, cell, terminal, { timeoutMs, until, silent, filter, known: true });
  if (reached) return elements;
  const stuck = elements.filter((element) => !isReady(element));
  throw new CommandFailure(
    exitCodes.notAsDeclared,
    [
      `${stuck.length} of ${elements.length} elements are not ready after ${timeoutMs / 1000} s:`,
      ...renderElements(stuck, terminal.paint).map((line) => `  ${line}`),
      `The cell's controller goes on trying: \`cells watch ${cell}\` shows it.`,
    ].join("\n"),
  );
};
