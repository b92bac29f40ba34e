import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../../specification/specification.ts";
import { mostSourceRanges } from "./check-source-ports.ts";

const ends = 'x.address1 "<ref:/shop/a>"; x.address2 "<ref:/shop/b>"; x.direction "1to2";';
const rule = (name: string, port1: string, more = 'x.protocol "tcp"; x.port2 80;'): string =>
  `  ${name} extends NetworkRule { ${ends} ${more} x.port1 ${port1}; }`;
const ranges = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => rule(`r${at}`, `"${1000 + 10 * at}-${1005 + 10 * at}"`));
const said = (rules: readonly string[]): string => {
  const nets = "  a extends Subnet { x.size 8; }\n  b extends Subnet { x.size 8; }";
  const text = ["shop extends Cell {", nets, ...rules, "}"].join("\n");
  const result = readSpecification({ main: "shop.sf", files: { "shop.sf": text } });
  if (result.ok) return "";
  return result.error
    .map(({ code, message, hint = "", position }) => `${position?.line} ${code}: ${message} | ${hint}`)
    .join("\n");
};

test("more ranges of source ports than hosts hold are refused at the rule that is one too many, with the number", () => {
  assert.equal(said(ranges(mostSourceRanges)), "");
  const told = said(ranges(mostSourceRanges + 1));
  assert.match(told, /^12 cell\/rule: `shop\/r8` is one of 9 rules .* for tcp port 80, and a host holds 8 \| Join/);
  assert.equal(told.split("\n").length, 1);
});

test("ranges that one of them holds, of other ports, or beside a rule for every port are not counted", () => {
  const eight = ranges(mostSourceRanges);
  assert.equal(said([...eight, rule("within", '"1001-1002"')]), "");
  assert.equal(said([...eight, rule("same", '"1000-1005"')]), "");
  assert.equal(said([...eight, rule("other", '"2000"', 'x.protocol "tcp"; x.port2 81;')]), "");
  assert.equal(said([...eight, rule("other", '"2000"', 'x.protocol "udp"; x.port2 80;')]), "");
  assert.match(said([...eight, rule("wider", '"2000"', 'x.protocol "tcp"; x.port2 "79-81";')]), /one of 9 rules/);
  const all = `  all extends NetworkRule { ${ends} x.protocol "any"; }`;
  assert.equal(said([...ranges(20), all]), "");
  const anyPort = `  all extends NetworkRule { ${ends} x.protocol "tcp"; }`;
  assert.equal(said([...ranges(20), anyPort]), "");
});
