import type { Register } from "../context/register-type.ts";
import { addDelegation, deleteDelegation, listDelegations } from "../tenancy/delegations.ts";
import { addProvider, deleteProvider, listProviders } from "../tenancy/providers.ts";

/* Who else gets in: by a provider's word, and by what an account gives others. */

/** Of an option that may be given several times. */
export const collect = (value: string, all: readonly string[] = []): readonly string[] => [...all, value];

export const registerProviders: Register = (program, context, withHelp) => {
  const provider = program
    .command("provider")
    .description("providers of OpenID Connect, and whom their claims make a user here");
  withHelp(
    provider
      .command("list", { isDefault: true })
      .description("show them, with what they map")
      .action(() => listProviders(context())),
    ["cells provider"],
  );
  withHelp(
    provider
      .command("add")
      .description("let people log in by one")
      .argument("<file>", "its document, JSON: docs/tenants.md")
      .option("--secret-file <file>", "the secret of this installation as its client")
      .action((file, options) => addProvider(context(), file, options)),
    ["cells provider add acme.json --secret-file acme.secret"],
  );
  withHelp(
    provider
      .command("delete")
      .description("let nobody log in by it; who did is out within a second")
      .argument("<provider>", "its name")
      .action((name) => deleteProvider(context(), name)),
    ["cells provider delete acme"],
  );
};

export const registerDelegations: Register = (program, context, withHelp) => {
  const delegation = program.command("delegation").description("roles on cells that accounts give others");
  withHelp(
    delegation
      .command("list", { isDefault: true })
      .description("show what your accounts give, and what they have")
      .action(() => listDelegations(context())),
    ["cells delegation"],
  );
  withHelp(
    delegation
      .command("add")
      .description("give another account, or one user, a role that is no more than your own")
      .argument("<account>", "whose cells they are")
      .requiredOption("--to <whom>", "an account or USER@DOMAIN; whom you may not see by the account's number or a UID")
      .requiredOption("--role <role>", "which role")
      .option("--cell <cells>", "on these cells alone, with commas in between; can be repeated", collect)
      .action((account, options) => addDelegation(context(), account, options)),
    [
      "cells delegation add acme/dev --to acme/ops --role reader",
      "cells delegation add acme/dev --to 483920175566 --role user --cell shop",
    ],
  );
  withHelp(
    delegation
      .command("delete")
      .description("take it back, or give it up: it counts no more within a second")
      .argument("<uid>", "as `cells delegation list` shows it")
      .action((uid) => deleteDelegation(context(), uid)),
    ["cells delegation delete 0b7f8c1e-3f0b-4f0a-9b5d-2d9d3c1f6a77"],
  );
};
