import type { Register } from "../context/register-type.ts";

/** `cells web`: what the command line shows, in a browser. */
export const webCommand: Register = (program, context, withHelp) => {
  const page = program
    .command("web")
    .description("the cloud's page on this machine, signed in as you, until Ctrl-C")
    .option("--port <number>", "where; 0: any port that is free", "0")
    .action(async (options) => (await import("../sessions/web.ts")).web(context(), options));
  withHelp(
    page,
    ["cells web", "cells web --port 8080"],
    "The address that it prints signs in once, within a minute. The gateway is checked by the installation's authority, which browsers do not know.",
  );
  withHelp(
    page
      .command("pictures")
      .description("pictures of the page over a simulated cloud, for documents")
      .argument("<directory>", "where they come to stand")
      .action(async (directory) => (await import("../commands/demo/pictures.ts")).pictures(context(), directory)),
    ["cells web pictures docs/pictures"],
    "Always the same cloud, in the browser that `cells setup` installs.",
  );
};
