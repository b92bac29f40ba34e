import { mayAsk } from "../../core/documents/permissions.ts";
import type { MachineEnd } from "../../host/drivers/hypervisor/driver.ts";
import { hostName, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { DiskHealth } from "../kernel/disk.ts";
import { goodQuality } from "../kernel/network.ts";
import type { CrashPoint } from "../kernel/process.ts";
import { Administration, type SentAway } from "./administration.ts";
import { labelOf, parseCell } from "./cell-text.ts";
import { Poisons } from "./hosts/poison.ts";
import { type ControllerMode, controllerModes } from "./hosts/power-controllers.ts";
import { type WatchdogMode, watchdogModes } from "./hosts/watchdog.ts";
import type { Host, Installation } from "./installation.ts";
import { groupOf, setJoined } from "./memberships.ts";
import { beginCare } from "./operators/caretaker.ts";
import { adoptChild, keepNetworkConfiguration, sayPowerIsOff } from "./operators/operator.ts";
import type { ServerMachine } from "./server-machine.ts";
import { sendFrom } from "./to-many.ts";
import { Wishes } from "./wishes.ts";

/** Carries out the steps of a history, and takes back in the end what they broke. */
export class Steps {
  readonly administration: Administration;
  readonly wishes: Wishes;
  readonly poisons: Poisons;
  readonly #installation: Installation;
  /** What ends the faults that last. */
  readonly #repairs = new Set<() => void>();
  /** All faults have ended. */
  isHealing = false;

  constructor(installation: Installation) {
    this.#installation = installation;
    const sentAway: SentAway = { hosts: new Set(), vms: new Set() };
    this.administration = new Administration(installation, sentAway);
    this.wishes = new Wishes(installation, this.administration, sentAway);
    const { kernel, truth } = installation;
    this.poisons = new Poisons(kernel, truth, (host, awayMs) => installation.powerOff(host, awayMs));
    if (installation.history.operator) beginCare(installation, this);
    if (installation.history.edge !== undefined) keepNetworkConfiguration(installation);
  }

  wishAgain(cell: string): void {
    this.wishes.wishAgain(cell);
  }

  /** Throws a sentence for a step that is none. */
  perform(words: readonly string[]): void {
    const { kernel } = this.#installation;
    kernel.log("history", words[0] ?? "", { words: words.slice(1).join(" ") });
    const [verb = "", ...rest] = words;
    const at = rest.lastIndexOf("for");
    const forMs = at < 0 ? null : Number(rest[at + 1]);
    const args = at < 0 ? rest : rest.slice(0, at);
    const perform = verbs[verb];
    if (perform === undefined) throw new Error(`"${verb}" is no step; there are ${Object.keys(verbs).join(", ")}`);
    perform({ steps: this, installation: this.#installation, args, forMs: forMs ?? 2000 });
  }

  /** A fault begins and ends: after its time, or with all others. */
  lasting(forMs: number, repair: () => void): void {
    const once = (): void => {
      if (this.#repairs.delete(once)) repair();
    };
    this.#repairs.add(once);
    this.#installation.kernel.clock.after(forMs, once);
  }

  heal(): void {
    const { kernel } = this.#installation;
    kernel.log("history", "heal", {});
    this.isHealing = true;
    this.administration.isHealing = true;
    this.#installation.visitors.haveLeft = true;
    for (const repair of [...this.#repairs]) repair();
    kernel.network.quality = goodQuality;
    this.#installation.startAll();
  }
}

interface Performance {
  readonly steps: Steps;
  readonly installation: Installation;
  readonly args: readonly string[];
  readonly forMs: number;
}

const word = <T extends string>(given: string | undefined, known: readonly T[]): T => {
  const found = known.find((each) => each === given);
  if (found === undefined) throw new Error(`"${given ?? ""}" should be one of ${known.join(", ")}`);
  return found;
};
const hostOf = ({ installation, args: [name = ""] }: Performance): Host => {
  const host = installation.hosts.get(hostName(name));
  if (host === undefined) throw new Error(`"${name}" is no host`);
  return host;
};
const serverOf = ({ installation, args: [name = ""] }: Performance): ServerMachine => {
  const server = [...installation.servers.values()].find(({ machine }) => machine === name);
  if (server === undefined) throw new Error(`"${name}" is no storage server`);
  return server;
};
/** The UID behind `CELL/ELEMENT`; null while the controller knows none. */
const uidOf = (installation: Installation, path: string): Uid | null => {
  const [cell = "", ...rest] = path.split("/");
  const state = installation.controllers.get(cell)?.state;
  const own = [labelOf(cell), ...rest].join("/");
  const record = [...(state?.elements.values() ?? [])].find((each) => each.path === own && !each.deleting);
  return record?.uid ?? null;
};

const crash = ({ installation, args: [name = "", point], forMs }: Performance): void => {
  const process = installation.process(name);
  installation.awayMs.set(name as PeerName, forMs);
  if (point === undefined) process.crash("by the history");
  else process.crashPoint = word<CrashPoint>(point, ["before-commit", "after-commit", "between-sends"]);
};

/** A child cell's controller may not be there, or not any more: whether it is follows from chance. */
const isAbsentChild = (installation: Installation, name: string): boolean =>
  (installation.history.root === true ? /^controller\../ : /^controller\..+\./).test(name) &&
  !installation.processes.has(name as PeerName);

/** Of a controller that nobody has heard of. */
const isUnknown = ({ processes }: Installation, name: string): boolean =>
  name.startsWith("controller.") &&
  [...processes.values()].every(({ distribution }) => !distribution?.clients.get(name as PeerName)?.mark);

/** Its store is gone, or as it was when it was copied; it starts from that. */
const loseStore =
  (how: "lose" | "putBack" | "exchange") =>
  ({ installation, args: [name = ""], forMs }: Performance): void => {
    // It is a new one, whose numbers begin.
    if (isAbsentChild(installation, name) || isUnknown(installation, name)) return;
    const process = installation.process(name);
    installation.awayMs.set(name as PeerName, forMs);
    process.crash("its store is lost");
    process.disk[how]();
    noteLoss(installation, process);
  };
/** Said besides its end: a process that does not run when its store is taken has none. */
const noteLoss = (installation: Installation, process: ReturnType<Installation["process"]>): void => {
  process.wallOffsetMs = process.latestOffsetMs;
  installation.losses.add(process.name);
  installation.kernel.log(process.name, "store/taken", {});
};

const copy = ({ installation, args: [name = ""] }: Performance): void => {
  if (!isAbsentChild(installation, name)) installation.process(name).disk.copy();
};

/**
 * All machines but the storage servers are lost, and their services go on from the last copies on fresh ones: those that a
 * restore puts back (decision 59) from theirs, all others blank. Hosts that are named live on, with all that they run, and
 * nobody has said of them that they do not.
 */
const disaster = ({ steps, installation, args: spared, forMs }: Performance): void => {
  const lost = [...installation.processes.values()].filter(
    ({ name, machine }) => !name.startsWith("agent.") && !spared.includes(machine),
  );
  for (const machine of new Set(lost.map((process) => process.machine)))
    steps.lasting(forMs, installation.powerOff(machine, forMs));
  const gone = spared.length === 0 ? "all" : [...installation.hosts.keys()].filter((host) => !spared.includes(host));
  for (const process of lost) {
    const { name, disk } = process;
    if (mayAsk("authority", name, "GET", "/put-back")) disk.putBackAnew(gone);
    else disk.lose();
    noteLoss(installation, process);
  }
};

/** Its operator has looked: what a process desires anywhere counts again. */
const release = ({ installation, args: [name = ""] }: Performance): void => {
  const { name: peer } = installation.process(name);
  for (const process of installation.processes.values()) process.tell({ kind: "release", peer });
};

const pause = ({ steps, installation, args: [name = ""], forMs }: Performance): void => {
  const process = installation.process(name);
  process.pause();
  steps.lasting(forMs, () => process.resume());
};

/** A host is cut off from everybody but the storage servers. */
const isolate = (performance: Performance): void => {
  const { installation, args } = performance;
  const [host = ""] = args;
  const machines = new Set([...installation.processes.values()].map(({ machine }) => machine));
  const servers = new Set<string>([...installation.servers.values()].map(({ machine }) => machine));
  for (const other of machines) if (other !== host && !servers.has(other)) cut({ ...performance, args: [host, other] });
};

const cut = ({ steps, installation, args: [a = "", b = "", oneWay], forMs }: Performance): void => {
  const { network } = installation.kernel;
  const machines = new Set([...installation.processes.values()].map(({ machine }) => machine));
  const others = b === "*" ? [...machines].filter((machine) => machine !== a) : [b];
  for (const name of [a, ...others]) if (!machines.has(name)) throw new Error(`"${name}" is no machine`);
  const pairs = others.flatMap((other) =>
    oneWay === "one-way"
      ? [[a, other]]
      : [
          [a, other],
          [other, a],
        ],
  );
  for (const [from = "", to = ""] of pairs) network.cut(from, to);
  steps.lasting(forMs, () => {
    for (const [from = "", to = ""] of pairs) network.mend(from, to);
  });
};

const disk = ({ steps, installation, args: [name = "", health], forMs }: Performance): void => {
  const { disk: target } = installation.process(name);
  target.health = word<DiskHealth>(health, ["slow", "full", "failing"]);
  steps.lasting(forMs, () => {
    target.health = "well";
  });
};

const quality = (change: "loss" | "delay") => {
  return ({ steps, installation, args: [amount = "0"], forMs }: Performance): void => {
    const { network } = installation.kernel;
    const before = network.quality;
    network.quality =
      change === "loss" ? { ...before, loss: Number(amount) / 100 } : { ...before, jitterMs: Number(amount) };
    steps.lasting(forMs, () => {
      network.quality = before;
    });
  };
};

const vm = ({ steps, installation, args: [path = "", how], forMs }: Performance): void => {
  const uid = uidOf(installation, path);
  const ended = word(how, ["crashed", "exited", "hang"]);
  for (const { machine } of installation.hosts.values()) {
    for (const running of machine.machines) {
      if (running.vm !== uid) continue;
      if (ended === "hang") {
        running.hung = true;
        steps.lasting(forMs, () => {
          running.hung = false;
        });
      } else machine.end(running.vm, ended as MachineEnd["ended"], `the guest ${ended}`);
    }
  }
};

/** Its guest's software joins a group from now on, or does so no more. */
const member =
  (joins: boolean) =>
  ({ installation, args: [path = "", group = ""] }: Performance): void => {
    const uid = uidOf(installation, path);
    const known = groupOf(group);
    if (uid !== null) setJoined(installation.kernel, installation.truth, uid, known, joins);
  };

const send = ({ installation, args: [path = "", to = "", port = ""] }: Performance): void => {
  const { kernel, truth } = installation;
  const reached = sendFrom(kernel, truth, uidOf(installation, path), to, Number(port));
  kernel.log("history", "reached", { path, group: to, machines: reached.map(({ name }) => name) });
};

const killExport = ({ installation, args: [path = ""] }: Performance): void => {
  const uid = uidOf(installation, path);
  if (uid !== null) for (const server of installation.servers.values()) server.killExport(uid);
};

const driver = (performance: Performance): void => {
  const { dataplane, machine } = hostOf(performance);
  if (performance.args[1] === "stuck") {
    machine.stuck = true;
    performance.steps.lasting(performance.forMs, () => {
      machine.stuck = false;
    });
    return;
  }
  const target = word(performance.args[1], ["network", "hypervisor"]) === "network" ? dataplane : machine;
  target.trouble = "the driver has trouble";
  performance.steps.lasting(performance.forMs, () => {
    target.trouble = null;
  });
};

const server = (performance: Performance): void => {
  const target = serverOf(performance);
  const what = word(performance.args[1], ["slow", "full", "stuck"]);
  target[what] = true;
  performance.steps.lasting(performance.forMs, () => {
    target[what] = false;
  });
};

/** Its operator says that its power is off, where that is so. */
const dead = (performance: Performance): void => {
  const { installation } = performance;
  const { host } = hostOf(performance).machine;
  sayPowerIsOff(installation, host, installation.kernel.random.fork(`operator ${installation.kernel.clock.nowMs}`));
};

/** A shorter history with fewer hosts would fail otherwise because its operator writes of one that is not there. */
const onHost =
  (perform: (performance: Performance) => void) =>
  (performance: Performance): void => {
    hostOf(performance);
    perform(performance);
  };

/** The operator has it in maintenance for a while; with a root cell alone. */
const drain = (performance: Performance): void => {
  const { steps, installation, args, forMs } = performance;
  const { host } = hostOf(performance).machine;
  if (installation.history.root !== true) throw new Error(`"drain ${args.join(" ")}" needs "root 1"`);
  steps.administration.host(host, "maintenance");
  steps.lasting(forMs, () => steps.administration.host(host, "enabled"));
};

/** `lie PROCESS publish KEY JSON`, or `lie PROCESS desire PEER KEY JSON`: JSON without spaces. */
const lie = ({ installation, args: [name = "", kind, ...rest] }: Performance): void => {
  const process = installation.process(name);
  const { lies } = process;
  const value = JSON.parse(rest.at(-1) ?? "null") as Json;
  if (word(kind, ["publish", "desire"]) === "publish") lies.push({ kind: "publish", key: rest[0] ?? "", value });
  else lies.push({ kind: "desire", to: rest[0] as PeerName, key: rest[1] ?? "", value });
  // Any question makes for a step.
  void process.request(name.startsWith("host.") ? { kind: "status" } : { kind: "host-end", host: "h1", end: null });
};

/** Many hosts at once, by one cause: `storm h1,h2,h3 cut for 20000`. */
const storm = (performance: Performance): void => {
  const [hosts = "", how] = performance.args;
  const what = word(how, ["cut", "isolate", "power-off"]);
  for (const host of hosts.split(",")) verbs[what]?.({ ...performance, args: what === "cut" ? [host, "*"] : [host] });
};

/** A VM takes down whichever host it runs at. */
const poison = ({ steps, installation, args: [path = ""], forMs }: Performance): void => {
  const uid = uidOf(installation, path);
  if (uid === null) return;
  steps.poisons.begin(uid);
  steps.lasting(forMs, () => steps.poisons.end(uid));
};

/** Hosts have a watchdog for a while, which does what it is there for, or nothing. */
const watchdog = (performance: Performance): void => {
  const { watchdog: of } = hostOf(performance);
  of.mode = word<WatchdogMode>(performance.args[1], watchdogModes);
  performance.steps.lasting(performance.forMs, () => {
    of.mode = "none";
  });
};

/** An operator has looked, as by `cells ha release`: at one VM that is held, or at the loss of many hosts. */
const releaseHa = ({ installation, args: [path] }: Performance): void => {
  const [cell = "", name = ""] = path?.split("/") ?? [];
  const about = path === undefined ? {} : { cell, path: `${labelOf(cell)}/${name}` };
  for (const process of installation.processes.values())
    if (process.name.startsWith("ha-manager")) void process.request({ kind: "ha-release", ...about });
};

/** Drawn from a seed by `histories/generate.ts`; what each does is told in the README, Faults. */
const verbs: Readonly<Record<string, (performance: Performance) => void>> = {
  apply: ({ steps, args: [cell = "", ...text] }) => steps.wishes.wish(cell, parseCell(text)),
  patch: ({ steps, args: [cell = "", ...text] }) => steps.wishes.wish(cell, parseCell(text), "patch"),
  delete: ({ steps, args: [cell = ""] }) => steps.wishes.wish(cell, null),
  finish: ({ steps, args: [cell = ""] }) => steps.wishes.finish(cell),
  crash,
  copy,
  lose: loseStore("lose"),
  "put-back": loseStore("putBack"),
  exchange: loseStore("exchange"),
  disaster,
  release,
  "adopt-child": ({ installation, args: [cell = ""] }) => adoptChild(installation, cell),
  lie,
  vanish: ({ installation, args: [number = "", left] }) =>
    installation.vanishHaManager(Number(number), left !== undefined && word(left, ["left"]) === "left"),
  "power-off": ({ steps, installation, args: [machine = ""], forMs }) => {
    const boot = installation.powerOff(machine, forMs);
    steps.lasting(forMs, boot);
  },
  controller: ({ steps, installation, args: [name = "", mode], forMs }) => {
    const { powers } = installation;
    const known = word<ControllerMode>(mode, controllerModes);
    if (!installation.hosts.has(hostName(name))) throw new Error(`"${name}" is no host`);
    // Nobody would ask it.
    if (!installation.history.ha) return;
    powers.set(hostName(name), known);
    steps.lasting(forMs, () => powers.set(hostName(name), "works"));
  },
  force: ({ installation, args: [path = ""] }) => {
    const [cell = "", name = ""] = path.split("/");
    const request = { method: "FORCE-STOP", vm: `${labelOf(cell)}/${name}`, tentative: false };
    void installation.controllers.get(cell)?.request(request);
  },
  visit: ({ installation, args: [cell = "", user = "", account = null] }) =>
    installation.visitors.arrive(cell, user, account),
  limit: ({ installation, args: [path = "", key = "", amount] }) =>
    installation.visitors.limit(path, { [key]: Number(amount) }),
  member: ({ installation, args: [path = "", user = ""] }) => installation.visitors.member(path, user),
  "delete-account": ({ steps, installation, args: [path = "", ...cells] }) => {
    steps.wishes.endWithAccount(cells);
    installation.visitors.deleteAccount(path, cells);
  },
  invite: ({ installation, args: [cell = "", user = "", account = null] }) =>
    installation.visitors.invite(cell, user, account),
  dismiss: ({ installation, args: [user = ""] }) => installation.visitors.dismiss(user),
  pester: ({ installation, args: [path = "", users = "1", times = "1"] }) =>
    installation.visitors.pester(path, Number(users), Number(times)),
  recover: ({ installation, args: [user = ""] }) => installation.visitors.recover(user),
  "disable-user": ({ installation, args: [user = ""] }) => installation.visitors.disable(user),
  dead,
  dedicate: onHost(({ steps, args, forMs }) =>
    steps.administration.dedicated(args, (end) => steps.lasting(forMs, end)),
  ),
  flavor: onHost(({ steps, args: [host = "", how] }) => steps.administration.flavor(host, how === "drained")),
  unflavor: onHost(({ steps, args: [host = ""], forMs }) =>
    steps.administration.leave(host, (end) => steps.lasting(forMs, end)),
  ),
  drain,
  reserve: ({ steps, installation, args: [name = ""], forMs }) => {
    if (installation.history.root !== true) throw new Error(`"reserve ${name}" needs "root 1"`);
    steps.administration.reserve(name);
    steps.lasting(forMs, () => steps.administration.host(name, "enabled"));
  },
  storm,
  poison,
  watchdog,
  "ha-release": releaseHa,
  move: ({ steps, args: [path = "", host = ""] }) => steps.administration.move(path, host),
  pause,
  cut,
  isolate,
  disk,
  clock: ({ installation, args: [name = "", ms] }) => {
    const process = installation.process(name);
    process.wallOffsetMs += Number(ms);
    process.latestOffsetMs = Math.max(process.latestOffsetMs, process.wallOffsetMs);
  },
  loss: quality("loss"),
  delay: quality("delay"),
  vm,
  join: member(true),
  leave: member(false),
  send,
  "kill-export": killExport,
  driver,
  server,
};
