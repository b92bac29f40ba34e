import type { Bundle, Cell } from "../cell/cell.ts";
import { canonicalInSlices } from "../cell/document.ts";
import { readEvaluated } from "../cell/evaluated.ts";
import { standardPrototypes } from "../cell/schema.ts";
import { checkTreeInSlices } from "../check/check.ts";
import { type Supply, unknownSupply } from "../check/check-supply.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Positions } from "../diagnostics/positions.ts";
import { withUses } from "../diagnostics/used-where.ts";
import type { JsonObject } from "../json/json.ts";
import { limits } from "../limits.ts";
import { fail, ok, type Result } from "../result.ts";
import { type InSlices, inOneGo } from "../slices.ts";
import { resolveInSlices, smartFrogDocument } from "../smartfrog/document.ts";
import { costOf } from "../smartfrog/phases/phases.ts";
import { withInclusions } from "./included-where.ts";
import { parseJsonText } from "./json-text.ts";

/**
 * Reads the texts of a specification, in the language that the extension of `bundle.main` says, and checks the cell in
 * them. Refuses with every fault found, at least one and at most `limits.diagnostics`. `supply`: what the
 * installation could ever give, as far as it is known; what is beyond that is a fault.
 */
export const readSpecification = (
  bundle: Bundle,
  supply: Supply = unknownSupply,
): Result<Cell, readonly Diagnostic[]> => inOneGo(readSpecificationInSlices(bundle, supply));
export function* readSpecificationInSlices(
  bundle: Bundle,
  supply: Supply,
): InSlices<Result<Cell, readonly Diagnostic[]>> {
  const diagnostics = new Diagnostics();
  const tree = yield* readTree(bundle, diagnostics);
  const cell = tree && (yield* checkTreeInSlices(tree.document, tree.positions, diagnostics, supply));
  return cell ? ok(cell) : fail(withInclusions(bundle, withUses(tree, bundle.files, diagnostics.list)));
}

/**
 * Checks a canonical document as it is stored or submitted; diagnostics carry paths, no positions. `document` of a cell
 * that was read gives an equal cell again.
 */
export const checkDocument = (
  document: JsonObject,
  supply: Supply = unknownSupply,
): Result<Cell, readonly Diagnostic[]> => inOneGo(checkDocumentInSlices(document, supply));
export function* checkDocumentInSlices(
  document: JsonObject,
  supply: Supply,
): InSlices<Result<Cell, readonly Diagnostic[]>> {
  const diagnostics = new Diagnostics();
  const sound = yield* canonicalInSlices(document, diagnostics);
  const cell = sound && (yield* checkTreeInSlices(sound, new Map(), diagnostics, supply));
  return cell ? ok(cell) : fail(diagnostics.list);
}

type Tree = { readonly document: JsonObject; readonly positions: Positions };

function* readTree(bundle: Bundle, diagnostics: Diagnostics): InSlices<Tree | null> {
  const refuse = (code: string, message: string, hint: string): null => {
    diagnostics.add({ code, message, hint });
    return null;
  };
  const text = Object.hasOwn(bundle.files, bundle.main) ? bundle.files[bundle.main] : undefined;
  if (text === undefined)
    return refuse(
      "syntax/main-missing",
      `There is no file \`${bundle.main}\` in the bundle`,
      "Name one of its files as the main one.",
    );
  if (Object.values(bundle.files).reduce((sum, file) => sum + file.length, 0) > limits.textLength)
    return refuse(
      "limit/text",
      `The texts are larger than ${limits.textLength / 1024 / 1024} MiB`,
      "Split the cell into several.",
    );
  if (bundle.main.endsWith(".json")) return parseJsonText(bundle.main, text, diagnostics);
  if (bundle.main.endsWith(".sf")) {
    const phases = yield* resolveInSlices(bundle, standardPrototypes, diagnostics);
    yield costOf(bundle);
    return phases && smartFrogDocument(phases, diagnostics);
  }
  if (bundle.evaluated) return readEvaluated(bundle.evaluated, diagnostics);
  return refuse(
    "syntax/language",
    `The language of \`${bundle.main}\` is not known`,
    "Specifications are `.sf` (SmartFrog), `.json`, `.yaml` or `.ts` (TypeScript).",
  );
}
