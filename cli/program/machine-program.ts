import { Option } from "commander";
import type { Register } from "../context/register-type.ts";
import { several, timeoutOption, wholeNumber } from "./options.ts";

/** `cells bootstrap` and `cells host`: real machines. */
const defaultSeconds = 600;
const onInterface = () =>
  new Option("-i, --interface <device>", "the machine's interface on the underlay").default("eth0");
const withTimeout = () => timeoutOption(defaultSeconds);
const withImages = () => new Option("--images <dir>", "images that are built already (default: they are built here)");

const bootstrapCommand: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("bootstrap")
      .description("make this machine the first of a cloud, whose management then runs in VMs of its own")
      .addOption(
        new Option("--profile <p>", "how the management is packed into VMs")
          .choices(["small", "large"])
          .default("small"),
      )
      .option("--specification <file>", "the root cell, in place of a profile's")
      .option("--name <name>", "what this machine is called", "h1")
      .option("--address <address>", "its address on the underlay, where it has several")
      .addOption(onInterface())
      .option("--storage <dir>", "where its volumes go", "/var/lib/cells/storage")
      .addOption(withImages())
      .option("--backup <file>", "go on from this backup of a management that is lost")
      .option("--passphrase-file <file>", "of the backup: read the passphrase from there (default: it is asked for)")
      .option("--key <file>", "of the backup: your key, where the schedule made it")
      .option("--authority <file>", "of the backup: the installation's authority, a certificate that you have kept")
      .option("--powered-off <names>", "hosts of the backup: you have made sure that nothing runs on them any more")
      .option(
        "--lost-servers <names>",
        "storage servers of the backup that will not come back: what they had begins empty",
      )
      .addOption(withTimeout())
      .action(async ({ timeout, ...options }) =>
        (await import("../commands/bootstrap.ts")).bootstrap(context(), { ...options, timeoutMs: timeout * 1000 }),
      ),
    [
      "sudo cells bootstrap --interface eth1",
      "sudo cells bootstrap --specification root.sf --storage /srv/volumes",
      "sudo cells bootstrap --interface eth1 --backup cells.backup --key operator.key --powered-off h1,h2,h3",
    ],
  );
};

const haCommands: Register = (program, context, withHelp) => {
  const commands = () => import("../commands/hosts/ha.ts");
  const ha = program.command("ha").description("what is done about VMs whose host is lost");
  withHelp(
    ha
      .command("list", { isDefault: true })
      .description("show what the HA Manager works on, and what it has done in the last day")
      .action(async () => (await commands()).listHa(context())),
    ["cells ha", "cells ha list"],
  );
  withHelp(
    ha
      .command("why")
      .description("show what each investigator and fencer answered about a VM, and when")
      .argument("<vm>", "its path, as `cells ha` shows it")
      .action(async (path) => (await commands()).whyHa(context(), path)),
    ["cells ha why shop/web/vm"],
  );
  withHelp(
    ha
      .command("pause")
      .description("say that hosts will be switched off, or the whole cloud: no VM is started elsewhere until release")
      .action(async () => (await commands()).pauseHa(context())),
    ["cells ha pause"],
  );
  withHelp(
    ha
      .command("release")
      .description("say that you have looked: what was held goes on, of one VM or after many hosts were lost at once")
      .argument("[vm]", "its path, as `cells ha` shows it")
      .action(async (vm) => (await commands()).releaseHa(context(), vm)),
    ["cells ha release", "cells ha release shop/web/vm"],
  );
  withHelp(
    ha
      .command("cancel")
      .description("leave a VM alone whose host is lost: it waits for its host, or for `cells ha retry`")
      .argument("<vm>", "its path, as `cells ha` shows it")
      .action(async (vm) => (await commands()).orderHa(context(), "cancel", vm)),
    ["cells ha cancel shop/web/vm"],
  );
  withHelp(
    ha
      .command("retry")
      .description("take up what was cancelled, or ask everybody anew about what waits")
      .argument("<vm>", "its path, as `cells ha` shows it")
      .action(async (vm) => (await commands()).orderHa(context(), "retry", vm)),
    ["cells ha retry shop/web/vm"],
  );
};

const alertCommands: Register = (program, context, withHelp) => {
  const commands = () => import("../commands/hosts/ha.ts");
  const alerts = program
    .command("alerts")
    .description("show what waits for you: what the HA Manager does not decide by itself, and what helps")
    .action(async () => (await commands()).listAlerts(context()));
  withHelp(alerts, ["cells alerts", "cells alerts --output json"]);
  withHelp(
    alerts
      .command("acknowledge")
      .description("say that you look after an alert: it stays until it is over")
      .argument("<kind>", "as `cells alerts` shows it")
      .argument("[about]", "as `cells alerts` shows it; of `paused` nothing")
      .action(async (kind, about) => (await commands()).acknowledgeAlert(context(), kind, about)),
    ["cells alerts acknowledge unfenced h2", "cells alerts acknowledge paused"],
  );
  withHelp(
    alerts
      .command("webhook")
      .description("have alerts told to a URL: when one is opened, acknowledged or over, signed with a secret")
      .argument("[url]", "http or https, outside of the installation")
      .option("--secret-file <file>", "the secret is read from there; else from standard input")
      .option("--remove", "tell them to nobody")
      .action(async (url, options) => (await commands()).setWebhook(context(), url, options)),
    [
      "cells alerts webhook https://pager.example.com/cells --secret-file webhook.secret",
      "cells alerts webhook --remove",
    ],
  );
  withHelp(
    alerts
      .command("mail")
      .description("have alerts told to somebody by mail: when one is opened, acknowledged or over")
      .argument("[address]", "to whom")
      .option("--server <host:port>", "the server that takes mail, outside of the installation; port 587 unless said")
      .option("--from <address>", "from whom it is")
      .option("--user <name>", "who logs in there")
      .option("--password-file <file>", "the password is read from there; else from standard input")
      .option(
        "--ca-file <file>",
        "who has signed the server's certificate, in PEM; else whoever the gateway's system knows",
      )
      .option("--remove", "tell nobody by mail")
      .action(async (address, options) => (await commands()).setMail(context(), address, options)),
    [
      "cells alerts mail oncall@example.com --server mail.example.com --from cells@example.com --user cells --password-file mail.secret",
      "cells alerts mail --remove",
    ],
  );
};

const drainCommands: Register = (host, context, withHelp) => {
  const commands = () => import("../commands/hosts/drain.ts");
  withHelp(
    host
      .command("drain")
      .description(
        "take nothing new at a machine, and have its VMs go to others, each stopped in order and started there",
      )
      .argument("<name>", "as `cells status` shows it")
      .option("-y, --yes", "do not ask")
      .option("--dry-run", "show what would leave, and change nothing")
      .option("--no-wait", "return when the change is accepted")
      .addOption(withTimeout())
      .action(async (name, { yes, dryRun, wait, timeout }) =>
        (await commands()).drainHost(context(), name, {
          yes: yes === true,
          dryRun: dryRun === true,
          wait,
          timeoutMs: timeout * 1000,
        }),
      ),
    ["cells host drain h2", "cells host drain h2 --yes --timeout 1800"],
  );
  withHelp(
    host
      .command("resume")
      .description("let a machine take VMs again that was drained")
      .argument("<name>", "as `cells status` shows it")
      .action(async (name) => (await commands()).resumeHost(context(), name)),
    ["cells host resume h2"],
  );
};

const powerCommand: Register = (host, context, withHelp) =>
  withHelp(
    host
      .command("power")
      .description("say what switches a machine's power, apart from the machine; it is tried, and nothing is switched")
      .argument("<name>", "as `cells status` shows it")
      .option("--ipmi <address>", "its management controller, by IPMI 2.0: ADDRESS or ADDRESS:PORT")
      .option("--redfish <address>", "its management controller, by Redfish: ADDRESS or ADDRESS:PORT")
      .option("--agent <program>", "a program of fence-agents, for what knows neither: its device at --address")
      .option("--address <address>", "of an agent: ADDRESS or ADDRESS:PORT")
      .option("--plug <names>", "of an agent whose device has several: all plugs that feed the machine, 7 or 7,8")
      .option(
        "--option <name=value>",
        "of an agent: what else it is to be told, as `--option lanplus=1`; again for each",
        several,
      )
      .option("--user <name>", "who may switch it there")
      .option("--password-file <file>", "the password is read from there; else from standard input")
      .option("--fingerprint <sha256>", "of Redfish: SHA-256 of the controller's certificate, hexadecimal")
      .option("--cipher-suite <number>", "of IPMI: 3 where the controller does not know 17")
      .option("--remove", "forget it")
      .action(async (name, options) =>
        (await import("../commands/hosts/power.ts")).hostPower(context(), name, options),
      ),
    [
      "cells host power h2 --ipmi 10.9.0.2 --user cells --password-file h2.password",
      "cells host power h2 --redfish 10.9.0.2 --user cells --fingerprint 5f…c3",
      "cells host power h2 --agent fence_apc --address 10.9.0.5 --plug 7 --user cells --password-file pdu.password",
      "cells host power h2 --remove",
    ],
  );

const moveCommand: Register = (program, context, withHelp) =>
  withHelp(
    program
      .command("move")
      .description("stop a VM in order, and start it at another machine with its data")
      .argument("<vm>", "path of the VM")
      .requiredOption("--to <host>", "as `cells status` shows it")
      .option("--dry-run", "show what would be, and change nothing")
      .option("--no-wait", "return when the order is accepted")
      .addOption(withTimeout())
      .action(async (vm, { to, dryRun, wait, timeout }) =>
        (await import("../commands/hosts/drain.ts")).moveVm(context(), vm, to, {
          dryRun: dryRun === true,
          wait,
          timeoutMs: timeout * 1000,
        }),
      ),
    ["cells move shop/web/vm --to h3"],
  );

const roomCommands: Register = (program, context, withHelp) => {
  const commands = () => import("../commands/hosts/capacity.ts");
  withHelp(
    program
      .command("capacity")
      .description("say how many more of a VM there is room for, what runs out first, and how many after lost hosts")
      .option("--like <vm>", "path of a VM that is to run: one with its wishes, of its account")
      .option("--memory <MiB>", "or else its main memory", wholeNumber)
      .option("--cpus <number>", "and its virtual processors", wholeNumber)
      .option("--failures <number>", "after the loss of any so many hosts", wholeNumber)
      .action(async (options) => (await commands()).showCapacity(context(), options)),
    ["cells capacity --like shop/web/vm", "cells capacity --memory 2048 --cpus 2 --failures 1"],
    "VMs of hosts that are lost start again on the others before.",
  );
  withHelp(
    program
      .command("rebalance")
      .description("show a plan of moves after which hosts are used alike, and what it gains; nothing is moved")
      .option("--even", "hosts are used alike (default)")
      .option("--pack", "few hosts are used")
      .option("--empty <host>", "nothing is at this host")
      .action(async (options) => (await import("../commands/hosts/rebalance.ts")).showRebalance(context(), options)),
    ["cells rebalance", "cells rebalance --pack", "cells rebalance --empty h3"],
    "Each move is lawful once those before it are made: `cells move` makes one.",
  );
};

const dedicationCommands: Register = (program, context, withHelp) => {
  const commands = () => import("../commands/hosts/dedicate.ts");
  withHelp(
    program
      .command("dedicate")
      .description(
        "give a zone, pod, cluster or host to a domain or an account: it takes their VMs alone, those that ask for it",
      )
      .argument("<resource>", "name of a host, or names of a place from the zone down: z1/p1/c1")
      .requiredOption("--to <owner>", "path of a domain or an account: acme/dev")
      .option("--dry-run", "say whether it may be, and change nothing")
      .action(async (resource, { to, dryRun }) =>
        (await commands()).dedicateResource(context(), resource, { to, dryRun: dryRun === true }),
      ),
    ["cells dedicate h4 --to acme", "cells dedicate z1/p1 --to acme/dev --dry-run"],
    "VMs of others there stand against it and are named. VMs ask for it by the group that is said.",
  );
  withHelp(
    program
      .command("release")
      .description("take a zone, pod, cluster or host back from whom it was dedicated to; VMs that run there stay")
      .argument("<resource>", "as `cells dedications` shows it")
      .action(async (resource) => (await commands()).releaseResource(context(), resource)),
    ["cells release z1/p1"],
  );
  withHelp(
    program
      .command("dedications")
      .description("show what is dedicated, to whom, and the group by which VMs ask for it")
      .action(async () => (await commands()).listDedications(context())),
    ["cells dedications"],
  );
};

export const machineCommands: Register = (program, context, withHelp) => {
  bootstrapCommand(program, context, withHelp);
  const commands = () => import("../commands/hosts/host.ts");
  haCommands(program, context, withHelp);
  alertCommands(program, context, withHelp);
  moveCommand(program, context, withHelp);
  const host = program.command("host").description("machines that join the cloud, and leave it");
  withHelp(
    host
      .command("token")
      .description("make a one-time token with which a machine joins; good for a day")
      .argument("<name>", "what the machine will be called")
      .requiredOption("--address <address>", "the machine's address on the underlay")
      .option("--agent", "it stores volumes, too")
      .option("--out <file>", "write the token there instead of printing it")
      .option("--cluster <place>", "where it stands, as z1/p1/c1")
      .option("--tags <tags>", "what VMs may ask for, with commas in between")
      .option("--flavor <flavor>", "it serves nobody but pools that ask for this flavour")
      .option("--owner <path>", "the domain or account that it is dedicated to from the beginning")
      .action(async (name, { agent, ...options }) =>
        (await commands()).hostToken(context(), { ...options, name, agent: agent === true }),
      ),
    [
      "cells host token h2 --address 10.0.1.2 --agent --out h2.token",
      "cells host token h3 --address 10.0.1.3 --cluster z1/p1/c1 --tags ssd --owner acme/dev --out h3.token",
    ],
  );
  withHelp(
    host
      .command("join")
      .description("make this machine a host; its token is read from standard input")
      .addOption(onInterface())
      .option("--storage <dir>", "where its volumes go; only with a token for that")
      .option("--token-file <file>", "read the token from there")
      .addOption(withImages())
      .addOption(withTimeout())
      .action(async ({ timeout, ...options }) =>
        (await commands()).joinHost(context(), { ...options, timeoutMs: timeout * 1000 }),
      ),
    ["sudo cells host join --interface eth1 --storage /var/lib/cells/storage --token-file h2.token"],
  );
  withHelp(
    host
      .command("leave")
      .description("take this machine out; refused while machines run or volumes lie on it")
      .option("--force", "end what runs here, whoever needs it")
      .option("--purge", "remove its keys, its state and its volumes")
      .action(async (options) =>
        (await commands()).leaveHost(context(), { force: options.force === true, purge: options.purge === true }),
      ),
    ["sudo cells host leave"],
  );
  drainCommands(host, context, withHelp);
  dedicationCommands(program, context, withHelp);
  roomCommands(program, context, withHelp);
  powerCommand(host, context, withHelp);
  withHelp(
    host
      .command("dead")
      .description("say that a machine's power is off: its VMs have ended, and may be started elsewhere")
      .argument("<name>", "as `cells status` shows it")
      .option("--power-is-off", "you have made sure of it: VMs of a machine that still runs would run twice")
      .action(async (name, options) => (await commands()).hostDead(context(), name, options.powerIsOff === true)),
    ["cells host dead h2 --power-is-off"],
  );
  withHelp(
    host
      .command("remove")
      .description("let the cloud forget a machine that has left, or will not come back")
      .argument("<name>", "as `cells status` shows it")
      .option("--force", "also with machines and volumes on it: their cells lose them")
      .action(async (name, options) => (await commands()).removeHost(context(), name, options.force === true)),
    ["cells host remove h2"],
  );
};
