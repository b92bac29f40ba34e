import type { Bundle } from "../../cell/cell.ts";
import type { Diagnostics } from "../../diagnostics/diagnostics.ts";
import { type InSlices, inOneGo } from "../../slices.ts";
import type { Component } from "../component.ts";
import { standardTemplates } from "../standard-library.ts";
import { parseBundle } from "../text/parser.ts";
import type { AttributeSyntax } from "../text/syntax.ts";
import { constructFunctions } from "./function-phase.ts";
import { limitPassed, type Resolver, resolveTypes, standardTypes } from "./resolver.ts";

/** As recorded outcomes call them; `raw` is include and syntax. `sfConfig` chooses what is linked. */
export type Phase = "raw" | "type" | "place" | "function" | "sfConfig" | "link";

export interface Phases {
  readonly root: Component;
  readonly resolver: Resolver;
}

/**
 * The phases of a SmartFrog bundle up to `function`, in their order; each begins only if the one before found no fault.
 * Answers the phase that refused, its faults in `diagnostics`. `standard` are types that are always in scope.
 * `goOn`: the next phase begins also with what a fault has left, so that one text's faults of all phases are told in one go.
 */
export const runPhases = (
  bundle: Bundle,
  standard: readonly string[],
  diagnostics: Diagnostics,
  goOn = false,
): Phases | Phase => inOneGo(runPhasesInSlices(bundle, standard, diagnostics, goOn));
/** Each phase is one slice. */
export function* runPhasesInSlices(
  bundle: Bundle,
  standard: readonly string[],
  diagnostics: Diagnostics,
  goOn: boolean,
): InSlices<Phases | Phase> {
  const cost = costOf(bundle);
  const { attributes: parsed, prototypes, standardIncludes } = parseBundle(bundle, diagnostics);
  if (!diagnostics.none && !(goOn && isStructureKnown(diagnostics))) return "raw";
  const attributes = withoutPhaseList(parsed, diagnostics);
  if (!attributes) return "type";
  yield cost;
  const types = standardTypes(standard);
  const known = new Map([...types, ...standardTemplates(standardIncludes, types)]);
  const origin = { file: bundle.main, line: 1, column: 1, length: 1 };
  const run = <T>(phase: () => T): T | null => (goOn ? bounded(phase) : guarded(diagnostics, phase));
  const document = { attributes, prototypes, faulty: !diagnostics.none };
  const resolver = run(() => resolveTypes(document, known, origin, diagnostics));
  if (!resolver) return "type";
  yield cost;
  if (run(() => resolver.place()) === null) return "place";
  yield cost;
  if (resolver.hasFunctions || standardIncludes.size > 0) {
    // A copy made of what became a function before would miss what made it one.
    if (run(() => resolver.makeCopies()) === null) return "function";
    constructFunctions(resolver.root, diagnostics);
  }
  return diagnostics.none || goOn ? { root: resolver.root, resolver } : "function";
}

/** Of a phase, in elements: most of them take a line of some forty characters or more. */
export const costOf = ({ files }: Bundle): number =>
  Object.values(files).reduce((sum, text) => sum + Math.ceil(text.length / 40), 0);

/** Faults after which it is a guess what stands inside what, or that leave no room for more. */
const isStructureKnown = (diagnostics: Diagnostics): boolean =>
  !diagnostics.full &&
  !diagnostics.list.some(({ code }) =>
    /^(?:limit\/|syntax\/(?:unbalanced|unclosed-|main-missing|include-cycle))/.test(code),
  );

/** The phases that a document may ask for. */
const phaseNames: readonly string[] = ["type", "place", "function", "sfConfig", "link"];
const always: readonly string[] = ["type", "place", "link"];

/**
 * A document may list the phases that it is to go through in an attribute `phaseList`, which is then no part of it. They
 * are always the same here; what asks for others, such as phases that are Java classes, is refused with null.
 */
function withoutPhaseList(
  attributes: readonly AttributeSyntax[],
  diagnostics: Diagnostics,
): readonly AttributeSyntax[] | null {
  const list = attributes.findLast(({ name }) => name?.length === 1 && name[0] === "phaseList");
  if (!list) return attributes;
  const { value } = list;
  const asked = (value.kind === "vector" ? value.items : []).map((item) =>
    item.kind === "scalar" && item.scalar.kind === "string" ? item.scalar.value : "",
  );
  const standard = phaseNames.filter((phase) => asked.includes(phase));
  if (always.every((phase) => asked.includes(phase)) && standard.join(" ") === asked.join(" "))
    return attributes.filter(({ name }) => name?.length !== 1 || name[0] !== "phaseList");
  const unknown = asked.find((phase) => !phaseNames.includes(phase));
  diagnostics.add({
    code: "type/phases",
    message: unknown
      ? `\`phaseList\` asks for the phase \`${unknown}\`, which could only be a Java class, and there is no Java here`
      : "`phaseList` asks for other phases than every document goes through",
    hint: `Leave it out, or write \`phaseList [|${phaseNames.map((phase) => `"${phase}"`).join(", ")}|];\`.`,
    position: value.position,
  });
  return null;
}

/** Null if a phase found faults or a limit was passed, which is told. */
export function guarded<T>(diagnostics: Diagnostics, phase: () => T): T | null {
  const outcome = bounded(phase);
  return diagnostics.none ? outcome : null;
}

/** Null if a limit was passed, which is told. */
export function bounded<T>(phase: () => T): T | null {
  try {
    return phase();
  } catch (thrown) {
    if (thrown === limitPassed) return null;
    throw thrown;
  }
}
