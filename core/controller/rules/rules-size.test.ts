import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseNetwork } from "../../../model/addresses/addresses.ts";
import { type Cidr, cellName, hostName, ipv4, mac, peerName, uid } from "../../../model/cell/identifiers.ts";
import { NetworkIndex } from "../../../model/cell/network/network-index.ts";
import { acceptedBefore } from "../../../model/check/check-supply.ts";
import { sizeOfRules } from "../../../model/check/network/check-rules.ts";
import { effectiveOpenness } from "../../../model/check/openness.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { limits } from "../../../model/limits.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import { shareOf } from "../../distribution/node/share/share.ts";
import { mostInSlice } from "../../distribution/views/slices.ts";
import { contains } from "../network/ipv4-range.ts";
import { compilePolicy } from "../network/policy.ts";

/*
 * What the checks say that rules come to is never less than what they are compiled to, or a host would be told nothing; and
 * not much more, or a cell would be refused that fits.
 */
const address = fc.nat(255).map((last) => `10.9.0.${last}`);
const block = fc.tuple(address, fc.integer({ min: 22, max: 32 })).map(([at, bits]) => {
  const network = parseNetwork(`${at}/${bits}`);
  return `10.9.${((network?.first ?? 0) >>> 8) & 255}.${(network?.first ?? 0) & 255}/${bits}`;
});
const end = fc.oneof(
  block,
  fc.constantFrom("internet", "<ref:/shop/a>", "<ref:/shop/b>", "<ref:/shop/vm>", "<ref:/shop/aCard>"),
);
const rule = fc.record({
  "x.address1": fc.constantFrom("<ref:/shop/a>", "<ref:/shop/vm>", "<ref:/shop/bCard>").map((text): Json => text),
  "x.address2": end,
  "x.protocol": fc.constantFrom("tcp", "any"),
  "x.direction": fc.constantFrom("both", "1to2"),
});
const inside = fc.record({ rules: fc.array(rule, { maxLength: 12 }), wide: fc.boolean() });

test("what rules are said to come to is what they are compiled to, or a little more", () => {
  fc.assert(
    fc.property(inside, ({ rules, wide }) => {
      const card = (subnet: string, at: string): JsonObject => ({
        "x.type": "VirtualInterface",
        "x.vm": "<ref:/shop/vm>",
        "x.subnet": `<ref:/shop/${subnet}>`,
        "x.address": at,
      });
      const named = rules.map((each, at) => [`r${at}`, { "x.type": "NetworkRule", ...each }]);
      const document: JsonObject = {
        shop: {
          "x.type": "Cell",
          ...(wide ? { "x.policy.subnetConnectivity": true } : {}),
          a: { "x.type": "Subnet", "x.cidr": "10.9.0.0/25" },
          b: { "x.type": "Subnet", "x.cidr": "10.9.0.128/25" },
          vm: { "x.type": "VM", "x.memory": 64 },
          aCard: card("a", "10.9.0.9"),
          bCard: card("b", "10.9.0.200"),
          ...Object.fromEntries(named),
        },
      };
      const cell = checkDocument(document, acceptedBefore);
      if (!cell.ok) return;
      const elements = [...cell.value.elements.values()];
      const identities = new Map(elements.map(({ path }, at) => [path, 100 + at]));
      const identity = (path: string): number => identities.get(path as never) ?? 0;
      let last = 1000;
      const policy = compilePolicy({
        cell: cellName("shop"),
        cellNumber: 1,
        version: 1,
        openness: effectiveOpenness(cell.value.policy, {}),
        controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:03:01"), identity: 1 },
        interfaces: elements.flatMap((element) => {
          if (element.type !== "VirtualInterface" || element.address === undefined) return [];
          const who = { identity: identity(element.path), vmIdentity: identity(element.vm) };
          return { path: element.path, address: element.address, ...who, subnetIdentity: identity(element.subnet) };
        }),
        subnets: elements.flatMap((element) =>
          element.type === "Subnet" ? { cidr: element.cidr ?? null, identity: identity(element.path) } : [],
        ),
        rules: elements.flatMap((element) =>
          element.type === "NetworkRule" ? { uid: uid(element.path.replaceAll("/", "-")), element } : [],
        ),
        hosts: [hostName("h1")],
        identityOf: (path) => identity(path),
        networkIdentity: () => (last += 1),
        ruleId: () => (last += 1),
      });
      const size = sizeOfRules(cell.value);
      assert.ok(size.rules >= policy.rules.length, `${size.rules} < ${policy.rules.length}`);
      const { length } = JSON.stringify([policy.rules, policy.networks]);
      assert.ok(size.characters + 100 >= length, `${size.characters} < ${length}`);
      assert.ok(size.rules <= 2 * policy.rules.length + 4, `${size.rules} > ${policy.rules.length}`);
    }),
    { numRuns: 300 },
  );
});

test("what the checks accept is within a controller's share at a host, in slices for both ends of each rule", () => {
  const hosts = 1000 * 2 * 64;
  assert.ok(2 * limits.compiledCharacters + hosts <= shareOf(peerName("controller.shop")).characters);
  const smallest = Math.floor(mostInSlice / 2);
  assert.ok((2 * limits.compiledCharacters) / smallest <= shareOf(peerName("controller.shop")).documents);
});

test("blocks inside another one are those that it contains", () => {
  const blocks = fc.array(block.map((text) => parseNetwork(text as Cidr) ?? assert.fail()));
  fc.assert(
    fc.property(blocks, block, (all, text) => {
      const asked = parseNetwork(text) ?? assert.fail();
      const index = new NetworkIndex(all.map((range) => ({ range })));
      const expected = all.filter((range) => contains(asked, range)).length;
      assert.equal(index.inside(asked).length, expected);
      assert.equal(index.countInside(asked), expected);
    }),
  );
});
