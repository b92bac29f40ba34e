import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { longJson, smartFrogTree } from "../tree.ts";
import { javaDouble, javaFloat } from "./java-number.ts";
import { lazyText, scalarText } from "./print.ts";
import type { Expression, Reference, Scalar } from "./syntax.ts";

const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** A value as text, and what the text must mean. */
interface Sample {
  readonly text: string;
  readonly means: unknown;
}
const scalar = (value: Scalar, means: unknown): Sample => ({ text: scalarText(value), means });
const byteClass = "org.smartfrog.sfcore.common.SFByteArray";
const longSample = (value: bigint): Sample =>
  scalar({ kind: "number", type: "long", value }, { $long: longJson(value) });
const samples = fc.letrec<{ value: Sample; component: Sample }>((tie) => {
  const name = fc.oneof(fc.stringMatching(/^[a-z][a-z0-9.]{0,4}$/), fc.string({ maxLength: 5 })).map((text) => ({
    text: scalarText({ kind: "string", value: text }),
    name: text,
  }));
  const tags = fc.uniqueArray(fc.constantFrom("core", "opt", "x y"), { maxLength: 2 });
  const whole = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  const real = fc.double({ noNaN: true, noDefaultInfinity: true });
  const float = fc.float({ noNaN: true, noDefaultInfinity: true });
  return {
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: "binary" }).map((value) => scalar({ kind: "string", value }, value)),
      whole.map((value) => scalar({ kind: "number", type: "int", value }, value)),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => longSample(value)),
      real.map((value) => scalar({ kind: "number", type: "double", value }, { $double: javaDouble(value) })),
      float.map((value) => scalar({ kind: "number", type: "float", value }, { $float: javaFloat(value) })),
      fc.boolean().map((value) => scalar({ kind: "boolean", value }, value)),
      fc
        .uint8Array({ maxLength: 4 })
        .map((bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0").toUpperCase()).join(""))
        .map((value) => scalar({ kind: "bytes", value }, { $class: byteClass, text: `#HEX#${value}#` })),
      fc.constant(scalar({ kind: "null" }, { $null: true })),
      fc.array(tie("value"), { maxLength: 3 }).map((items) => ({
        text: `[${items.map(({ text }) => text).join(", ")}]`,
        means: items.map(({ means }) => means),
      })),
    ),
    component: fc
      .tuple(
        fc.uniqueArray(fc.tuple(name, tags, fc.oneof({ maxDepth: 3 }, tie("value"), tie("component"))), {
          maxLength: 4,
          selector: ([each]) => each.name,
        }),
        fc.boolean(),
      )
      .map(([attributes, data]) => ({
        text: `extends ${data ? "DATA " : ""}{ ${attributes
          .map(([{ text }, marks, value]) => `[${marks.map((mark) => `"${mark}"`).join(" ")}] ${text} ${value.text};`)
          .join("\n")} }`,
        means: {
          $cd: attributes.map((each) => [
            each[0].name,
            each[2].means,
            ...(each[1].length > 0 ? [[...each[1]].sort()] : []),
          ]),
          ...(data ? { $data: true } : {}),
        },
      })),
  };
});

test("what is printed reads as it was", () => {
  fc.assert(
    fc.property(samples.component, ({ text, means }) => {
      const outcome = smartFrogTree({ main: "a.sf", files: { "a.sf": `sfConfig ${text}` } }, []);
      assert.deepEqual(outcome, { ok: true, sfConfig: means });
    }),
    { seed, numRuns: 300 },
  );
});

test("numbers are written as Java writes them", () => {
  const doubles: readonly (readonly [number, string])[] = [
    ...([
      [0, "0.0"],
      [-0, "-0.0"],
      [1, "1.0"],
      [-1534.45, "-1534.45"],
      [0.001, "0.001"],
    ] as const),
    ...([
      [0.0001, "1.0E-4"],
      [1e7, "1.0E7"],
      [9_999_999, "9999999.0"],
      [1.5e10, "1.5E10"],
    ] as const),
    ...([
      [1.25e-300, "1.25E-300"],
      [100, "100.0"],
      [-12e-5, "-1.2E-4"],
      [5e-324, "4.9E-324"],
      [2e23, "2.0E23"],
    ] as const),
  ];
  for (const [value, text] of doubles) assert.equal(javaDouble(value), text);
  assert.deepEqual([0.1, 1534.45, 16_777_217, 1e10, 3.4e38, 1e-45, 2e-44].map(javaFloat), [
    "0.1",
    "1534.45",
    "1.6777216E7",
    "1.0E10",
    "3.4E38",
    "1.4E-45",
    "2.0E-44",
  ]);
});

test("what stands before a reference is written, and nothing where it must be there", () => {
  const position = { file: "a.sf", line: 1, column: 1, length: 1 };
  const reference = { parts: [{ kind: "here", name: "b" }], position } as unknown as Reference;
  const text = (otherwise: Expression | null, when: "LAZY" | "DATA" = "LAZY"): string =>
    lazyText(reference, when, otherwise).replace(/ +/g, " ");
  const plain = text(null);
  assert.ok(plain.startsWith("LAZY ") && !plain.includes("OPTIONAL"), plain);
  const scalar = (of: Scalar): Expression => ({ kind: "scalar", scalar: of }) as unknown as Expression;
  assert.equal(text(scalar({ kind: "null" })), plain.replace("LAZY ", "LAZY OPTIONAL "));
  assert.equal(text(scalar({ kind: "string", value: "d" })), plain.replace("LAZY ", 'LAZY OPTIONAL ("d") '));
  assert.equal(text(null, "DATA"), plain.replace("LAZY ", "DATA "));
});
