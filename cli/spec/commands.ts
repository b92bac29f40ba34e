import type { Register } from "../context/register-type.ts";
import { registerSpecCheck } from "./check.ts";
import { registerSpecFmt } from "./fmt.ts";
import { registerSpecSchema } from "./schema.ts";
import { registerSpecServe } from "./serve.ts";
import { registerSpecTree } from "./tree.ts";
import { registerSpecTypes } from "./types.ts";

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
