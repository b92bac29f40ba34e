import type { Json } from "../json/json.ts";

/** What one of a unit that people write is in that of an attribute. Attributes have fixed units, and numbers none. */
const unitFactors: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  MiB: { k: 2 ** -10, m: 1, g: 2 ** 10, t: 2 ** 20 },
  ms: { ms: 1, s: 1000, min: 60_000, h: 3_600_000 },
  MHz: { mhz: 1, ghz: 1000 },
};

const split = (text: string): readonly [number: number, unit: string] | null => {
  const [, number, written = ""] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(text) ?? [];
  return number === undefined ? null : [Number(number), written.toLowerCase()];
};
/** Null: it is none of this unit, or no whole number of it. */
const converted = ([number, written]: readonly [number, string], unit: string): number | null => {
  const factor = unitFactors[unit]?.[unit === "MiB" ? written.replace(/^([kmgt])(i?b)?$/, "$1") : written];
  const value = factor === undefined ? Number.NaN : number * factor;
  return Number.isInteger(value) ? value : null;
};

/** What to write instead of a text with a number and a unit; undefined: it is none, or the attribute counts nothing. */
export function inUnit(json: Json, unit: string | undefined): string | undefined {
  const parts = typeof json === "string" ? split(json) : null;
  if (parts === null || unit === undefined) return undefined;
  const value = converted(parts, unit);
  if (value === null) return `It is counted in ${unit}: write the number alone.`;
  return `It is counted in ${unit}: write ${value}, without quotes and unit.`;
}

/** The same where nobody knows of which attribute it is: `96M`; undefined: no unit that anything here is counted in. */
export function withoutUnit(text: string): string | undefined {
  const parts = split(text);
  for (const unit of parts === null ? [] : Object.keys(unitFactors)) {
    const value = parts === null ? null : converted(parts, unit);
    if (value !== null) return `Numbers have no unit: what is counted in ${unit} is written ${value} here.`;
  }
  return undefined;
}
