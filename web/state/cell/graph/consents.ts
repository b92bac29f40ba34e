import type { Cause, CauseOf } from "../../../../model/cause/cause.ts";
import { remedy } from "../../../../model/cause/remedy.ts";
import type { Element } from "../../known.ts";
import { type Edge, type Graph, otherCells } from "./graph.ts";

/*
 * What passes between two cells needs the word of both: an element is public, a volume is granted, a rule stands in each. A cell
 * knows of another one only what that one shows to it, so whose word is missing is read off the causes that its own elements have.
 */
/** Whose word is missing; "none": both have said yes; "granted": this one has, and the other need not; "unknown": nobody can say yet, or another thing is in the way. */
export type Missing = "none" | "granted" | "theirs" | "both" | "unknown";
export interface Consent {
  readonly edge: Edge;
  readonly missing: Missing;
  /** What holds it up, a sentence; null: nothing does, or its state has not come yet. */
  readonly reason: string | null;
  /** What would lift that, in words; null: nobody can say. */
  readonly remedy: string | null;
}
/** Another cell that this one names. */
export interface Ghost {
  readonly id: string;
  /** Its name in the cloud, where whoever looks may see it; null: by its domain alone. */
  readonly cell: string | null;
  readonly missing: Missing;
  readonly consents: readonly Consent[];
}
/** Foremost first. */
const order: readonly Missing[] = ["both", "theirs", "unknown", "none", "granted"];

export function ghostsOf(
  { nodes, edges }: Graph,
  elements: readonly Element[],
  cells: readonly string[],
): readonly Ghost[] {
  const states = new Map(elements.map(({ path, state }) => [path, state]));
  const common = commonDomain(elements);
  return nodes
    .filter(({ kind, lane }) => kind === "cell" && lane === otherCells)
    .map(({ id }) => {
      const consents = edges
        .filter(({ from, to }) => from === id || to === id)
        .map((edge) => consentOf(edge, states.get(edge.path) ?? null));
      const missing = order.find((each) => consents.some((consent) => consent.missing === each)) ?? "unknown";
      return { id, cell: cellOf(id, cells, common), missing, consents };
    });
}

function consentOf(edge: Edge, state: Element["state"] | null): Consent {
  const given = edge.kind === "grant" ? "granted" : "none";
  const cause = state === null ? null : lacking(state.causes ?? []);
  if (cause !== null) return { edge, missing: whose(cause), reason: state?.reason ?? null, remedy: remedy(cause) };
  const missing = state?.phase === "ready" ? given : "unknown";
  return { edge, missing, reason: state?.reason ?? null, remedy: null };
}
type Lacking = CauseOf<"foreign-hidden" | "not-granted" | "not-agreed">;
/** The first that is about a word of one of the two. */
function lacking(causes: readonly Cause[]): Lacking | null {
  for (const cause of causes) {
    if (cause.kind === "foreign-hidden" || cause.kind === "not-granted" || cause.kind === "not-agreed") return cause;
    const behind = "because" in cause ? lacking(cause.because ?? []) : null;
    if (behind !== null) return behind;
  }
  return null;
}
/** A rule of ours whose own end the other cell cannot even name needs that of us as well. */
const whose = (cause: Lacking): Missing => (cause.kind === "not-agreed" && !cause.shown ? "both" : "theirs");

/** What every cell's domain has behind the cell's name, as the names of this one's cards say it; null: none of them has a name. */
function commonDomain(elements: readonly Element[]): string | null {
  for (const { cell, state } of elements) {
    // `web.shop.cells.internal`: the card, the cell, and what is everybody's.
    const own = state.name?.slice(state.name.indexOf(".") + 1).toLowerCase();
    if (own?.startsWith(`${cell.toLowerCase()}.`)) return own.slice(cell.length + 1);
  }
  return null;
}
/** A domain that only begins with a cell's name may be anybody's. */
function cellOf(id: string, cells: readonly string[], common: string | null): string | null {
  const domain = id.slice("//".length).toLowerCase();
  return (common === null ? null : cells.find((cell) => domain === `${cell.toLowerCase()}.${common}`)) ?? null;
}

/** As it stands beside a cell's name. */
export const missingSays: Readonly<Record<Missing, string>> = {
  none: "both cells agree",
  granted: "it is granted, and whether it is used the other cell decides",
  theirs: "its consent is missing",
  both: "its consent and ours are missing",
  unknown: "nobody can say yet whether both agree",
};
export const missingSigns: Readonly<Record<Missing, string>> = {
  none: "✓",
  granted: "✓",
  theirs: "✕",
  both: "✕",
  unknown: "…",
};
