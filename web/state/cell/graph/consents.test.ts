import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementState } from "../../../../model/api.ts";
import type { Cause } from "../../../../model/cause/cause.ts";
import type { Element } from "../../known.ts";
import { ghostsOf, missingSays } from "./consents.ts";
import { graphOf } from "./graph.ts";

const rule = (there: string) => ({
  "x.type": "NetworkRule",
  "x.address1": "<ref:/shop/web>",
  "x.address2": `<ref://${there}>`,
});
const graph = graphOf({
  shop: {
    web: { "x.type": "VM" },
    one: rule("bank.cells/bank/vault"),
    two: rule("bank.cells/bank/desk"),
    far: rule("kiln.mill.cells/kiln/oven"),
    copy: { "x.type": "VolumeCopy", "x.image": "<ref://bank.cells/bank/gold>" },
  },
});
const is = (path: string, phase: ElementState["phase"], ...causes: readonly Cause[]): Element => ({
  cell: "shop",
  path,
  type: "NetworkRule",
  state: { phase, reason: causes.length === 0 ? null : `why ${path}`, causes, since: "", uid: path },
});
const bank = { domain: "bank.cells", path: "bank/vault" } as const;
const card: Element = {
  ...is("shop/card", "ready"),
  state: { ...is("shop/card", "ready").state, name: "web.shop.cells" },
};
const ghosts = (...elements: readonly Element[]) =>
  ghostsOf(graph, [...elements, card], ["shop", "mill", "kiln.mill"]).map(({ id, cell, missing, consents }) => [
    id,
    cell,
    missing,
    consents.map((each) => [each.edge.path, each.missing]),
  ]);

test("of each other cell it is known whose consent is missing, for what, and what would bring it", () => {
  const notAgreed = (shown: boolean): Cause => ({ kind: "not-agreed", ...bank, element: "shop/web" as never, shown });
  assert.deepEqual(
    ghosts(
      is("shop/one", "waiting", notAgreed(false)),
      is("shop/two", "ready"),
      is("shop/far", "ready"),
      is("shop/copy", "waiting", {
        kind: "waits-for",
        element: "shop/x" as never,
        because: [{ kind: "foreign-hidden", ...bank }],
      }),
    ),
    [
      [
        "//bank.cells",
        null,
        "both",
        [
          ["shop/one", "both"],
          ["shop/two", "none"],
          ["shop/copy", "theirs"],
        ],
      ],
      ["//kiln.mill.cells", "kiln.mill", "none", [["shop/far", "none"]]],
    ],
    "a cell that one may see is told by its name",
  );
  const [first] = ghostsOf(graph, [is("shop/one", "waiting", notAgreed(true))], []);
  assert.equal(first?.missing, "theirs");
  assert.match(first?.consents[0]?.remedy ?? "", /let bank\.cells have a NetworkRule/);
  assert.equal(first?.consents[0]?.reason, "why shop/one");
});

test("what is not known is not said to be agreed, nor what waits for another thing", () => {
  const [first, second] = ghosts(is("shop/far", "working", { kind: "directory-unreachable", ...bank }));
  assert.equal(first?.[2], "unknown");
  assert.equal(second?.[2], "unknown");
});

test("another cell is one of the cloud's by its whole domain, and by none where that is not known", () => {
  const named = (other: string, name: string | null) => {
    const elements = [{ ...card, state: { ...card.state, name } }];
    return ghostsOf(graphOf({ shop: { one: rule(`${other}/x`) } }), elements, ["shop", "bank"])[0]?.cell;
  };
  assert.equal(named("bank.cells", "web.shop.cells"), "bank");
  assert.equal(named("Bank.Cells", "web.shop.cells"), "bank");
  assert.equal(named("bank.example.org", "web.shop.cells"), null);
  assert.equal(named("bank.cells", "web.shop.cells.internal"), null);
  assert.equal(named("bank.cells", null), null);
});

test("what is granted to another cell needs no word of that one, and is none of it", () => {
  const lend = { "x.type": "VolumeGrant", "x.volume": "<ref:/shop/disk>", "x.cell": "<ref://bank.cells/>" };
  const lending = graphOf({ shop: { disk: { "x.type": "Volume" }, lend: { ...lend, "x.grant": "copy" } } });
  const missing = (phase: ElementState["phase"]) => ghostsOf(lending, [is("shop/lend", phase)], [])[0]?.missing;
  assert.equal(missing("ready"), "granted");
  assert.equal(missing("working"), "unknown");
  assert.doesNotMatch(missingSays.granted, /agree/);
});
