import { isLabel } from "../../../model/cell/child-document.ts";
import { offeringModes, planners } from "../../../model/cell/tenants/pools/attributes.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";

export { offeringModes, planners };
/** What a planner and its mode mean to who is offered it. */
export const plannerSays: Readonly<Record<(typeof planners)[number], string>> = {
  FirstFitPlanner: "any host that fits",
  ImplicitDedicationPlanner: "hosts that are its account's by what runs there",
};
export const modeSays: Readonly<Record<(typeof offeringModes)[number], string>> = {
  Strict: "where nobody else's machines are, or nowhere",
  Preferred: "there as long as there is such a host",
};

/** As a form has it. */
export interface WantedOffering {
  readonly name: string;
  readonly says: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly tags: readonly string[];
  readonly planner: string;
  /** Of the planner of implicit dedication alone. */
  readonly mode: string;
  readonly ha: boolean;
}
/** The element of `root/offerings`; a sentence where it cannot be one. What the root controller checks itself is left to it. */
export function offeringElement({
  name,
  says,
  memoryMiB,
  cpus,
  tags,
  planner,
  mode,
  ha,
}: WantedOffering): Result<JsonObject, string> {
  if (!isLabel(name))
    return fail("an offering is called by small letters, digits and -, 63 at most, - neither first nor last");
  return ok({
    "x.type": "Offering",
    ...(says === "" ? {} : { "x.displayText": says }),
    "x.memory": memoryMiB,
    "x.cpus": cpus,
    ...(tags.length === 0 ? {} : { "x.tags": tags }),
    "x.planner": planner,
    ...(planner === "ImplicitDedicationPlanner" ? { "x.mode": mode } : {}),
    ...(ha ? { "x.ha": true } : {}),
  });
}

export interface OfferingLine {
  readonly name: string;
  readonly says: string;
}
/** What is offered, by the document of the root cell. */
export function offeringsIn(model: Json): readonly OfferingLine[] {
  const root = isObject(model) && isObject(model.root) ? model.root : {};
  return Object.entries(isObject(root.offerings) ? root.offerings : {}).flatMap(([name, each]) =>
    isObject(each) && each["x.type"] === "Offering" ? [{ name, says: inWords(each) }] : [],
  );
}
function inWords(offering: JsonObject): string {
  const { "x.planner": planner, "x.mode": mode = "Strict" } = offering;
  const cpus = Number(offering["x.cpus"] ?? 1);
  const tags = [offering["x.tags"] ?? []].flat();
  return [
    `${String(offering["x.memory"])} MiB, ${cpus} ${cpus === 1 ? "processor" : "processors"}`,
    ...(tags.length === 0 ? [] : [`at hosts with ${tags.join(", ")}`]),
    ...(planner === "ImplicitDedicationPlanner" ? [modeSays[mode === "Preferred" ? mode : "Strict"]] : []),
    ...(offering["x.ha"] === true ? ["started elsewhere when its host is lost"] : []),
    ...(typeof offering["x.displayText"] === "string" ? [offering["x.displayText"]] : []),
  ].join("; ");
}
