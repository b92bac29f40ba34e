import { Argument } from "commander";
import type { Register } from "../context/register-type.ts";

const completion = () => import("../commands/completion.ts");

/** `cells completion SHELL`, and what its script asks at each TAB. */
export const completionCommands: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("completion")
      .description("print a script that completes commands, options and names of the cloud in your shell")
      .addArgument(new Argument("<shell>", "which shell").choices(["bash", "zsh", "fish"]))
      .action(async (shell) => (await completion()).printScript(context(), shell)),
    [
      "cells completion bash > ~/.local/share/bash-completion/completions/cells",
      "cells completion zsh > ~/.zfunc/_cells",
      "cells completion fish > ~/.config/fish/completions/cells.fish",
    ],
  );
  withHelp(
    program
      .command("complete", { hidden: true })
      .description("say what may stand where the last word is typed, as the script asks at each TAB")
      .argument("[words...]", "those behind `cells`")
      .action(async (words) => (await completion()).complete(context(), program, words, () => context().client())),
    ["cells complete -- host dr"],
  );
};
