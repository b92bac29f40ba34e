import { hostName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { isGeneration, isIncarnation } from "../documents/life-numbers.ts";
import { isObject, toJson } from "../outbox.ts";
import type { Status, Update } from "./swim/types.ts";

/** A full view as JSON, for the reliable channel. A reader takes what it knows and passes over what it does not. */
export interface View {
  readonly updates: readonly Update[];
  /** The other half of an exchange. */
  readonly answer: boolean;
}
export const viewToJson = ({ updates, answer }: View): Json => toJson({ updates, answer });

const statuses: readonly string[] = ["alive", "suspect", "dead", "left"] satisfies readonly Status[];
const isName = (value: Json | undefined): value is string =>
  typeof value === "string" && /^[a-z0-9._-]{1,63}$/.test(value);

const updateOf = (value: Json): Update | null => {
  if (!isObject(value)) return null;
  const { status, host, generation, incarnation, from } = value;
  if (typeof status !== "string" || !statuses.includes(status) || !isName(host)) return null;
  if (!isGeneration(generation) || !isIncarnation(incarnation)) return null;
  if (status === "suspect" ? !isName(from) : from !== null) return null;
  const by = isName(from) ? hostName(from) : null;
  return { status: status as Status, host: hostName(host), generation, incarnation, from: by };
};

/** null: it is no view. */
export const viewFromJson = (value: Json): View | null => {
  if (!isObject(value) || !Array.isArray(value.updates) || typeof value.answer !== "boolean") return null;
  const updates = (value.updates as readonly Json[]).map(updateOf).filter((update) => update !== null);
  return { updates, answer: value.answer };
};
