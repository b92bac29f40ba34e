import type { Sample } from "./figure-6/trace.ts";

/** What happened, from one second to the next; a single moment without `toSecond`. */
export interface Mark {
  readonly fromSecond: number;
  readonly toSecond: number | null;
  readonly text: string;
}
export interface Chart {
  readonly title: string;
  /** Lines under it, three at most: where and when the figures come from, and what is to be held against them. */
  readonly origin: readonly string[];
  /** One sentence for whoever does not see the drawing. */
  readonly description: string;
  /** Two of them. */
  readonly cells: readonly string[];
  readonly samples: readonly Sample[];
  /** In the order of time. */
  readonly marks: readonly Mark[];
}

const width = 880;
const plot = { left: 64, right: 850, top: 132, bottom: 416 };
const height = 502;
/** Between two lines of text. */
const lineHeight = 16;
/** Of bold text, generously: what a text takes is known only where it is drawn. */
const letterWidth = 8.5;

/**
 * Colours of Okabe and Ito, which people with any of the common kinds of colour-blindness tell apart, each once for a
 * light and once for a dark ground; the lines differ in width and dashes as well.
 */
export const style = `
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1c1c1c; }
.title { font-size: 17px; font-weight: 600; }
.faint { fill: #5f5f5f; font-size: 12px; }
.ground { fill: #ffffff; }
.grid { stroke: #e3e3e3; }
.axis { stroke: #1c1c1c; }
.line { fill: none; stroke-linejoin: round; }
.first { stroke: #0072b2; stroke-width: 4; }
.second { stroke: #d55e00; stroke-width: 2.2; stroke-dasharray: 7 3; }
.wanted { stroke: #5f5f5f; stroke-width: 1.2; stroke-dasharray: 2 3; }
.band { fill: #f3e3ef; }
.fault { stroke: #8c3d78; stroke-width: 1.6; }
.said { fill: #8c3d78; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #ececec; }
  .faint { fill: #a8a8a8; }
  .ground { fill: #16181c; }
  .grid { stroke: #34373d; }
  .axis { stroke: #ececec; }
  .first { stroke: #56b4e9; }
  .second { stroke: #f0a830; }
  .wanted { stroke: #a8a8a8; }
  .band { fill: #3a2a36; }
  .fault { stroke: #e39bcd; }
  .said { fill: #e39bcd; }
}
`;

/** Text as it may stand in XML, between tags and in attributes; what XML 1.0 has no place for is left out. */
export const inXml = (text: string): string =>
  text
    .split("")
    .filter((character) => character >= " " || character === "\n" || character === "\t")
    .join("")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/** A step of 1, 2 or 5 times a power of ten, so that there are at most so many of them up to `largest`. */
export function stepFor(largest: number, most: number): number {
  for (let power = 1; ; power *= 10)
    for (const factor of [1, 2, 5]) if (largest / (power * factor) <= most) return power * factor;
}

interface Scale {
  readonly seconds: number;
  readonly vms: number;
  x(second: number): number;
  y(vms: number): number;
}
const round = (value: number): number => Math.round(value * 10) / 10;

function scaleOf({ samples }: Chart): Scale {
  const seconds = Math.max(1, samples.at(-1)?.second ?? 0);
  const highest = Math.max(1, ...samples.flatMap(({ answering, wanted }) => [...answering, ...wanted]));
  const vms = highest + 0.6;
  return {
    seconds,
    vms,
    x: (second) => round(plot.left + ((plot.right - plot.left) * second) / seconds),
    y: (count) => round(plot.bottom - ((plot.bottom - plot.top) * count) / vms),
  };
}

/** Each value holds until the next sample. */
export function stepPath(values: readonly (readonly [second: number, value: number])[], { x, y }: Scale): string {
  let path = "";
  let before: number | null = null;
  for (const [index, [second, value]] of values.entries()) {
    if (before === null) path = `M${x(second)} ${y(value)}`;
    else if (value !== before) path += `H${x(second)}V${y(value)}`;
    else if (index === values.length - 1) path += `H${x(second)}`;
    before = value;
  }
  return path;
}

export const text = (x: number, y: number, words: string, attributes = ""): string =>
  `<text x="${x}" y="${y}"${attributes === "" ? "" : ` ${attributes}`}>${inXml(words)}</text>`;
export const line = (from: readonly [number, number], to: readonly [number, number], name: string): string =>
  `<line class="${name}" x1="${from[0]}" y1="${from[1]}" x2="${to[0]}" y2="${to[1]}"/>`;

function axes({ seconds, vms, x, y }: Scale): readonly string[] {
  const parts: string[] = [];
  const up = stepFor(vms, 10);
  for (let count = 0; count <= vms; count += up) {
    parts.push(line([plot.left, y(count)], [plot.right, y(count)], count === 0 ? "axis" : "grid"));
    parts.push(text(plot.left - 8, y(count) + 4, String(count), 'text-anchor="end"'));
  }
  const along = stepFor(seconds, 12);
  for (let second = 0; second <= seconds; second += along) {
    parts.push(line([x(second), plot.bottom], [x(second), plot.bottom + 5], "axis"));
    parts.push(text(x(second), plot.bottom + 20, String(second), 'text-anchor="middle"'));
  }
  const middle = (plot.top + plot.bottom) / 2;
  parts.push(line([plot.left, plot.top], [plot.left, plot.bottom], "axis"));
  parts.push(text((plot.left + plot.right) / 2, plot.bottom + 40, "time / s", 'text-anchor="middle"'));
  parts.push(text(20, middle, "VMs that answer", `text-anchor="middle" transform="rotate(-90 20 ${middle})"`));
  return parts;
}

/** Words of marks that come soon after one another stand on lines of their own, so that none lies over another. */
function marksOf({ marks }: Chart, { x }: Scale): readonly string[] {
  const grounds = marks.flatMap(({ fromSecond, toSecond }) => {
    if (toSecond === null) return [];
    const wide = round(x(toSecond) - x(fromSecond));
    return `<rect class="band" x="${x(fromSecond)}" y="${plot.top}" width="${wide}" height="${plot.bottom - plot.top}"/>`;
  });
  const words = marks.flatMap(({ fromSecond, text: said }, index) => {
    const at = x(fromSecond);
    const y = plot.top - 8 - lineHeight * ((marks.length - 1 - index) % 3);
    const isRight = at + said.length * letterWidth > plot.right;
    const place = isRight ? 'text-anchor="end" class="said"' : 'class="said"';
    return [line([at, y - 10], [at, plot.bottom], "fault"), text(isRight ? at - 5 : at + 5, y, said, place)];
  });
  return [...grounds, ...words];
}

const names = ["first", "second"] as const;

function legend({ cells }: Chart): readonly string[] {
  const y = height - 18;
  const entries = [
    ...cells.map((cell, index) => ({ words: `cell ${cell}`, name: names[index] ?? "second" })),
    { words: "submitted, each cell", name: "wanted" },
  ];
  return entries.flatMap(({ words, name }, index) => {
    const x = plot.left + 190 * index;
    return [line([x, y - 4], [x + 40, y - 4], name), text(x + 48, y, words)];
  });
}

/** A drawing of its own, for light and dark grounds: steps of both cells over the seconds, and what happened when. */
export function renderChart(chart: Chart): string {
  const scale = scaleOf(chart);
  const wanted = stepPath(
    chart.samples.map((sample) => [sample.second, Math.max(...sample.wanted)]),
    scale,
  );
  const lines = chart.cells.map((_cell, index) => {
    const path = stepPath(
      chart.samples.map(({ second, answering }) => [second, answering[index] ?? 0]),
      scale,
    );
    return `<path class="line ${names[index] ?? "second"}" d="${path}"/>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
    `<title id="title">${inXml(chart.title)}</title>`,
    `<desc id="description">${inXml([chart.description, ...chart.origin].join(" "))}</desc>`,
    `<style>${style}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    text(plot.left, 28, chart.title, 'class="title"'),
    ...chart.origin.map((words, index) => text(plot.left, 47 + lineHeight * index, words, 'class="faint"')),
    ...marksOf(chart, scale),
    ...axes(scale),
    `<path class="line wanted" d="${wanted}"/>`,
    ...lines,
    ...legend(chart),
    "</svg>",
    "",
  ].join("\n");
}
