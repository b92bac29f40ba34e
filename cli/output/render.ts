import type { ConnectionAnswer, ElementAnswer } from "../../model/api.ts";
import type { ElementWithState } from "../../model/contract/follow/rows.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { countPhases, describe } from "../connection/elements.ts";
import { type Colour, type Paint, table } from "../terminal/terminal.ts";

/** Sign and colour of a phase; the sign says the same without colour. */
const phases: Readonly<Record<string, { readonly sign: string; readonly colour: Colour }>> = {
  ready: { sign: "✓", colour: "green" },
  working: { sign: "…", colour: "blue" },
  waiting: { sign: "·", colour: "grey" },
  failed: { sign: "✗", colour: "red" },
  deleting: { sign: "-", colour: "yellow" },
};
const ofPhase = (phase: string): { readonly sign: string; readonly colour: Colour } =>
  phases[phase] ?? { sign: "?", colour: "yellow" };

export const phaseLabel = (phase: string, paint: Paint): string => {
  const { sign, colour } = ofPhase(phase);
  return paint(colour, `${sign} ${phase}`);
};

/** One line per element. */
export const renderElements = (elements: readonly ElementWithState[], paint: Paint): readonly string[] =>
  table(
    elements.map((element) => [
      phaseLabel(element.state.phase, paint),
      element.path,
      paint("grey", element.type),
      printable(describe(element)),
    ]),
  );

/** `12 ready, 3 waiting`, in the order of the table above. */
export const renderCounts = (counts: ReadonlyMap<string, number>, paint: Paint): string =>
  [...new Set([...Object.keys(phases), ...counts.keys()])]
    .flatMap((phase) => {
      const count = counts.get(phase) ?? 0;
      return count === 0 ? [] : [paint(ofPhase(phase).colour, `${count} ${phase}`)];
    })
    .join(", ");

export const renderSummary = (elements: readonly ElementWithState[], paint: Paint): string =>
  `${elements.length} elements: ${renderCounts(countPhases(elements), paint) || "none"}`;

export const renderWhy = (answer: ConnectionAnswer, paint: Paint): string => {
  const { from, to, protocol, port, allowed, checks, verdict } = answer;
  const head = `${from} -> ${to}${port === null ? "" : `:${port}`} (${protocol}): ${allowed ? paint("green", "passes") : paint("red", "is blocked")}`;
  const rows = checks.map(({ where, check, passes, detail }) => [
    `  ${passes ? paint("green", "✓") : paint("red", "✗")}`,
    where,
    printable(check),
    paint("grey", printable(detail)),
  ]);
  return [head, ...table(rows), printable(verdict)].join("\n");
};

export const renderElementAnswer = (answer: ElementAnswer, paint: Paint): string => {
  const { path, type, phase, checks, verdict } = answer;
  const rows = checks.map(({ check, passes, detail, lifts }) => [
    `  ${passes ? paint("green", "✓") : paint("red", "✗")}`,
    printable(check),
    paint("grey", printable(lifts === null ? detail : `${detail} (${lifts})`)),
  ]);
  return [`${path} (${type}): ${phase}`, ...table(rows), printable(verdict)].join("\n");
};
