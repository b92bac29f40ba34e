import type { Register } from "../context/register-type.ts";

const commands = () => import("../commands/zone.ts");

/** `cells zone`: names for the outside. */
export const zoneCommands: Register = (program, context, withHelp) => {
  const zone = program.command("zone").description("names for the outside, which your own name servers answer for");
  withHelp(
    zone
      .command("show", { isDefault: true })
      .description("show which zones are handed to whom, under which number, and by which key")
      .action(async () => (await commands()).showZone(context())),
    ["cells zone"],
  );
  withHelp(
    zone
      .command("key")
      .description("give the secret of the key by which transfers are signed (TSIG, hmac-sha256)")
      .argument("<name>", "as `x.zone.key` of the root cell and your name servers have it")
      .option(
        "--secret-file <file>",
        "the secret, 32 to 64 bytes in base64, is read from there; else from standard input",
      )
      .option("--remove", "forget it")
      .action(async (name, options) => (await commands()).zoneKey(context(), name, options)),
    ["cells zone key transfer --secret-file transfer.secret", "cells zone key transfer --remove"],
  );
};
