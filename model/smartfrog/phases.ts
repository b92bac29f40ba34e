import type { Bundle } from "../cell.ts";
import type { Diagnostics } from "../diagnostics.ts";
import type { Component } from "./component.ts";
import { constructFunctions } from "./function-phase.ts";
import { parseBundle } from "./parser.ts";
import { limitPassed, type Resolver, resolveTypes, standardTypes } from "./resolver.ts";
import { standardTemplates } from "./standard-library.ts";

/** As recorded outcomes call them; `raw` is include and syntax. `sfConfig` chooses what is linked. */
export type Phase = "raw" | "type" | "place" | "function" | "sfConfig" | "link";

export interface Phases {
  readonly root: Component;
  readonly resolver: Resolver;
}

/**
 * The phases of a SmartFrog bundle up to `function`, in their order; each begins only if the one before found no fault.
 * Answers the phase that refused, its faults in `diagnostics`. `standard` are types that are always in scope.
 */
export function runPhases(bundle: Bundle, standard: readonly string[], diagnostics: Diagnostics): Phases | Phase {
  const { attributes, standardIncludes } = parseBundle(bundle, diagnostics);
  if (!diagnostics.none) return "raw";
  const known = new Map([...standardTypes(standard), ...standardTemplates(standardIncludes)]);
  const origin = { file: bundle.main, line: 1, column: 1, length: 1 };
  const resolver = guarded(diagnostics, () => resolveTypes(attributes, known, origin, diagnostics));
  if (!resolver) return "type";
  if (guarded(diagnostics, () => resolver.place()) === null) return "place";
  if (resolver.hasFunctions || standardIncludes.size > 0) {
    // A copy made of what became a function before would miss what made it one.
    if (guarded(diagnostics, () => resolver.makeCopies()) === null) return "function";
    constructFunctions(resolver.root, diagnostics);
  }
  return diagnostics.none ? { root: resolver.root, resolver } : "function";
}

/** Null if a phase found faults or a limit was passed, which is told. */
export function guarded<T>(diagnostics: Diagnostics, phase: () => T): T | null {
  try {
    const outcome = phase();
    return diagnostics.none ? outcome : null;
  } catch (thrown) {
    if (thrown === limitPassed) return null;
    throw thrown;
  }
}
