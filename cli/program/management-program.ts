import type { Register } from "../context/register-type.ts";

const commands = () => import("../commands/management.ts");
const passphrase = "--passphrase-file <file>";
const passphraseHelp = "read the passphrase from there (default: it is asked for)";
const keyOption = "--key <file>";
const keyHelp = "your key, for a backup that the schedule made";

/** `cells management`: a backup of what manages the cloud, and its way back. */
export const managementCommands: Register = (program, context, withHelp) => {
  const management = program.command("management").description("back up what manages the cloud, and bring it back");
  withHelp(
    management
      .command("backup")
      .description("write a copy of every service's store to a file, sealed with a passphrase")
      .argument("<file>")
      .option(passphrase, passphraseHelp)
      .action(async (file, options) => (await commands()).backup(context(), file, options.passphraseFile)),
    ["cells management backup cells.backup", "cells management backup cells.backup --passphrase-file /root/passphrase"],
  );
  withHelp(
    management
      .command("verify")
      .description("open a backup and check all that is in it; nothing is asked of the cloud")
      .argument("<file>")
      .option(passphrase, passphraseHelp)
      .option(keyOption, keyHelp)
      .option("--authority <file>", "the installation's authority, a certificate that you have kept")
      .action(async (file, { passphraseFile, key, authority }) =>
        (await commands()).verify(context(), file, { passphraseFile, key, authority }),
      ),
    ["cells management verify cells.backup", "cells management verify cells.backup --key operator.key"],
  );
  withHelp(
    management
      .command("restore")
      .description("put the stores of a backup back on this machine, where nothing of them runs")
      .argument("<file>")
      .option(passphrase, passphraseHelp)
      .option(keyOption, keyHelp)
      .option("--authority <file>", "the installation's authority, a certificate that you have kept")
      .option("-d, --directory <dir>", "where the testbed keeps its data")
      .option("--only <names>", "these processes alone, with commas in between; also hosts and storage servers")
      .option("-y, --yes", "do not ask")
      .action(async (file, { yes, ...options }) =>
        (await commands()).restore(context(), file, { ...options, yes: yes === true }),
      ),
    ["sudo cells management restore cells.backup", "sudo cells management restore cells.backup --only placer"],
  );
  withHelp(
    management
      .command("return")
      .description("give a cell's controller that has lost its store, and runs, the one that a backup has of it")
      .argument("<file>", "the backup")
      .argument("<controller>", "as `cells status` names it: controller.root, controller.shop")
      .option(passphrase, passphraseHelp)
      .option(keyOption, keyHelp)
      .option("--authority <file>", "the installation's authority, a certificate that you have kept")
      .option("-y, --yes", "do not ask")
      .action(async (file, service, { yes, ...options }) =>
        (await commands()).returnStore(context(), file, service, { ...options, yes: yes === true }),
      ),
    ["cells management return cells.backup controller.root"],
  );
  scheduleCommands(management, context, withHelp);
};

/** Of the backups that are made by themselves. */
const scheduleCommands: Register = (management, context, withHelp) => {
  withHelp(
    management
      .command("key")
      .description("make the key to which the schedule's backups are sealed; its public half is printed")
      .argument("<file>", "where the private half goes, locked with a passphrase")
      .option(passphrase, passphraseHelp)
      .action(async (file, options) => (await commands()).makeKey(context(), file, options.passphraseFile)),
    ["cells management key operator.key"],
  );
  withHelp(
    management
      .command("list")
      .description("show the backups that the schedule has left on storage servers")
      .action(async () => (await commands()).list(context())),
    ["cells management list"],
  );
  withHelp(
    management
      .command("fetch")
      .description("bring one of them here, sealed as it is")
      .argument("<name>", "as `cells management list` shows it")
      .argument("<file>", "where it goes")
      .action(async (name, file) => (await commands()).fetchBackup(context(), name, file)),
    ["cells management fetch 20261122T172010Z cells.backup"],
  );
};
