import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/* WCAG 2.2, 1.4.3 and 1.4.11: text has 4.5:1 against what is behind it, signs and the edges of controls 3:1, light and dark. */
const css = readFileSync(join(import.meta.dirname, "../style/tokens.css"), "utf8");
const [light = "", dark = ""] = css.split("@media (prefers-color-scheme: dark)");
const tokensOf = (text: string): ReadonlyMap<string, string> =>
  new Map([...text.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = "", value = ""]) => [name, value]));

const luminance = (colour: string): number => {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one: string, other: string): number => {
  const [dim = 0, bright = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dim + 0.05);
};
const texts = ["text", "quiet", "link", "well-text", "ill-text"] as const;
const signs = ["control", "focus", "well", "ill", "main"] as const;

for (const [name, tokens] of [
  ["light", tokensOf(light)],
  ["dark", tokensOf(dark)],
] as const)
  test(`each colour stands out from what is behind it: ${name}`, () => {
    const colour = (token: string): string => tokens.get(token) ?? assert.fail(`${name} has no ${token}`);
    const least = (front: string, behind: string, ratio: number): void => {
      const found = contrast(colour(front), colour(behind));
      assert.ok(found >= ratio, `${front} on ${behind}: ${found.toFixed(2)}, not ${ratio}`);
    };
    for (const behind of ["ground", "raised"]) {
      for (const front of texts) least(front, behind, 4.5);
      for (const front of signs) least(front, behind, 3);
    }
    least("text", "chosen", 4.5);
    least("on-main", "main", 4.5);
  });

test("the arithmetic is that of WCAG", () => {
  assert.equal(contrast("#000000", "#ffffff"), 21);
  assert.equal(contrast("#777777", "#ffffff").toFixed(2), "4.48");
});
