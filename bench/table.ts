import type { Figure } from "./bench.ts";
import { busyShare, type Provenance } from "./measure.ts";

/** Three digits that mean something. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return value.toFixed(2);
}
const withUnit = (value: number, unit: Figure["unit"]): string =>
  unit === "×" ? `${formatNumber(value)} ×` : `${formatNumber(value)} ${unit}`;

const verdict = ({ value, atMost }: Figure): string =>
  atMost === null ? "" : value <= atMost ? "holds" : "**missed**";

/** A Markdown table: goal, figure, whether it holds. */
export function renderTable(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => [
    figure.note === undefined ? figure.what : `${figure.what} (${figure.note})`,
    figure.atMost === null ? "" : `≤ ${withUnit(figure.atMost, figure.unit)}`,
    withUnit(figure.value, figure.unit),
    figure.range === null ? "" : `${formatNumber(figure.range[0])} – ${formatNumber(figure.range[1])}`,
    verdict(figure),
  ]);
  return [["what", "goal", "measured", "lowest – highest", ""], Array(5).fill("---"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

/** One line under a table: without it, its figures are worth nothing. */
export function renderProvenance(from: Provenance, quick: boolean): string {
  const parts = [`commit ${from.commit}`, from.time, from.machine, `load ${from.load.toFixed(1)}`];
  const warnings = [
    ...(quick ? ["quick run: a try, no measurement"] : []),
    ...(from.others > busyShare
      ? [`others used ${Math.round(100 * from.others)} % of the CPUs just before: provisional`]
      : []),
  ];
  return [parts.join(", "), ...warnings.map((warning) => `**${warning}**`)].join("; ");
}
