import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementState } from "../../model/api.ts";
import { elementsOf } from "../../model/contract/follow/rows.ts";
import type { Json } from "../../model/json/json.ts";
import { cut, plain, table } from "../terminal/terminal.ts";
import { changesSince } from "./follow.ts";
import { renderElements, renderSummary, renderWhy } from "./render.ts";

const state = (further: Partial<ElementState>): Json =>
  ({ phase: "ready", reason: null, since: "2026-01-01T00:00:00Z", uid: "ab-1", ...further }) as Json;
const document: Json = {
  params: { memory: 128 },
  shop: {
    "x.type": "Cell",
    web: {
      vm: { "x.type": "VM", "x.data": { "x.type": "VM" }, $state: state({ host: "h1", power: "on", incarnation: 2 }) },
      net: { "x.type": "Subnet", $state: state({ phase: "waiting", reason: "no\u001b[2Jaddresses", uid: "ab-2" }) },
    },
  },
};

test("elements are found with their paths, data is not taken for one", () => {
  assert.deepEqual(
    elementsOf(document, "").map(({ path, type }) => `${path} ${type}`),
    ["shop/web/vm VM", "shop/web/net Subnet"],
  );
  const part = elementsOf({ "x.type": "VM", $state: state({}) }, "shop/web/vm");
  assert.deepEqual(
    part.map(({ path }) => path),
    ["shop/web/vm"],
  );
});

test("elements are shown with what matters, and texts of others cannot steer the terminal", () => {
  const elements = elementsOf(document, "");
  const lines = renderElements(elements, plain);
  assert.equal(lines[0], "✓ ready    shop/web/vm   VM      power on, on h1, incarnation 2");
  assert.match(lines[1] ?? "", /^· waiting {2}shop\/web\/net {2}Subnet {2}no\ufffd\[2Jaddresses$/);
  assert.equal(renderSummary(elements, plain), "2 elements: 1 ready, 1 waiting");
});

test("only what changed is told again", () => {
  const before = elementsOf(document, "");
  const [vm] = before;
  assert.ok(vm);
  const failed = { ...vm, state: { ...vm.state, phase: "failed" as const, reason: "no memory" } };
  const { changed, gone } = changesSince(before, [failed]);
  assert.deepEqual([changed, gone], [[failed], ["shop/web/net"]]);
  assert.deepEqual(changesSince(before, before), { changed: [], gone: [] });
});

test("why shows every check and the verdict", () => {
  const text = renderWhy(
    {
      from: "shop/web/vm",
      to: "shop/db/vm",
      protocol: "tcp",
      port: 5432,
      allowed: false,
      checks: [
        { where: "h1", check: "source address", passes: true, detail: "10.64.0.2" },
        { where: "h1", check: "rule", passes: false, detail: "no rule" },
      ],
      verdict: "No rule lets it out.",
    },
    plain,
  );
  assert.equal(
    text,
    [
      "shop/web/vm -> shop/db/vm:5432 (tcp): is blocked",
      "  ✓  h1  source address  10.64.0.2",
      "  ✗  h1  rule            no rule",
      "No rule lets it out.",
    ].join("\n"),
  );
});

test("colour takes no width", () => {
  const red = `${String.fromCharCode(27)}[31mred${String.fromCharCode(27)}[0m`;
  assert.deepEqual(
    table([
      [red, "a"],
      ["plain", "b"],
    ]),
    [`${red}    a`, "plain  b"],
  );
  assert.equal(
    cut(`${red}dish`, 5)
      .replaceAll(/[^a-z…]|\[\d+m/g, "")
      .replaceAll("m", ""),
    "redd…",
  );
  assert.equal(cut("abc", 3), "abc");
});
