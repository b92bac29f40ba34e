import type { Bundle } from "../../model/cell/cell.ts";
import type { Evaluated } from "../../model/cell/evaluated.ts";
import type { Diagnostic } from "../../model/diagnostics/diagnostic.ts";
import { ok, type Result } from "../../model/result.ts";

/**
 * Languages that the model does not read itself, because that takes a library or running a program. Both ends use the
 * same: the command line before it sends anything, the gateway and a controller for what others send.
 */
export type FrontEnd = (bundle: Bundle, options: EvaluateOptions) => Promise<Result<Evaluated, readonly Diagnostic[]>>;
export interface EvaluateOptions {
  /** Ends the evaluation when nobody waits for it any more. */
  readonly signal?: AbortSignal;
  /** What the specification prints, where the language can; else it is dropped. */
  readonly said?: (text: string) => void;
}

/** Loaded when first needed: most bundles are in languages that the model reads. */
const yaml: FrontEnd = async ({ main, files }) => (await import("./yaml.ts")).readYaml(main, files[main] ?? "");
/** Loaded when first needed: it starts processes. */
const typescript: FrontEnd = async (bundle, { signal, said }) =>
  (await import("./typescript/front-end.ts")).evaluateTypeScriptBundle(bundle, {
    ...(signal === undefined ? {} : { signal }),
    ...(said === undefined ? {} : { said }),
  });

const frontEnds: Readonly<Record<string, FrontEnd>> = {
  ".ts": typescript,
  ".yaml": yaml,
  ".yml": yaml,
};

/**
 * The bundle with what its main text evaluates to, for the languages that need that; any other as it is, without a wait
 * for anything. An `evaluated` that came with it is not believed. Faults carry positions in the bundle's texts.
 */
export async function evaluate(
  { main, files }: Bundle,
  options: EvaluateOptions = {},
): Promise<Result<Bundle, readonly Diagnostic[]>> {
  const extension = /\.[^./]*$/.exec(main)?.[0] ?? "";
  const frontEnd = Object.hasOwn(frontEnds, extension) ? frontEnds[extension] : undefined;
  if (!frontEnd || !Object.hasOwn(files, main)) return ok({ main, files });
  const evaluated = await frontEnd({ main, files }, options);
  return evaluated.ok ? ok({ main, files, evaluated: evaluated.value }) : evaluated;
}
