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

const certificates = () => import("../commands/credentials/certificate.ts");

/** `cells gateway`: by which certificate browsers know the page. */
export const gatewayCommands: Register = (program, context, withHelp) => {
  const gateway = program.command("gateway").description("the certificate by which browsers know the cloud's page");
  withHelp(
    gateway
      .command("request")
      .description("ask for a certificate of your own for these names; the key stays at the gateway")
      .argument("<names...>", "of the gateway, in full, as your users type them")
      .option("--out <file>", "write the request there, in place of printing it")
      .action(async (names, options) => (await certificates()).requestCertificate(context(), names, options)),
    ["cells gateway request cells.example.com > cells.csr", "cells gateway request cells.example.com --out cells.csr"],
    "Have it signed by an authority that your browsers know. Asked again before it is answered, it is over the same key.",
  );
  withHelp(
    gateway
      .command("certificate")
      .description("put the answer in force, at once; without a file: say what is in force")
      .argument("[file]", "the certificate, and behind it those that vouch for it, PEM")
      .option("--remove", "take it out of force and forget its key")
      .action(async (file, options) => (await certificates()).gatewayCertificate(context(), file, options)),
    ["cells gateway certificate cells.pem", "cells gateway certificate"],
    "Nothing is changed by one that browsers would refuse: of another key or name, out of date, or with a gap in its chain. The command line goes on by the installation's authority.",
  );
};
