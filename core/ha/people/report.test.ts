import assert from "node:assert/strict";
import { test } from "node:test";
import { haReport } from "../../../model/contract/operator/ha.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { fencerNames, lossTypes, orderlyTypes, steps } from "../item.ts";
import { alertKinds } from "./alert.ts";

test("the contract names every alert, type, step and fencer there is", () => {
  const field = (list: string, name: string): string => {
    const { properties } = haReport as unknown as { readonly properties: { readonly [name: string]: JsonObject } };
    const items = properties[list]?.items as { readonly properties: { readonly [name: string]: JsonObject } };
    const schema = items.properties[name] ?? {};
    return String(schema.description);
  };
  for (const [list, name, words] of [
    ["alerts", "kind", alertKinds],
    ["items", "type", [...lossTypes, ...orderlyTypes]],
    ["items", "step", steps],
    ["items", "fencedBy", [...fencerNames, "stopped"]],
  ] as const)
    assert.equal(field(list, name), `${words.join(", ")}; later versions may say others`, `${list}.${name}`);
});
