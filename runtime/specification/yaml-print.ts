import { Document, isScalar, Scalar, visit } from "yaml";
import type { Json } from "../../model/json/json.ts";
import { controlCharacter, nameWithoutSpace } from "./yaml-faults.ts";

/** What `readYaml` would take for something else than a text, though YAML does not. */
const isMistaken = (text: string): boolean =>
  text === "<<" || nameWithoutSpace(text) !== undefined || controlCharacter.test(text) || /[\r\ufeff]/.test(text);

/** JSON as YAML 1.2, which `readYaml` reads back as the same; ends in a line feed. */
export function printYaml(json: Json): string {
  const document = new Document(json, { version: "1.2", schema: "core", merge: false, aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === "string" && isMistaken(node.value)) node.type = Scalar.QUOTE_DOUBLE;
      // As a whole number it would be refused for not being exact; written as a fraction it says so itself.
      if (typeof node.value === "number" && Number.isInteger(node.value) && !Number.isSafeInteger(node.value))
        node.format = "EXP";
    },
    Pair: (_key, { key }) => {
      if (isScalar(key) && typeof key.value === "string" && isMistaken(key.value)) key.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return document.toString({ lineWidth: 0 });
}
