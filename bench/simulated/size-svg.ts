import { inXml, line, style, text } from "../trace-svg.ts";

/** How something grows with the number of what there is; both axes by powers of ten. */
export interface Panel {
  readonly title: string;
  readonly lines: readonly GrowthLine[];
  /** Not more than this at this size; null: there is no goal. */
  readonly goal: { readonly size: number; readonly value: number } | null;
}
export interface GrowthLine {
  readonly name: string;
  readonly points: readonly (readonly [size: number, value: number])[];
}
export interface Growth {
  readonly title: string;
  /** Lines under it, three at most. */
  readonly origin: readonly string[];
  /** One sentence for whoever does not see the drawing. */
  readonly description: string;
  /** What is counted along the axis. */
  readonly along: string;
  readonly panels: readonly Panel[];
}

const left = 64;
const panelWidth = 270;
const gap = 62;
const [top, bottom] = [132, 360];
const height = 450;
const names = ["first", "second"] as const;

const tensAround = (values: readonly number[]): readonly [number, number] => {
  const logs = values.filter((value) => value > 0).map(Math.log10);
  const [low, high] = logs.length === 0 ? [0, 1] : [Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs))];
  return [low, Math.max(high, low + 1)];
};
const round = (value: number): number => Math.round(value * 10) / 10;
const shown = (power: number): string =>
  power < 0 ? (10 ** power).toFixed(-power) : (10 ** power).toLocaleString("en");

function panelOf(
  { title, lines, goal }: Panel,
  at: number,
  sizes: readonly number[],
  along: string,
): readonly string[] {
  const begin = left + at * (panelWidth + gap);
  const [fromX, toX] = [Math.log10(Math.min(...sizes)), Math.log10(Math.max(...sizes))];
  const [fromY, toY] = tensAround([
    ...lines.flatMap(({ points }) => points.map(([, value]) => value)),
    ...(goal === null ? [] : [goal.value]),
  ]);
  const x = (size: number): number =>
    round(begin + (panelWidth * (Math.log10(size) - fromX)) / Math.max(0.1, toX - fromX));
  const y = (value: number): number =>
    round(bottom - ((bottom - top) * (Math.log10(Math.max(value, 10 ** fromY)) - fromY)) / (toY - fromY));
  const parts = [text(begin, top - 14, title)];
  for (let power = fromY; power <= toY; power += 1) {
    parts.push(line([begin, y(10 ** power)], [begin + panelWidth, y(10 ** power)], power === fromY ? "axis" : "grid"));
    parts.push(text(begin - 8, y(10 ** power) + 4, shown(power), 'text-anchor="end"'));
  }
  for (const size of sizes) parts.push(line([x(size), bottom], [x(size), bottom + 5], "axis"));
  for (const size of sizes.filter((_size, index) => index % 2 === 0 || index === sizes.length - 1))
    parts.push(text(x(size), bottom + 20, size.toLocaleString("en"), 'text-anchor="middle" class="faint"'));
  parts.push(line([begin, top], [begin, bottom], "axis"));
  parts.push(text(begin + panelWidth / 2, bottom + 40, along, 'text-anchor="middle"'));
  if (goal !== null) {
    parts.push(line([begin, y(goal.value)], [x(goal.size), y(goal.value)], "wanted"));
    parts.push(`<circle class="fault" fill="none" cx="${x(goal.size)}" cy="${y(goal.value)}" r="5"/>`);
  }
  for (const [index, { points }] of lines.entries()) {
    const path = points.map(([size, value], each) => `${each === 0 ? "M" : "L"}${x(size)} ${y(value)}`).join("");
    parts.push(`<path class="line ${names[index] ?? "second"}" d="${path}"/>`);
  }
  const row = bottom + 66;
  for (const [index, { name }] of lines.entries()) {
    const start = begin + 135 * index;
    parts.push(
      line([start, row - 4], [start + 24, row - 4], names[index] ?? "second"),
      text(start + 30, row, name, 'class="faint"'),
    );
  }
  return parts;
}

/** A drawing of its own, for light and dark grounds. */
export function renderGrowth(growth: Growth): string {
  const { panels, title, origin, description, along } = growth;
  const sizes = [
    ...new Set(panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([size]) => size)))),
  ];
  sizes.sort((one, other) => one - other);
  const width = left + panels.length * (panelWidth + gap);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
    `<title id="title">${inXml(title)}</title>`,
    `<desc id="description">${inXml([description, ...origin].join(" "))}</desc>`,
    `<style>${style}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    text(left, 28, title, 'class="title"'),
    ...origin.map((words, index) => text(left, 47 + 16 * index, words, 'class="faint"')),
    ...panels.flatMap((panel, at) => panelOf(panel, at, sizes, along)),
    "</svg>",
    "",
  ].join("\n");
}
