import { type Rule, verbPattern, verbPatternRule } from "../../../model/contract/tenancy/rules.ts";
import { boolean, document, list, object, oneOf, pattern } from "../../../model/json/reader.ts";
import type { ActualLook, DesiredLook } from "../tenancy.ts";
import { uidText, word } from "./values.ts";

/** Readers of what controllers and the service `tenancy` say to each other. */

export const mostRules = 256;
const rule = object<Rule>({ verb: pattern(verbPattern, verbPatternRule), effect: oneOf("allow", "deny") });

export const desiredLook = document(object<DesiredLook>({ ticket: uidText }), {
  key: { field: "ticket", of: ({ ticket }) => ticket },
});
export const actualLook = document(
  object<ActualLook>({ open: boolean, user: word, account: word, rules: list(rule, mostRules) }),
);
