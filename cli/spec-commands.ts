import type { Register } from "./register.ts";
import { registerSpecCheck } from "./spec-check.ts";
import { registerSpecFmt } from "./spec-fmt.ts";
import { registerSpecSchema } from "./spec-schema.ts";
import { registerSpecServe } from "./spec-serve.ts";
import { registerSpecTree } from "./spec-tree.ts";
import { registerSpecTypes } from "./spec-types.ts";

/** `cells spec …`: work on specifications as texts. None of these commands asks a gateway. */
export const specCommands: Register = (program, context, withHelp) => {
  const spec = program.command("spec").description("check, format and look at specifications, without a gateway");
  registerSpecCheck(spec, context, withHelp);
  registerSpecFmt(spec, context, withHelp);
  registerSpecSchema(spec, context, withHelp);
  registerSpecTree(spec, context, withHelp);
  registerSpecServe(spec, withHelp);
  registerSpecTypes(spec, context, withHelp);
};
