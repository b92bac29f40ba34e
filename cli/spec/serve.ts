import type { Command } from "commander";

export const registerSpecServe = (
  spec: Command,
  withHelp: (command: Command, examples: readonly string[]) => Command,
): void => {
  withHelp(
    spec
      .command("serve")
      .description("be the language server of an editor, over standard input and output (cli/editors/README.md)")
      // Editors add it to say what is the only way here.
      .option("--stdio", "as without it")
      // Its libraries are no other command's.
      .action(async () => (await import("../language-server/serve.ts")).serve(process.stdin, process.stdout)),
    ["cells spec serve"],
  );
};
