import { inXml, line, stepFor, style, text } from "../trace-svg.ts";
import type { Birth, Piece, Row, Step } from "./birth.ts";

export interface BirthDrawing {
  readonly title: string;
  /** Lines under it, three at most: where and when the figures come from. */
  readonly origin: readonly string[];
  readonly birth: Birth;
}

const width = 980;
const plot = { left: 210, right: 950, top: 96 };
const rowHeight = 24;
const barHeight = 14;
const lineHeight = 16;
/** Of what is written below: longer texts are cut, and whole in the bar's own words. */
const mostLetters = 118;

const own = `
.works { fill: #0072b2; }
.starts { fill: #56b4e9; }
.waits { fill: #cfcfcf; }
.tick { stroke: #1c1c1c; stroke-width: 1.2; }
.path { fill: none; stroke: #d55e00; stroke-width: 2.4; }
.nobody { fill: none; stroke: #d55e00; stroke-width: 1.4; stroke-dasharray: 3 3; }
@media (prefers-color-scheme: dark) {
  .works { fill: #56b4e9; }
  .starts { fill: #2f6f94; }
  .waits { fill: #4a4d54; }
  .tick { stroke: #ececec; }
  .path, .nobody { stroke: #f0a830; }
}
`;

const round = (value: number): number => Math.round(value * 10) / 10;
const seconds = (ms: number): string => (ms / 1000).toFixed(1);
const cut = (words: string): string => (words.length > mostLetters ? `${words.slice(0, mostLetters - 1)}…` : words);

/** One line for each step of the path, as the drawing and the bench show it. */
export const stepLines = ({ path, startMs }: Birth): readonly string[] =>
  path.map(
    ({ fromMs, toMs, row, text: words }) =>
      `${seconds(fromMs - startMs).padStart(6)} + ${seconds(toMs - fromMs).padStart(4)} s  ${row ?? "nobody"}: ${words}`,
  );

function bars({ pieces, ticks }: Row, y: number, x: (ms: number) => number, startMs: number): readonly string[] {
  const bar = ({ fromMs, toMs, kind, text: words }: Piece): string =>
    `<rect class="${kind}" x="${x(fromMs)}" y="${y}" width="${round(Math.max(0.6, x(toMs) - x(fromMs)))}" height="${barHeight}">` +
    `<title>${inXml(`${seconds(fromMs - startMs)} to ${seconds(toMs - startMs)} s: ${words}`)}</title></rect>`;
  const tick = ({ atMs, text: words }: Row["ticks"][number]): string =>
    `<line class="tick" x1="${x(atMs)}" y1="${y - 2}" x2="${x(atMs)}" y2="${y + barHeight + 2}"><title>${inXml(words)}</title></line>`;
  return [...pieces.map(bar), ...ticks.map(tick)];
}

function framed({ fromMs, toMs, row }: Step, rows: readonly Row[], x: (ms: number) => number): string {
  const at = rows.findIndex(({ name }) => name === row);
  const y = plot.top + rowHeight * (at < 0 ? rows.length : at) + 2;
  const wide = round(Math.max(1, x(toMs) - x(fromMs)));
  return `<rect class="${at < 0 ? "nobody" : "path"}" x="${x(fromMs)}" y="${y}" width="${wide}" height="${barHeight + 6}"/>`;
}

/** A drawing of its own, for light and dark grounds: each process, machine and wait in its row, and the critical path framed. */
export function renderBirth({ title, origin, birth }: BirthDrawing): string {
  const { rows, path, startMs, endMs } = birth;
  const x = (ms: number): number =>
    round(plot.left + ((plot.right - plot.left) * (ms - startMs)) / Math.max(1, endMs - startMs));
  const bottom = plot.top + rowHeight * (rows.length + 1);
  const told = path.filter(({ fromMs, toMs }) => toMs - fromMs >= 300);
  const legendY = bottom + 44;
  const height = legendY + 34 + lineHeight * (told.length + 1);
  const grid: string[] = [];
  const span = (endMs - startMs) / 1000;
  for (let second = 0, along = stepFor(span, 14); second <= span; second += along) {
    const at = x(startMs + second * 1000);
    grid.push(line([at, plot.top - 4], [at, bottom], "grid"));
    grid.push(text(at, bottom + 18, String(second), 'text-anchor="middle" class="faint"'));
  }
  const legend = [
    ["works", "works"],
    ["starts", "a process or a machine starts"],
    ["waits", "waits for something else"],
    ["path", "on the critical path"],
  ].flatMap(([name = "", words = ""], index) => {
    const at = plot.left + [0, 90, 310, 510][index]!;
    return [
      `<rect class="${name}" x="${at}" y="${legendY - 11}" width="22" height="12"/>`,
      text(at + 30, legendY, words, 'class="faint"'),
    ];
  });
  const description = `From \`cells up\` until a tenant's cell was accepted, ${seconds(endMs - startMs)} s. The critical path: ${told
    .map(({ row, fromMs, toMs, text: words }) => `${row ?? "nobody"}, ${seconds(toMs - fromMs)} s, ${words}`)
    .join("; ")}.`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
    `<title id="title">${inXml(title)}</title>`,
    `<desc id="description">${inXml(description)}</desc>`,
    `<style>${style}${own}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    text(20, 28, title, 'class="title"'),
    ...origin.map((words, index) => text(20, 47 + lineHeight * index, words, 'class="faint"')),
    ...grid,
    ...rows.flatMap((row, index) => {
      const y = plot.top + rowHeight * index + 5;
      return [text(plot.left - 10, y + 11, row.name, 'text-anchor="end"'), ...bars(row, y, x, startMs)];
    }),
    text((plot.left + plot.right) / 2, bottom + 32, "time / s", 'text-anchor="middle" class="faint"'),
    ...path.map((step) => framed(step, rows, x)),
    ...legend,
    ...stepLines({ ...birth, path: told }).map((words, index) =>
      text(20, legendY + 28 + lineHeight * index, cut(words), 'class="faint" xml:space="preserve"'),
    ),
    "</svg>",
    "",
  ].join("\n");
}
