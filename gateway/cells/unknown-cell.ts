import { isUtf8 } from "node:buffer";
import { childName } from "../../core/documents/cells.ts";
import { bundleMediaType, type Changed, invalidSpecification, isYamlMediaType, type Refusal } from "../../model/api.ts";
import type { Bundle, Cell, Openness } from "../../model/cell/cell.ts";
import { type Supply, uncheckedIn, unknownSupply } from "../../model/check/check-supply.ts";
import type { Diagnostic } from "../../model/diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { foreseenOf } from "../../model/plan/foreseen.ts";
import { openedBy } from "../../model/plan/opened.ts";
import { planChange } from "../../model/plan/plan.ts";
import { fail, type Result } from "../../model/result.ts";
import { checkDocument, readSpecification } from "../../model/specification/specification.ts";
import { evaluate } from "../../runtime/specification/evaluate.ts";

/**
 * The first model of a cell that has no controller yet is read here, so that neither a mistake nor a dry run leaves a
 * controller behind. Its controller reads it again: what the gateway accepts decides nothing. `supply`: what the
 * installation could ever give, as far as it is known.
 */
export async function readFirstModel(
  cell: string,
  mediaType: string | undefined,
  body: Buffer,
  supply: Supply = unknownSupply,
): Promise<Result<Cell, Refusal["error"]>> {
  const read = await readBody(mediaType, body, supply);
  if (!read.ok) return read;
  const name: string = read.value.name;
  if (name === cell) return read;
  const message = `the specification is of the cell "${name}", and the address is that of "${cell}"; both must be the same`;
  return fail({ code: "invalid-specification", message });
}

/**
 * What the controller would answer to a dry run of a first model.
 * @param bound what the cell may have open, as the root cell says it; null: that is not known
 */
export function firstPlan(cell: Cell, supply: Supply, bound: Openness | null = {}): Changed {
  const unchecked = uncheckedIn(supply);
  const plan = planChange(null, cell);
  const foreseen = foreseenOf(cell, plan, supply.storage);
  const opened = bound === null ? [] : openedBy(null, cell, bound, (label) => childName(cell.name, label));
  return {
    plan,
    version: 0,
    dryRun: true,
    ...(unchecked.length > 0 ? { unchecked } : {}),
    ...(foreseen.length > 0 ? { foreseen } : {}),
    ...(opened.length > 0 ? { opened } : {}),
  };
}

async function readBody(
  mediaType: string | undefined,
  body: Buffer,
  supply: Supply,
): Promise<Result<Cell, Refusal["error"]>> {
  const bad = (message: string) => fail({ code: "bad-request", message });
  // Replacing what is no UTF-8 would silently turn one name into another.
  if (!isUtf8(body)) return bad("the body is not text in UTF-8: send JSON (RFC 8259, section 8.1) or YAML in UTF-8");
  if (isYamlMediaType(mediaType))
    return readTexts({ main: "model.yaml", files: { "model.yaml": body.toString("utf8") } }, supply);
  let json: Json;
  try {
    json = JSON.parse(body.toString("utf8"));
  } catch (error) {
    return bad(`the body is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(json)) return bad("the body is a JSON object: a bundle or a specification");
  if (mediaType?.split(";")[0]?.trim() !== bundleMediaType) return checked(checkDocument(json, supply));
  const { main, files } = json;
  if (typeof main !== "string" || !isObject(files) || !Object.values(files).every((file) => typeof file === "string")) {
    return bad('a bundle is {"main": "<file>", "files": {"<file>": "<text>"}}');
  }
  return readTexts({ main, files: files as Record<string, string> }, supply);
}

async function readTexts(bundle: Bundle, supply: Supply): Promise<Result<Cell, Refusal["error"]>> {
  const evaluated = await evaluate(bundle);
  return checked(evaluated.ok ? readSpecification(evaluated.value, supply) : evaluated);
}

function checked(result: Result<Cell, readonly Diagnostic[]>): Result<Cell, Refusal["error"]> {
  return result.ok ? result : fail(invalidSpecification(result.error));
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
