/**
 * Numbers as Java writes them, which is what `++` joins and what recorded outcomes hold: a decimal point always, and an
 * exponent below 10⁻³ and from 10⁷ on (`Double.toString` of the Java platform, since 19 with the shortest digits).
 */
export function javaDouble(value: number): string {
  const shortest = value.toExponential();
  // Of one digit, the nearest of those with two is written: 4.9E-324, not 5.0E-324.
  return written(value, shortest.includes(".") ? shortest : value.toExponential(1));
}

/** The same of a 32-bit float: the fewest digits that mean this float and no other, two at least. */
export function javaFloat(value: number): string {
  const float = Math.fround(value);
  for (let digits = 1; digits < 9; digits++) {
    const text = float.toExponential(digits);
    if (Math.fround(Number(text)) === float) return written(float, text);
  }
  return written(float, float.toExponential());
}

/** The number of the fewest digits that a 32-bit float is, which JSON has: 0.1 for `0.1F`. */
export const shortestFloat = (float: number): number => Number(javaFloat(float).replace("E", "e"));

function written(value: number, exponential: string): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (value === 0) return `${sign}0.0`;
  const [mantissa = "", power = "0"] = exponential.replace("-", sign === "" ? "-" : "").split("e");
  const digits = mantissa.replace(".", "").replace(/0+$/, "") || "0";
  const exponent = Number(power);
  const split = (at: number): string => {
    const padded = digits.padEnd(at + 1, "0");
    return `${padded.slice(0, at)}.${padded.slice(at) || "0"}`;
  };
  if (exponent >= 7 || exponent < -3) return `${sign}${split(1)}E${exponent}`;
  return exponent < 0 ? `${sign}0.${"0".repeat(-exponent - 1)}${digits}` : `${sign}${split(exponent + 1)}`;
}
