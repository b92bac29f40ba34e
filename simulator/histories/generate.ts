import { machineShares } from "../../core/placer/machine-memory.ts";
import { createRandom, type Random } from "../kernel/random.ts";
import { type CellText, formatCell, type MachineText } from "../world/cell-text.ts";
import type { History, HistoryStep } from "../world/history.ts";
import type { FaultKind } from "./fault-kinds.ts";
import { withAdministration } from "./generate-administration.ts";
import { withOtherCells } from "./generate-family.ts";
import { withGroups } from "./generate-groups.ts";
import { triesHa, withHa } from "./generate-ha.ts";
import { withHarvest } from "./generate-harvest.ts";
import { withModes } from "./generate-modes.ts";

export interface Wanted {
  readonly seed: number;
  readonly hosts: number;
  readonly cells: number;
  readonly minutes: number;
  readonly faults: readonly FaultKind[];
  /** Placers and Storage Managers; absent: some seeds have two. */
  readonly services?: number;
  /** There is an HA Manager. */
  readonly ha?: boolean;
}

/** Between two faults, and between two changes of one cell, on average. */
const faultEveryMs = 2500;
const changeEveryMs = 12_000;
const memoryMiB = 4096;
/** Of all hosts together: what is asked for must be had even while a host is away for a while. */
const share = 0.4;
const overheadMiB = 128;

/** A history from a seed: cells that change, and faults. The same arguments give the same history. */
export const generateHistory = ({
  seed,
  hosts,
  cells,
  minutes,
  faults,
  services: asked,
  ha = false,
}: Wanted): History => {
  const random = createRandom(seed, "history");
  const untilMs = Math.round(minutes * 60_000);
  const chosen = random.fork("services");
  const services = asked ?? (cells > 1 && chosen.chance(0.3) ? (chosen.chance(0.3) ? 3 : 2) : 1);
  const servers = Math.max(1, Math.min(3, Math.ceil(hosts / 4)));
  const steps: HistoryStep[] = [];
  for (let cell = 1; cell <= cells; cell += 1) {
    const budgetMiB = (hosts * memoryMiB * share) / cells;
    steps.push(...changesOf(`c${cell}`, random.fork(`cell ${cell}`), { untilMs, budgetMiB, hosts }));
  }
  if (faults.length > 0)
    steps.push(
      ...faultsOf(random.fork("faults"), {
        untilMs,
        hosts,
        servers,
        cells,
        services,
        faults,
        agentsLose: random.fork("stores").chance(0.5),
      }),
    );
  steps.sort((a, b) => a.atMs - b.atMs);
  steps.push(...wordsOf(steps, random.fork("operator")));
  withOtherCells(steps, random.fork("other cells"), { cells, services, untilMs });
  withGroups(steps, random.fork("groups"), { cells, untilMs });
  const isAdministered = faults.includes("administration");
  // Of a store that was lost a person says what becomes of what it knew.
  if (!isAdministered && !triesHa(faults) && !faults.includes("store")) {
    withHarvest(steps, random.fork("harvest"), { cells, services, untilMs });
    steps.sort((a, b) => a.atMs - b.atMs);
  }
  const administered = isAdministered
    ? withAdministration(steps, random.fork("administration"), { hosts, cells, untilMs })
    : steps;
  const isRooted = isAdministered || triesHa(faults);
  const isOwn = triesHa(faults) && random.fork("own VM").chance(0.5);
  const all = triesHa(faults)
    ? [...withHa(administered, random.fork("ha"), { hosts, cells, untilMs, faults, isAdministered, isOwn })]
    : [...administered];
  const patches = random.fork("patches");
  all.forEach((step, index) => {
    const [verb, cell = ""] = step.words;
    // Of the root cell its administration has a part.
    if (verb === "apply" && cell !== "root" && patches.chance(0.3))
      all[index] = { ...step, words: ["patch", ...step.words.slice(1)] };
  });
  const modes = isRooted ? {} : withModes(all, random.fork("modes"), { hosts, cells, untilMs, faults });
  all.sort((a, b) => a.atMs - b.atMs);
  const slices = random.fork("slices").chance(0.4);
  const operator = faults.includes("store");
  const haManagers = ha && cells > 1 && random.fork("HA Managers").chance(0.3) ? { haManagers: 2 } : {};
  const are = {
    operator,
    ha,
    ...haManagers,
    slices,
    ...(isRooted ? { root: true as const } : {}),
    ...(isOwn ? { own: true as const } : {}),
    ...modes,
  };
  return { hosts, servers, cells, services, seed, memoryMiB, ...are, untilMs, steps: all };
};

/** The operator sees to some of the hosts that lost their power, and says so. */
const wordsOf = (steps: readonly HistoryStep[], random: Random): readonly HistoryStep[] =>
  steps.flatMap(({ atMs, words: [verb, machine = ""] }) =>
    verb === "power-off" && machine.startsWith("h") && random.chance(0.6)
      ? [{ atMs: atMs + random.between(100, 4000), words: ["dead", machine] }]
      : [],
  );

interface Frame {
  readonly untilMs: number;
  readonly budgetMiB: number;
  readonly hosts: number;
}

const machineOf = (cell: string, number: number, random: Random): MachineText => ({
  name: `${cell.replace("c", "m")}x${number}`,
  memoryMiB: random.pick([64, 128, 256, 384]),
  off: random.chance(0.1),
  data: random.chance(0.3),
  live: random.chance(0.3),
  once: random.chance(0.1),
  apart: null,
  ...(random.fork(`scratch ${number}`).chance(0.2) ? { scratch: true as const } : {}),
});
const takenMiB = (machines: readonly MachineText[]): number =>
  machines.reduce((sum, { memoryMiB: own }) => sum + own + machineShares(own) * overheadMiB, 0);

const changesOf = (cell: string, random: Random, { untilMs, budgetMiB, hosts }: Frame): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [];
  let next = 0;
  const grow = (machines: readonly MachineText[], by: number): readonly MachineText[] => {
    const grown = [...machines];
    for (let more = 0; more < by; more += 1) {
      next += 1;
      const machine = machineOf(cell, next, random);
      const other = grown[random.between(0, Math.max(0, grown.length - 1))];
      // Only a few are kept apart, so that there is always a host for them.
      const apart = other !== undefined && hosts > 3 && random.chance(0.15) ? other.name : null;
      if (takenMiB([...grown, machine]) <= budgetMiB) grown.push({ ...machine, apart });
    }
    return grown;
  };
  const allOrNone = random.chance(0.25);
  const isStill = random.fork("still").chance(0.2);
  const startsPerMinute = random.fork("starts");
  // With ten minutes saved up: more than are needed to come to rest in time, and few enough to be counted.
  const limits = startsPerMinute.chance(0.4) ? { limits: { vmStartsPerMinute: startsPerMinute.between(3, 6) } } : {};
  const first = grow([], random.between(1, 6));
  let text: CellText | null = { machines: first, rules: [], allOrNone };
  for (let atMs = random.between(50, 1500); atMs < untilMs; atMs += random.between(500, 2 * changeEveryMs)) {
    const what =
      text === null ? `delete ${cell}` : `apply ${cell} ${formatCell({ ...withRules(text, random), ...limits })}`;
    steps.push({ atMs, words: what.trim().split(" ") });
    // Some are left as they are: nothing of them may ever be stopped.
    if (isStill) break;
    text = changed(text ?? { machines: grow([], 2), rules: [], allOrNone }, random, grow);
  }
  return steps;
};

const changed = (
  text: CellText,
  random: Random,
  grow: (machines: readonly MachineText[], by: number) => readonly MachineText[],
): CellText | null => {
  const { machines } = text;
  const at = random.between(0, Math.max(0, machines.length - 1));
  const replace = (change: (machine: MachineText) => MachineText): CellText => ({
    ...text,
    machines: machines.map((machine, index) => (index === at ? change(machine) : machine)),
  });
  const gone = machines[at]?.name;
  switch (random.between(0, 9)) {
    case 0:
      return null;
    case 1:
    case 2:
      return replace((machine) => ({ ...machine, off: !machine.off }));
    case 3:
      return replace((machine) => ({ ...machine, memoryMiB: machine.memoryMiB === 64 ? 128 : 64 }));
    case 4:
      return replace((machine) => ({ ...machine, data: !machine.data }));
    case 5:
    case 6:
      return {
        ...text,
        machines: machines
          .filter(({ name }) => name !== gone)
          .map((machine) => (machine.apart === gone ? { ...machine, apart: null } : machine)),
      };
    default:
      return { ...text, machines: grow(machines, random.between(1, 3)) };
  }
};

/** Some machines may reach some others. */
const withRules = (text: CellText, random: Random): CellText => {
  const { machines } = text;
  const rules = machines.flatMap((from, index) => {
    const to = machines[(index + 1) % machines.length];
    return to === undefined || to === from || random.chance(0.4)
      ? []
      : [{ from: from.name, to: to.name, port: random.pick([80, 443]) }];
  });
  return { ...text, rules };
};

interface Places {
  readonly untilMs: number;
  readonly hosts: number;
  readonly servers: number;
  readonly cells: number;
  readonly services: number;
  readonly faults: readonly FaultKind[];
  /** Storage servers lose their stores, and Storage Managers do not. */
  readonly agentsLose: boolean;
}

const faultsOf = (random: Random, places: Places): readonly HistoryStep[] => {
  const steps: HistoryStep[] = [];
  for (let atMs = random.between(200, 3000); atMs < places.untilMs; atMs += random.between(50, 2 * faultEveryMs)) {
    const words = fault(random, random.pick(places.faults), places);
    steps.push({ atMs, words: words.split(" ") });
  }
  return steps;
};

const numbered = (prefix: string, count: number, random: Random): string => `${prefix}${random.between(1, count)}`;

/** A process, the hosts' and controllers' more often than the few others. */
const processOf = (random: Random, { hosts, servers, cells, services }: Places): string =>
  random.pick([
    numbered("host.h", hosts, random),
    numbered("host.h", hosts, random),
    numbered("agent.s", servers, random),
    numbered("controller.c", cells, random),
    numbered("controller.c", cells, random),
    random.pick([...several(services), "address-manager", "dns-manager"]),
    numbered("presence.", hosts < 3 ? 1 : 3, random),
  ]);
const several = (services: number): readonly string[] =>
  Array.from({ length: services }, (_, index) =>
    ["storage-manager", "placer"].map((name) => (index === 0 ? name : `${name}.${index + 1}`)),
  ).flat();
const machineName = (process: string): string => process.replace(/^(host|agent)\./, "");

/**
 * A copy now and then, and a store that is lost, or as it was then; or the two are exchanged, so that the newer one may come back
 * after the older one has gone on. Of one history either Storage Managers lose theirs or storage servers do: who knows of a
 * volume whose controller is silent is one of each, and where both have forgotten it its file is found by nobody.
 */
const storeFault = (random: Random, places: Places, forMs: number): string => {
  const { hosts, servers, cells, services, agentsLose } = places;
  const cell = numbered("c", cells, random);
  const process = random.pick([
    numbered("host.h", hosts, random),
    numbered("presence.", hosts < 3 ? 1 : 3, random),
    agentsLose
      ? numbered("agent.s", servers, random)
      : numbered("storage-manager.", services, random).replace(".1", ""),
    `controller.${random.pick([cell, cell, `k.${cell}`])}`,
    random.pick(["placer", "dns-manager", "directory", "address-manager", "cell-manager"]),
  ]);
  const verb = random.pick(["copy", "copy", "copy", "lose", "put-back", "exchange"]);
  return verb === "copy" ? `copy ${process}` : `${verb} ${process} for ${random.chance(0.2) ? 9000 : forMs}`;
};

/** From a few to half of all hosts, by one cause. */
const stormFault = (random: Random, { hosts }: Places): string => {
  const all = Array.from({ length: hosts }, (_, at) => `h${at + 1}`);
  const lost = new Set<string>();
  const most = Math.max(2, Math.min(hosts - 1, random.between(2, Math.ceil(hosts / 2))));
  while (lost.size < Math.min(hosts, most)) lost.add(random.pick(all));
  const how = random.pick(["cut", "isolate", "power-off", "power-off"]);
  return `storm ${[...lost].join(",")} ${how} for ${random.between(12_000, 45_000)}`;
};

/** Its Host Manager stands still for longer than the watchdog waits, or cannot end what it runs while nobody hears it; or the watchdog does nothing. */
const watchdogFault = (random: Random, host: string): string => {
  const forMs = random.between(8000, 30_000);
  switch (random.between(0, 3)) {
    case 0:
      return `watchdog ${host} dead for ${forMs}`;
    case 1:
      return `driver ${host} stuck for ${forMs}`;
    case 2:
      return `cut ${host} * for ${forMs}`;
    default:
      return `pause host.${host} for ${forMs}`;
  }
};

const fault = (random: Random, kind: FaultKind, places: Places): string => {
  const process = processOf(random, places);
  const shortMs = random.between(50, 4000);
  const longMs = random.between(500, 25_000);
  switch (kind) {
    case "partition": {
      const other = random.chance(0.3) ? "*" : machineName(processOf(random, places));
      const machine = machineName(process);
      const target = other === machine ? "*" : other;
      return `cut ${machine} ${target}${random.chance(0.4) ? " one-way" : ""} for ${longMs}`;
    }
    case "crash": {
      if (random.chance(0.2)) {
        const machine = random.chance(0.7)
          ? numbered("h", places.hosts, random)
          : numbered("s", places.servers, random);
        return `power-off ${machine} for ${longMs}`;
      }
      const point = random.pick(["", " before-commit", " after-commit", " between-sends"]);
      return `crash ${process}${point} for ${shortMs}`;
    }
    case "pause":
      return `pause ${process} for ${longMs}`;
    case "disk":
      return random.chance(0.2)
        ? `server ${numbered("s", places.servers, random)} ${random.pick(["slow", "full"])} for ${longMs}`
        : `disk ${process} ${random.pick(["slow", "slow", "full", "failing"])} for ${longMs}`;
    case "clock":
      return `clock ${process} ${random.pick([-3_600_000, -5000, 5000, 3_600_000])}`;
    case "packet":
      return random.chance(0.5)
        ? `loss ${random.between(1, 30)} for ${longMs}`
        : `delay ${random.between(5, 400)} for ${longMs}`;
    case "guest": {
      const path = `${numbered("c", places.cells, random)}`;
      const name = `${path}/${path.replace("c", "m")}x${random.between(1, 6)}`;
      return random.chance(0.2)
        ? `kill-export ${name}Disk`
        : `vm ${name} ${random.pick(["crashed", "exited", "hang"])} for ${longMs}`;
    }
    case "isolate":
      return `isolate ${numbered("h", places.hosts, random)} for ${longMs}`;
    case "heartbeat":
      return `cut ${numbered("h", places.hosts, random)} ${numbered("s", places.servers, random)} for ${longMs}`;
    case "power": {
      const host = numbered("h", places.hosts, random);
      return random.chance(0.4)
        ? `power-off ${host} for ${longMs}`
        : `controller ${host} ${random.pick(["works", "works", "dead", "slow", "deaf", "other", "again"])} for ${20_000 + longMs}`;
    }
    case "storm":
      return stormFault(random, places);
    case "poison": {
      const cell = `c${random.between(1, places.cells)}`;
      return `poison ${cell}/${cell.replace("c", "m")}x${random.between(1, 4)} for ${20_000 + 3 * longMs}`;
    }
    case "watchdog":
      return watchdogFault(random, numbered("h", places.hosts, random));
    case "store":
      return storeFault(random, places, shortMs);
    case "administration":
      return `${random.pick(["crash", "pause"])} ${random.pick(["tenancy", "tenancy", "placer", "controller.c1"])} for ${shortMs}`;
    case "driver":
      return `driver ${numbered("h", places.hosts, random)} ${random.pick(["network", "hypervisor"])} for ${longMs}`;
  }
};
