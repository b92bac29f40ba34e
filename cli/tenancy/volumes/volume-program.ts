import { Argument, type Command } from "commander";
import { volumeRights } from "../../../model/contract/tenancy/volumes/volumes.ts";
import type { Register } from "../../context/register-type.ts";
import { usage } from "../../terminal/failure.ts";

const volumes = () => import("./volumes.ts");
const collect = (word: string, before: readonly string[] = []): readonly string[] => [...before, word];
const countOf = (text: string): number => {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw usage(`\`${text}\` is no number from 1 on`);
  return Number(text);
};
const named = "its name or its UID";
const withSource = (command: Command): Command =>
  command
    .option("--size <mib>", "of an empty one; of any other at least what it comes from has", countOf)
    .option("--image <name>", "of an image of the installation")
    .option("--upload <file>", "of a file of this machine, raw or qcow2")
    .option("--url <url>", "of what everybody on the Internet gets there; with --sha256 and --format")
    .option("--sha256 <digest>", "what the bytes of --upload or --url must have")
    .option("--format <format>", "raw or qcow2 (default: what the file of --upload is)")
    .option(
      "--resume <id>",
      "go on with an upload of the same file that was not done, by the number that was said then",
    )
    .option("--from <path>", "harvest a volume of a cell: shop/db/disk")
    .option("--of <volume>", "a clone of another persistent volume, NAME or NAME@VERSION")
    .option("--read-only", "any number of VMs read it, and none writes it");
const withGrantee = (command: Command): Command =>
  command
    .argument("<volume>", named)
    .addArgument(new Argument("<right>", "what for").choices(volumeRights))
    .option("--cell <cell>", "a cell, by its name")
    .option("--account <path>", "an account")
    .option("--domain <path>", "a domain, with all below it")
    .option("--all", "everybody");

const shareCommands: Register = (volume, context, withHelp) => {
  withHelp(
    withGrantee(volume.command("share").description("share it with a cell, an account, a domain or all")).action(
      async (name, right, options) => (await volumes()).shareVolume(context(), name, right, options),
    ),
    ["cells volume share golden copy --domain acme", "cells volume share data write --cell shop"],
  );
  withHelp(
    withGrantee(volume.command("unshare").description("take that back, for the future")).action(
      async (name, right, options) => (await volumes()).unshareVolume(context(), name, right, options),
    ),
    ["cells volume unshare golden copy --domain acme"],
  );
};

/** `cells volume`: what outlives cells. */
export const volumeCommands: Register = (program, context, withHelp) => {
  const volume = program
    .command("volume")
    .description("persistent volumes, which are of an account and outlive cells (CaaS)");
  withHelp(
    volume
      .command("list")
      .description("show those that you may see; with words those that have them")
      .argument("[words...]", "how words in name, tags or text begin")
      .option("--tag <tag>", "with this tag; several times: with all of them", collect)
      .option("--account <path>", "of this account")
      .option("--least <mib>", "so large at least", countOf)
      .option("--most <mib>", "so large at most", countOf)
      .option("--since <time>", "made then or later, as 2026-11-26 or 2026-11-26T14:30:00Z")
      .option("--until <time>", "made before that")
      .action(async (words, options) => (await volumes()).listVolumes(context(), words, options)),
    [
      "cells volume list",
      "cells volume list golden debian --tag web",
      "cells volume list --least 1024 --until 2026-11-01",
    ],
  );
  withHelp(
    volume
      .command("show")
      .description("show one with its versions, and with whom it is shared")
      .argument("<volume>", named)
      .action(async (name) => (await volumes()).showVolume(context(), name)),
    ["cells volume show golden"],
  );
  withHelp(
    withSource(
      volume
        .command("create")
        .description("make one: empty, of an image, of a file or a URL, a clone, or harvested from a cell")
        .argument("<name>", "unique in its account"),
    )
      .option("--tag <tag>", "may be given several times", collect)
      .option("--text <text>", "what it is for")
      .option("--account <path>", "whose it is (default: your account's)")
      .action(async (name, options) => (await volumes()).createVolume(context(), name, options)),
    [
      "cells volume create data --size 1024",
      "cells volume create golden --from shop/db/disk --tag web",
      "cells volume create debian --upload debian-13.qcow2",
      "cells volume create debian --upload debian-13.qcow2 --resume 1f9a3c5e7b2d4f60819a2b3c4d5e6f70",
    ],
  );
  withHelp(
    volume
      .command("change")
      .description("give it another name, tags, text, a larger size, or another version to stand for")
      .argument("<volume>", named)
      .option("--name <name>", "from now on")
      .option("--tag <tag>", "in place of those before; may be given several times", collect)
      .option("--text <text>", "in place of the one before")
      .option("--size <mib>", "it grows to this", countOf)
      .option("--stands-for <number>", "the version that its name stands for", countOf)
      .action(async (name, options) => (await volumes()).changeVolume(context(), name, options)),
    ["cells volume change golden --size 2048", "cells volume change golden --stands-for 1"],
  );
  withHelp(
    withSource(
      volume.command("version").description("give it a new version; those before stay").argument("<volume>", named),
    ).action(async (name, options) => (await volumes()).addVersion(context(), name, options)),
    ["cells volume version golden --from shop/db/disk"],
  );
  shareCommands(volume, context, withHelp);
  withHelp(
    volume
      .command("delete")
      .description("delete it with all its versions; copies of it stay")
      .argument("<volume>", named)
      .option("--allow-destroy <volume>", "its name or UID again: its data is lost")
      .option("--dry-run", "say who uses it, and change nothing")
      .action(async (name, options) => (await volumes()).deleteVolume(context(), name, options)),
    ["cells volume delete golden --dry-run", "cells volume delete golden --allow-destroy golden"],
  );
};
