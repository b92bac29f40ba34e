import type { ElementWithState } from "../../model/contract/follow/rows.ts";

/** What a person wants to know of an element that is as declared. */
const facts = ({ state }: ElementWithState): readonly string[] => [
  ...(state.power === undefined ? [] : [`power ${state.power}`]),
  ...(state.host == null ? [] : [`on ${state.host}`]),
  ...(state.incarnation === undefined || state.incarnation === 0 ? [] : [`incarnation ${state.incarnation}`]),
  ...(state.countsAt === undefined
    ? []
    : [`counts at ${state.countsAt.host ?? "a host"} until ${state.countsAt.until}`]),
  ...(state.reachability === undefined ? [] : [`reached: ${state.reachability}`]),
  ...(state.address == null ? [] : [state.address]),
  ...(state.publicAddress === undefined ? [] : [`outside: ${state.publicAddress}`]),
  ...(state.name == null ? [] : [state.name]),
  ...(state.cidr == null ? [] : [state.cidr]),
  ...(state.server == null ? [] : [`at ${state.server}`]),
  ...(state.sizeMiB == null ? [] : [`${state.sizeMiB} MiB`]),
];

/** The reason if there is one, else the facts. */
export const describe = (element: ElementWithState): string => {
  const { reason, reachability } = element.state;
  if (reason === null) return facts(element).join(", ");
  // Whoever waits for a machine that starts is told why it waits; that nobody can say yet whether it is reached follows from it.
  return reachability === "impaired" ? `${reachability}: ${reason}` : reason;
};

export const isReady = ({ state }: ElementWithState): boolean => state.phase === "ready";

/** Nothing more comes of it by itself. */
export const isSettled = ({ state }: ElementWithState): boolean =>
  state.phase === "ready" || state.phase === "failed" || state.stuck === true;

/** Number of elements per phase. */
export const countPhases = (elements: readonly ElementWithState[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const { state } of elements) counts.set(state.phase, (counts.get(state.phase) ?? 0) + 1);
  return counts;
};
