import type { Register } from "../context/register-type.ts";
import { allowDestroyOption, timeoutOption } from "./options.ts";

const versioned = () => import("../commands/model/versions.ts");

/** What a model was sent as before, and the way back. */
export const registerVersions: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("versions")
      .description("show how a cell's model came to be: who sent each version, as what, and what its plan did")
      .argument("<cell>")
      .action(async (cell) => (await versioned()).versions(context(), cell)),
    ["cells versions shop", "cells versions shop --output json"],
    "The texts of 20 versions are kept, with their comments; of what was changed in other ways, what it touched.",
  );
  withHelp(
    program
      .command("diff")
      .description(
        "compare two texts that a cell was sent as: the newest with the one before, or those of these versions",
      )
      .argument("<cell>")
      .argument("[from]", "version, as `cells versions` shows it (default: the one before)")
      .argument("[to]", "version (default: the newest)")
      .action(async (cell, from, to) => (await versioned()).diff(context(), cell, from, to)),
    ["cells diff shop", "cells diff shop 4", "cells diff shop 4 7"],
  );
  withHelp(
    program
      .command("rollback")
      .description("apply the text of an earlier version again, with its plan shown before")
      .argument("<cell>")
      .argument("[version]", "as `cells versions` shows it (default: the newest text from before the last change)")
      .option("--dry-run", "show what would happen, and change nothing")
      .option("-y, --yes", "do not ask")
      .addOption(allowDestroyOption())
      .option("--no-wait", "return when the change is accepted")
      .addOption(timeoutOption())
      .action(async (cell, version, { dryRun, yes, allowDestroy, wait, timeout }) =>
        (await versioned()).rollback(context(), cell, version, {
          dryRun: dryRun === true,
          yes: yes === true,
          allowDestroy,
          wait,
          timeoutMs: timeout * 1000,
        }),
      ),
    ["cells rollback shop --dry-run", "cells rollback shop 4"],
    "Data of volumes does not come back: the plan says what is lost, as with `cells apply`.",
  );
};
