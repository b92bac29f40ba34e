import { type Command, Option } from "commander";
import { registerExplain } from "../commands/explain.ts";
import { clientFromConfiguration } from "../connection/client.ts";
import { type Context, createContext } from "../context/context.ts";
import { poolCommands } from "../tenancy/pool-program.ts";
import { volumeCommands } from "../tenancy/volumes/volume-program.ts";
import { detailedExitCode, usage } from "../terminal/failure.ts";
import { registerApi } from "./api-program.ts";
import { assembled, withHelp } from "./assembled.ts";
import { completionCommands } from "./completion-program.ts";
import { machineCommands } from "./machine-program.ts";
import { managementCommands } from "./management-program.ts";
import { manualCommand } from "./manual-program.ts";
import { networkCommands } from "./network-program.ts";
import { observeCommands } from "./observe-program.ts";
import { allowDestroyOption, several, timeoutOption } from "./options.ts";
import { scriptCommands } from "./script-program.ts";
import { sessionCommands } from "./session-program.ts";
import { simulateCommand } from "./simulate-program.ts";
import { specCommands } from "./spec-program.ts";
import { registerTenancy } from "./tenancy-program.ts";
import { registerVersions } from "./version-program.ts";
import { gatewayCommands, webCommand } from "./web-program.ts";
import { zoneCommands } from "./zone-program.ts";

/* What a command does is loaded when it is asked for: most of what all of them need together no single one does. */
const bins = () => import("../commands/bin.ts");
const credentials = () => import("../commands/credentials/credential.ts");
const images = () => import("../commands/images/image.ts");
const changes = () => import("../commands/model/change.ts");
const patches = () => import("../commands/model/patch.ts");
const documents = () => import("../commands/model/get.ts");
const powers = () => import("../commands/model/power.ts");
const observing = () => import("../commands/observe.ts");
const orphaned = () => import("../commands/orphans.ts");
const testbed = () => import("../commands/up.ts");
const explanations = () => import("../commands/why.ts");

/*
 * A command's words, options and examples are here, or in a `*-program.ts` of its area; what it does is in `../commands/`. A new
 * one is registered in the list at the end.
 */

const countOf = (text: string): number => {
  if (!/^\d+$/.test(text)) throw usage(`\`${text}\` is no number`);
  return Number(text);
};

const testbedCommands = (program: Command, context: () => Context): void => {
  const directory = new Option("-d, --directory <dir>", "where the testbed keeps its data").env("CELLS_HOME");
  const profiles = ["small", "large", "processes"];
  withHelp(
    program
      .command("up")
      .description(
        "start a cloud on this machine: hosts and storage servers in namespaces, and what manages them in VMs",
      )
      .option("--hosts <n>", "number of hosts (default: as before, or 3)", countOf)
      .option("--servers <n>", "number of storage servers (default: as before, or 2)", countOf)
      .option("--port <n>", "loopback port of the gateway (default: as before, or any)", countOf)
      .addOption(
        new Option("--profile <p>", "where the management runs (default: as before, or small)").choices(profiles),
      )
      .addOption(
        new Option("--personality <name...>", "a door beside the gateway (default: as before, or none)").choices([
          "caas",
        ]),
      )
      .option("--apart", "each of these in a VM of its own (default: as before, or so with the profile large)")
      .addOption(directory)
      .action(async (options) =>
        (await testbed()).up(context(), {
          personalities: options.personality,
          apart: options.apart,
          profile: options.profile,
          hosts: options.hosts,
          servers: options.servers,
          port: options.port,
          directory: options.directory,
        }),
      ),
    [
      "sudo cells up                                  in three VMs and a gateway: examples/root/small.sf",
      "sudo cells up --profile large --hosts 4        every service in a VM of its own",
      "sudo cells up --profile processes              as processes in namespaces: there in seconds",
      "sudo cells up --personality caas               with CaaS beside the gateway, which has persistent volumes",
      "sudo cells up --personality caas --apart       with CaaS in a VM of its own, which reaches the gateway alone",
    ],
  );
  withHelp(
    program
      .command("down")
      .description("end it; its data stays for the next `cells up`")
      .option("--purge", "remove its data as well")
      .addOption(directory)
      .action(async (options) => (await testbed()).down(context(), options.directory, options.purge === true)),
    ["sudo cells down", "sudo cells down --purge"],
  );
  withHelp(
    program
      .command("demo")
      .description("start the cloud, apply three examples, and prove with real packets what passes and what does not")
      .option("--hosts <n>", "number of hosts", countOf)
      .addOption(
        new Option("--profile <p>", "where the management runs (default: as before, or processes)").choices(profiles),
      )
      .addOption(directory)
      .action(async (options) => {
        const { demo } = await import("../commands/demo/demo.ts");
        await demo(context(), { directory: options.directory, hosts: options.hosts, profile: options.profile });
      }),
    ["sudo cells demo", "sudo cells demo --profile small"],
  );
};

const patchCommand = (program: Command, context: () => Context): void => {
  withHelp(
    program
      .command("patch")
      .description("change several parts of a model at once by a JSON Patch, whose tests say what it rests on")
      .argument(
        "<file>",
        "a list of operations (RFC 6902), whose pointers begin with the cell: /shop/web/x.memory; -: standard input",
      )
      .option("--dry-run", "show what would happen, and change nothing")
      .option("-y, --yes", "do not ask")
      .addOption(allowDestroyOption())
      .option("--no-wait", "return when the change is accepted")
      .addOption(timeoutOption())
      .addOption(
        new Option("--cell <name>", "the cell, with its parents: web.shop (default: what the pointers begin with)"),
      )
      .action(async (file, { dryRun, yes, allowDestroy, wait, timeout: seconds, cell }) =>
        (await patches()).patch(context(), file, {
          dryRun: dryRun === true,
          yes: yes === true,
          allowDestroy,
          wait,
          timeoutMs: seconds * 1000,
          cell,
        }),
      ),
    ["cells patch grow.json --dry-run", "cells patch grow.json --yes"],
  );
};

const changeCommands = (program: Command, context: () => Context): void => {
  const child = new Option("--cell <name>", "the child cell that it is a model of, with its parents: web.shop");
  withHelp(
    program
      .command("plan")
      .description("show what `apply` would do, and do nothing")
      .argument("<file>", "a specification, .sf, .json, .yaml or .ts; what it includes is read with it")
      .option("--all", "show what stays as it is, too")
      .option(detailedExitCode, "0: nothing would change, 1: it failed, 2: something would")
      .addOption(child)
      .action(async (file, { all, cell, detailedExitcode }) =>
        (await changes()).plan(context(), file, {
          all: all === true,
          cell,
          detailedExitCode: detailedExitcode === true,
        }),
      ),
    ["cells plan examples/shop/shop.sf", "cells plan shop.sf --detailed-exitcode"],
  );
  withHelp(
    program
      .command("apply")
      .description("make a cell what its specification says, and wait until it is")
      .argument("<file>", "a specification, .sf, .json, .yaml or .ts; what it includes is read with it")
      .option("-y, --yes", "do not ask")
      .addOption(allowDestroyOption())
      .option("--no-wait", "return when the change is accepted")
      .addOption(timeoutOption())
      .addOption(child)
      .action(async (file, { yes, allowDestroy, wait, timeout: seconds, cell }) =>
        (await changes()).apply(context(), file, {
          yes: yes === true,
          allowDestroy,
          wait,
          timeoutMs: seconds * 1000,
          cell,
        }),
      ),
    ["cells apply examples/shop/shop.sf", "cells apply shop.sf --yes --output json"],
  );
  withHelp(
    program
      .command("delete")
      .description("take an element, a group or a whole cell out of the model, and wait until it is gone")
      .argument("<path>", "cell/group/element")
      .option("-y, --yes", "do not ask")
      .addOption(allowDestroyOption())
      .option("--drop-held", "give up what has left the model there and is held for a copy (x.hold), and nothing else")
      .option("--no-wait", "return when the change is accepted")
      .addOption(timeoutOption())
      .action(async (path, { yes, allowDestroy, dropHeld, wait, timeout: seconds }) =>
        (await changes()).remove(context(), path, {
          yes: yes === true,
          allowDestroy,
          dropHeld: dropHeld === true,
          wait,
          timeoutMs: seconds * 1000,
        }),
      ),
    [
      "cells delete shop/web",
      "cells delete shop/db --yes --allow-destroy shop/db/data,shop/db/bootvol",
      "cells delete shop/data --drop-held",
    ],
  );
};

const powerCommands = (program: Command, context: () => Context): void => {
  const verbs = {
    start: "start a VM that is off, or that has failed, and wait until it runs",
    stop: "switch a VM off, and wait until it is; it stays off until it is started",
    restart: "end what runs of a VM and start it again",
  } as const;
  for (const verb of ["start", "stop", "restart"] as const) {
    const command = program
      .command(verb)
      .description(verbs[verb])
      .argument("<vm>", "path of the VM")
      .option("--no-wait", "return when the change is accepted")
      .addOption(timeoutOption());
    if (verb === "stop")
      command
        .option("--force", "do not wait for the word of a host that is away: it says what nobody has looked at")
        .option("--yes", "with --force, do not ask");
    command.action(async (vm, { wait, timeout, force, yes }) =>
      force === true
        ? (await import("../commands/model/force-stop.ts")).forceStop(context(), vm, {
            yes: yes === true,
            timeoutMs: timeout * 1000,
          })
        : (await powers()).power(context(), verb, vm, { wait, timeoutMs: timeout * 1000 }),
    );
    withHelp(command, [`cells ${verb} shop/web/vm`, ...(verb === "stop" ? ["cells stop shop/web/vm --force"] : [])]);
  }
};

const instanceStatus = (program: Command, context: () => Context): void => {
  withHelp(
    program
      .command("instance-status")
      .description(
        "list your VMs with whether each is reached: ok, impaired, or insufficient-data where nobody can say",
      )
      .action(async () =>
        (await import("../commands/model/list.ts")).list(context(), {
          type: "VM",
          filters: [],
          columns: "path,power,reachability,host,reason",
          sort: "path",
        }),
      ),
    ["cells instance-status", "cells instance-status --output json"],
    "A VM is impaired where its host is declared dead, its probes are not answered, or a disk or its address is away. Of\none that is off, or has no host yet, nothing is said.",
  );
};

const viewCommands = (program: Command, context: () => Context): void => {
  withHelp(
    program
      .command("get")
      .description("show the cells, or the model at a path")
      .argument("[path]", "cell/group/element")
      .option("--state", "with the actual state of every element")
      .action(async (path, options) => (await documents()).get(context(), path, options.state === true)),
    ["cells get", "cells get shop --state", "cells get shop/web/vm", "cells get shop --output yaml"],
  );
  withHelp(
    program
      .command("list")
      .description("list the elements of all your cells, or those of a type, a line each")
      .argument("[type]", "VM, Volume, Subnet, …")
      .addOption(
        new Option(
          "--filter <filter>",
          "COLUMN=VALUE or COLUMN!=VALUE; * stands for any text, commas are between alternatives; can be repeated",
        )
          .default([] as readonly string[], "none")
          .argParser(several),
      )
      .option("--columns <columns>", "which to show, with commas in between", "path,type,phase,host,address,reason")
      .option("--sort <columns>", "the order; - in front of one turns it round", "path")
      .action(async (type, { filter: filters, columns, sort }) =>
        (await import("../commands/model/list.ts")).list(context(), { type, filters, columns, sort }),
      ),
    [
      "cells list VM",
      "cells list VM --filter phase=waiting,failed --columns path,reason",
      "cells list --filter host=h2 --sort type,-since",
      "cells list Volume --columns path,server,size --sort -size --output csv",
    ],
    "Columns: path, cell, type, phase, power, health, reachability, host, address, public, mac, name, server, size (MiB), incarnation,\nreboots, since, uid, reason.",
  );
  instanceStatus(program, context);
  withHelp(
    program
      .command("watch")
      .description("show a cell's elements as they change, until Ctrl-C")
      .argument("[cell]", "may be left out where there is only one")
      .action(async (cell) => (await observing()).watch(context(), cell)),
    ["cells watch shop"],
  );
  withHelp(
    program
      .command("why")
      .description(
        "say what holds up a cell, a group or an element, or whether a connection passes and what decides it",
      )
      .argument(
        "<what...>",
        'a path, or "A -> B:port/protocol", or A B port; ends are paths, addresses or names of guests',
      )
      .option("-p, --protocol <protocol>", "tcp, udp or icmp (default: tcp with a port, else icmp)")
      .option("--hosts", "of a VM also whether each host takes it now, and why not: the operator's to ask")
      .allowUnknownOption()
      .action(async (words, options) => (await explanations()).why(context(), words, options)),
    [
      "cells why shop/web/vm --hosts",
      'cells why "shop/web/vm -> shop/app/vm:8080"',
      'cells why "shop/web/vm -> app1:53/udp"',
      "cells why shop",
    ],
  );
};

const imageCommands = (program: Command, context: () => Context): readonly Command[] => {
  const image = program.command("image").description("the images that volumes can start as (`x.import`)");
  const add = withHelp(
    image
      .command("add")
      .description("upload a disk image; it is checked and converted in a sandbox, and what is dubious is refused")
      .argument("<name>", "how cells will name it")
      .argument("<file>", "the disk image")
      .option("-f, --format <format>", "what the file is, raw or qcow2 (default: what it shows itself to be)")
      .option("--replace", "replace the image of this name; volumes made from the old one stay as they are")
      .action(async (name, file, { format, replace }) =>
        (await images()).addImage(context(), { name, file, format, replace: replace === true }),
      ),
    ["cells image add debian debian-12.qcow2", "cells image add old disk.img --format raw"],
  );
  const list = withHelp(
    image
      .command("list")
      .description("show the images and the storage servers that have them")
      .action(async () => (await images()).listImages(context())),
    ["cells image list"],
  );
  const remove = withHelp(
    image
      .command("delete")
      .description("delete an uploaded image; volumes made from it stay as they are")
      .argument("<name>", "the image")
      .action(async (name) => (await images()).deleteImage(context(), name)),
    ["cells image delete debian"],
  );
  return [add, list, remove];
};

const binCommands = (program: Command, context: () => Context): void => {
  const bin = program.command("bin").description("files of deleted volumes, which storage servers keep for a time");
  withHelp(
    bin
      .command("list")
      .description("show what is in the bins, what was deleted last first")
      .action(async () => (await bins()).listBin(context())),
    ["cells bin list"],
  );
  withHelp(
    bin
      .command("restore")
      .description("bring a file back: the next volume of its cell at its path begins with it")
      .argument("<file>", "SERVER/FILE, as `cells bin list` shows it")
      .action(async (file) => (await bins()).restoreFromBin(context(), file)),
    ["cells bin restore s1/3f-12.1", "cells apply shop.sf"],
  );
  withHelp(
    bin
      .command("empty")
      .description("remove files for good; what a copy needs stays")
      .argument("[files...]", "SERVER/FILE, as `cells bin list` shows them")
      .option("--all", "everything in every bin")
      .action(async (files, { all }) => (await bins()).emptyBin(context(), files, all === true)),
    ["cells bin empty s1/3f-12.1", "cells bin empty --all"],
  );
};

const orphanCommands = (program: Command, context: () => Context): void => {
  const orphans = program
    .command("orphans")
    .description("what stays in force although whoever desired it has lost its store, or has an older one");
  withHelp(
    orphans
      .command("list")
      .description("show which services keep what, and of whom")
      .action(async () => (await orphaned()).listOrphans(context())),
    ["cells orphans list"],
  );
  withHelp(
    orphans
      .command("release")
      .description("let what a service desires count again, where no newer store of it is to be had")
      .argument("<service>", "whose store was lost or is older, as `cells orphans list` names it")
      .action(async (service) => (await orphaned()).releaseOrphans(context(), service)),
    ["cells orphans release controller.shop"],
  );
  withHelp(
    orphans
      .command("adopt")
      .description("say that a child cell which nobody claims is the one of its name that its parent declares anew")
      .argument("<service>", "who has it")
      .argument("<client>", "the parent's controller")
      .argument("<key>", "as `cells orphans list` shows it")
      .action(async (service, client, key) => (await orphaned()).adoptOrphan(context(), service, client, key)),
    ["cells orphans adopt cell-manager controller.shop cell/3f-12"],
  );
  withHelp(
    orphans
      .command("end")
      .description("end documents at a service that their client does not know any more; what they kept there ends")
      .argument("<service>", "who keeps them")
      .argument("<client>", "whose they are")
      .argument("[keys...]", "as `cells orphans list` shows them")
      .option("--all", "all that the client did not repeat")
      .action(async (service, client, keys, { all }) =>
        (await orphaned()).endOrphans(context(), service, client, { keys, all: all === true }),
      ),
    ["cells orphans end storage-manager controller.shop volume/3f-12"],
  );
};

const serverCommands = (program: Command, context: () => Context): void => {
  const server = program.command("server").description("storage servers");
  withHelp(
    server
      .command("adopt")
      .description(
        "go on with what a storage server has that was put back from a copy: who held its volumes holds none",
      )
      .argument("<name>", "as `cells status` shows it")
      .action(async (name) => (await bins()).adoptServer(context(), name)),
    ["cells server adopt s1"],
  );
};

const credentialCommands = (program: Command, context: () => Context): void => {
  const credential = program
    .command("credential")
    .description("make, list and revoke what opens one cell and nothing else");
  withHelp(
    credential
      .command("add")
      .description("make a credential of a cell")
      .argument("<cell>")
      .option("--note <text>", "who it is for", "")
      .option("--path <path>", "let it open this part of the cell alone, as shop/data")
      .option("--read-only", "of that part: let it change nothing")
      .option("--out <file>", "write a configuration for CELLS_CONFIG instead of printing it")
      .action(async (cell, options) => (await credentials()).addCredential(context(), cell, options, options.out)),
    ["cells credential add shop --note 'shop team' --out shop.json", "CELLS_CONFIG=shop.json cells get shop --state"],
  );
  withHelp(
    credential
      .command("list")
      .description("show a cell's credentials, without their secrets")
      .argument("<cell>")
      .action(async (cell) => (await credentials()).listCredentials(context(), cell)),
    ["cells credential list shop"],
  );
  withHelp(
    credential
      .command("revoke")
      .description("let a credential open nothing any more")
      .argument("<cell>")
      .argument("<id>", "as `cells credential list` shows it")
      .action(async (cell, id) => (await credentials()).revokeCredential(context(), cell, id)),
    ["cells credential revoke shop 1f3a9c20"],
  );
};

/** The command line. `makeContext` is replaced by tests. */
export const createProgram = (
  makeContext: (output: string) => Context = (output) => createContext(output, () => clientFromConfiguration()),
): Command =>
  assembled(makeContext, (program, context) => {
    testbedCommands(program, context);
    machineCommands(program, context, withHelp);
    changeCommands(program, context);
    patchCommand(program, context);
    registerVersions(program, context, withHelp);
    powerCommands(program, context);
    viewCommands(program, context);
    observeCommands(program, context, withHelp);
    sessionCommands(program, context, withHelp);
    credentialCommands(program, context);
    registerTenancy(program, context, withHelp);
    imageCommands(program, context);
    binCommands(program, context);
    managementCommands(program, context, withHelp);
    orphanCommands(program, context);
    serverCommands(program, context);
    poolCommands(program, context, withHelp);
    volumeCommands(program, context, withHelp);
    zoneCommands(program, context, withHelp);
    networkCommands(program, context, withHelp);
    specCommands(program, context, withHelp);
    registerApi(program, context, withHelp);
    registerExplain(program, context, withHelp);
    simulateCommand(program, context, withHelp);
    webCommand(program, context, withHelp);
    gatewayCommands(program, context, withHelp);
    completionCommands(program, context, withHelp);
    manualCommand(program, context, withHelp);
    scriptCommands(program, context, withHelp);
  });
