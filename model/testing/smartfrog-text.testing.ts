import { isObject, type Json, type JsonObject } from "../json/json.ts";

/** A document as SmartFrog. Vectors may hold no objects, and numbers no exponents. */
export function smartFrogText(document: JsonObject): string {
  return Object.entries(document)
    .map(([name, value]) => attribute(name, value))
    .join("\n");
}

const quoted = (text: string): string => JSON.stringify(text);
const attribute = (name: string, value: Json): string => {
  if (!isObject(value)) return `${quoted(name)} ${value === null ? "" : scalar(value)};`;
  const type = typeof value["x.type"] === "string" ? `${value["x.type"]} ` : "";
  const inside = Object.entries(value).filter(([each]) => type === "" || each !== "x.type");
  return `${quoted(name)} extends ${type}{\n${inside.map(([each, json]) => attribute(each, json)).join("\n")}\n}`;
};
function scalar(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((item: Json) => scalar(item)).join(", ")}]`;
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) && Math.abs(value) >= 2 ** 31 ? `${value}L` : String(value);
}
