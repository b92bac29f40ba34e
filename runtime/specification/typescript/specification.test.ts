import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import type { Bundle, Cell } from "../../../model/cell/cell.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { renderDiagnostic } from "../../../model/diagnostics/render-diagnostic.ts";
import { isEmptyPlan, planChange } from "../../../model/plan/plan.ts";
import type { Result } from "../../../model/result.ts";
import { readSpecification } from "../../../model/specification/specification.ts";
import { evaluate } from "../evaluate.ts";
import { evaluateTypeScript } from "./specification.ts";

const own = (name: string): string => readFileSync(join(import.meta.dirname, name), "utf8");
const ownTexts = { prelude: own("prelude.ts"), builder: own("builder.ts") };
/** In this process: what a text means needs none of the walls. */
const readHere = async (bundle: Bundle): Promise<Result<Cell, readonly Diagnostic[]>> => {
  const evaluated = await evaluateTypeScript(bundle, ownTexts, () => {});
  return evaluated.ok ? readSpecification({ ...bundle, evaluated: evaluated.value }) : evaluated;
};
const only = (text: string): Bundle => ({ main: "shop.ts", files: { "shop.ts": text } });
const rendered = async (text: string): Promise<string> => {
  const bundle = only(text);
  const read = await readHere(bundle);
  return read.ok ? "" : read.error.map((each) => renderDiagnostic(each, bundle.files, false)).join("\n");
};
const example = (folder: string, main: string, ...others: readonly string[]): Bundle => {
  const directory = join(import.meta.dirname, "../../../examples", folder);
  const files = Object.fromEntries(
    [main, ...others].map((name) => [name, readFileSync(join(directory, name), "utf8")]),
  );
  return { main, files };
};
/** A cell without where its elements were written. */
const meaning = ({ name, path, policy, deploy, limits, elements }: Cell) => ({
  name,
  path,
  policy,
  deploy,
  limits,
  elements: [...elements].map(([, { position, ...element }]) => element),
});

test("the shop in TypeScript is the shop in SmartFrog", async () => {
  const bundle = await evaluate(example("shop-typescript", "shop.ts", "tier.ts", "ports.json"));
  assert.ok(bundle.ok, JSON.stringify(bundle));
  const [typescript, smartFrog] = [
    readSpecification(bundle.value),
    readSpecification(example("shop", "shop.sf", "tier.sf")),
  ];
  assert.ok(typescript.ok && smartFrog.ok);
  assert.equal(typescript.value.elements.size, 20);
  assert.deepEqual(meaning(typescript.value), meaning(smartFrog.value));
  assert.ok(isEmptyPlan(planChange(smartFrog.value, typescript.value)));
  assert.ok(isEmptyPlan(planChange(typescript.value, smartFrog.value)));
  // Names in the same order, groups and values that are no elements too.
  const shape = (json: unknown): unknown =>
    typeof json === "object" && json !== null
      ? Object.entries(json).map(([name, value]) => [name, shape(value)])
      : null;
  assert.deepEqual(shape(typescript.value.document.shop), shape(smartFrog.value.document.shop));
});

test("a fault shows the attribute, in a template too, and all faults come at once", async () => {
  const text = `import { cell, connection, subnet, vm } from "cells/model";

const machine = (memory: number) => vm({
  memory,
  cpus: Math.max(1, 0),
  liveness: { protocol: "icmp", failures: 0 },
});
const net = subnet({ size: 16 });
const é = machine(3);
export default cell("shop", {
  net, web: { machine: é },
  disk: connection({ vm: net as never, volume: net as never }), empty: vm({} as never),
}, { policy: { deploy: "sometimes" as never } });
`;
  const shown = await rendered(text);
  for (const expected of [
    "shop.ts:4:3: error: ",
    "4 |   memory,\n  |   ^^^^^^",
    '6 |   liveness: { protocol: "icmp", failures: 0 },\n  |                                           ^',
    "12 |   disk: connection({ vm: net as never, volume: net as never }), empty: vm({} as never),\n   |                          ^^^^^^^^^^^^",
    "   |                                                                        ^^",
    '13 | }, { policy: { deploy: "sometimes" as never } });',
  ])
    assert.ok(shown.includes(expected), `${expected}\nis not in\n${shown}`);
});

test("an error of the author's own code shows the calls that led there", async () => {
  const shown = await rendered(`import { cell, vm } from "cells/model";
const inner = (name?: string) => vm({ memory: name!.length });
const outer = () => ({ machine: inner() });
export default cell("shop", outer());
`);
  assert.match(shown, /^shop\.ts:2:\d+: error: The specification threw TypeError: .* \[typescript\/thrown\]/);
  assert.match(shown, /shop\.ts:3:\d+: note: called from here/);
  assert.match(shown, /shop\.ts:4:\d+: note: called from here/);
});

test("columns count characters, whatever stands before, and aliases are known", async () => {
  const shown =
    await rendered(`import { cell, vm as machine } from "cells/model"; const s = "äöü€😀"; const web = machine({ memory: 1 });
export default cell("shop", { web, s });
`);
  assert.match(shown, /^shop\.ts:1:(\d+): /);
  const [, column] = /^shop\.ts:1:(\d+): /.exec(shown) ?? [];
  assert.equal(
    Number(column),
    `import { cell, vm as machine } from "cells/model"; const s = "äöü€😀"; const web = machine({ memory: `.length + 1,
  );
});

test("a child cell, references into other cells, data with elements in it", async () => {
  const read = await readHere(
    only(`import { cell, controller, ref, rule, subnet, vm } from "cells/model";
const net = subnet({ size: 16 });
const inner = vm({ memory: 64 });
export default cell("shop", {
  net,
  web: vm({ memory: 64, data: { peers: [net], n: 1 }, placement: { pool: "fast" } }, { note: "mine", nested: { v: vm({ memory: 64 }) } }),
  kid: controller({ name: "kid", cell: cell("kid", { inner, net: subnet({ size: 8 }) }) }),
  out: rule({ address1: net, address2: ref("//other.cells.example.com/a/b") }),
}, { limits: { vms: 10 }, name: "store" });
`),
  );
  assert.ok(read.ok, JSON.stringify(read));
  assert.deepEqual(JSON.parse(JSON.stringify(read.value.document)), {
    shop: {
      "x.type": "Cell",
      "x.limits.vms": 10,
      "x.name": "store",
      net: { "x.type": "Subnet", "x.size": 16 },
      web: {
        "x.type": "VM",
        "x.memory": 64,
        "x.data": { peers: ["<ref:/shop/net>"], n: 1 },
        "x.placement.pool": "fast",
        note: "mine",
        nested: { v: { "x.type": "VM", "x.memory": 64 } },
      },
      kid: {
        "x.type": "CellController",
        "x.name": "kid",
        "x.cell": {
          kid: {
            "x.type": "Cell",
            inner: { "x.type": "VM", "x.memory": 64 },
            net: { "x.type": "Subnet", "x.size": 8 },
          },
        },
      },
      out: {
        "x.type": "NetworkRule",
        "x.address1": "<ref:/shop/net>",
        "x.address2": "<ref://other.cells.example.com/a/b>",
      },
    },
  });
});

const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const name = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
const machines = fc.uniqueArray(
  fc.record({
    name,
    memory: fc.integer({ min: 16, max: 4096 }),
    cpus: fc.option(fc.integer({ min: 1, max: 8 })),
    desiredState: fc.constantFrom("on", "off"),
    failures: fc.option(fc.integer({ min: 1, max: 9 })),
    group: fc.option(name),
    size: fc.integer({ min: 1, max: 900 }),
    data: fc.jsonValue({ maxDepth: 3 }),
  }),
  { maxLength: 6, selector: (each) => each.name },
);

test(`a cell written as builder code reads back equal (seed ${seed})`, async () => {
  await fc.assert(
    fc.asyncProperty(machines, async (all) => {
      const json: Record<string, Record<string, unknown>> = {};
      const [made, placed]: [string[], string[]] = [[], []];
      all.forEach((each, index) => {
        const { memory, cpus, desiredState, failures, size, data } = each;
        const liveness = failures === null ? {} : { liveness: { protocol: "icmp", failures } };
        // In a literal, `__proto__` would be no name.
        const dataText = `JSON.parse(${JSON.stringify(JSON.stringify(data))})`;
        const attributes = { memory, ...(cpus === null ? {} : { cpus }), desiredState, ...liveness };
        made.push(
          `const v${index} = vm({ ...${JSON.stringify(attributes)}, data: ${dataText} }), d${index} = volume({ size: ${size} });`,
        );
        placed.push(
          `g${index}${each.group ?? ""}: { ${each.name}: v${index}, disk1: d${index}, c1: connection({ vm: v${index}, volume: d${index} }) }`,
        );
        const group = `g${index}${each.group ?? ""}`;
        json[group] = {
          [each.name]: {
            "x.type": "VM",
            "x.memory": memory,
            ...(cpus === null ? {} : { "x.cpus": cpus }),
            "x.desiredState": desiredState,
            ...(failures === null ? {} : { "x.liveness.protocol": "icmp", "x.liveness.failures": failures }),
            "x.data": data,
          },
          disk1: { "x.type": "Volume", "x.size": size },
          c1: {
            "x.type": "VolumeConnection",
            "x.vm": `<ref:/shop/${group}/${each.name}>`,
            "x.volume": `<ref:/shop/${group}/disk1>`,
          },
        };
      });
      const text = `import { cell, connection, vm, volume } from "cells/model";\n${made.join("\n")}\nexport default cell("shop", { ${placed.join(", ")} });\n`;
      const written = JSON.stringify({ shop: { "x.type": "Cell", ...json } });
      const [typescript, plain] = [
        await readHere(only(text)),
        readSpecification({ main: "shop.json", files: { "shop.json": written } }),
      ];
      assert.equal(typescript.ok, plain.ok, text);
      if (!typescript.ok || !plain.ok) return;
      assert.deepEqual(meaning(typescript.value), meaning(plain.value));
      assert.equal(JSON.stringify(typescript.value.document), JSON.stringify(plain.value.document));
    }),
    { seed, numRuns: 25 },
  );
});
