import type { HostName } from "../../../model/cell/identifiers.ts";
import { type GroupState, type HostView, isGone, type Life, liveHosts, thresholdCap, thresholdOf } from "./state.ts";

/*
 * How many hosts say that another one does not answer: reports count for a vote, and doubts, which come some seconds before, for who asks further.
 */
export const isSame = (a: Life, b: Life): boolean => a.generation === b.generation && a.incarnation === b.incarnation;

/** Distinct hosts that report this life and are themselves alive and heard. */
export function reportersOf(
  state: GroupState,
  { reports }: HostView,
  life: Life,
  doubts = new Map<HostName, Life>(),
): number {
  const reporters = new Set<HostName>();
  for (const said of [reports, doubts])
    for (const [reporter, report] of said) {
      const by = state.hosts.get(reporter);
      if (by !== undefined && by.reachable === true && !isGone(by) && isSame(report, life)) reporters.add(reporter);
    }
  return reporters.size;
}

/** Whether enough hosts report this life, or doubt it as well, whatever this member has heard of it lately. */
export function isSuspected(
  state: GroupState,
  view: HostView,
  life: Life,
): { readonly for: "votes" | "questions" } | null {
  const { left, reports, doubts } = view;
  if (left || reports.size + doubts.size === 0) return null;
  const threshold = thresholdOf(liveHosts(state), state.options.threshold ?? thresholdCap);
  if (reportersOf(state, view, life) > threshold) return { for: "votes" };
  return reportersOf(state, view, life, doubts) > threshold ? { for: "questions" } : null;
}
