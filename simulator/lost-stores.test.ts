import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ServiceRole, serviceRoles } from "../core/documents/service-roles.ts";
import { type RunResult, runHistory } from "./run.ts";
import { parseHistory } from "./world/history.ts";

/**
 * Every kind of service loses its store, blank or put back from an older copy, while VMs run that write to their volumes. No
 * file of a volume goes, and no VM ends; and where what the service knows follows from what others say, everything is as its
 * users want it afterwards, without anybody's help. A new role is a line in this table, or the first test fails.
 */
interface Loser {
  /** Of the process in the simulated installation. */
  readonly process: string;
  /** What it knows follows from what others say: it finds back by itself. */
  readonly findsBack: boolean;
}
type Elsewhere = { readonly why: string };

const losers: Readonly<Record<ServiceRole | "host" | "agent", Loser | Elsewhere>> = {
  controller: { process: "controller.c1", findsBack: false },
  "storage-manager": { process: "storage-manager", findsBack: true },
  "address-manager": { process: "address-manager", findsBack: true },
  "dns-manager": { process: "dns-manager", findsBack: true },
  placer: { process: "placer", findsBack: true },
  presence: { process: "presence.1", findsBack: true },
  directory: { process: "directory", findsBack: true },
  "cell-manager": { process: "cell-manager", findsBack: true },
  "ha-manager": { process: "ha-manager", findsBack: true },
  host: { process: "host.h1", findsBack: true },
  // Whose rights were taken back since is for a person to say.
  tenancy: { process: "tenancy", findsBack: false },
  // Which of its files are whole is for a person to say.
  agent: { process: "agent.s1", findsBack: false },
  authority: {
    why: "it is not simulated: core/identity/authority/beside.test.ts and runtime/identity/authority/store-lost.test.ts take its store away or put an older one back",
  },
  // In histories whose cell is on a mode. Hosts keep their views until a person lets its store count, and sets its configuration again.
  "network-view-manager": { process: "network-view-manager", findsBack: false },
  gateway: { why: "it desires nothing of anybody and is nobody's receiver" },
  "personality.caas": {
    why: "it has no part in state distribution, and its truth is in the model of the primary cell",
  },
};

const first = "vm:a:128:data vm:b:128 rule:a>b:80";
const second = `${first} vm:c:128:data`;
/** A copy is made, then something new comes, of which the copy does not know; then the store is as `loss` makes it. */
const historyOf = (process: string, loss: string, seed: number) => {
  const isOfModes = process === "network-view-manager";
  // There rules are about subnets, in which machines are by turns.
  const inMode = (text: string): string => (isOfModes ? text.replace("rule:a>b", "rule:net0>net1") : text);
  return parseHistory(`
    hosts 3
    servers 2
    cells 1
    seed ${seed}
    ha ${process === "ha-manager" ? 1 : 0}
    edge ${isOfModes ? 1 : 0}
    at 100 apply c1 ${inMode(first)}
    at 5000 visit c1 ann
    at 12000 copy ${process}
    at 12500 apply c1 ${inMode(second)}
    at 25000 ${loss}
    at 40000 crash host.h2 for 500
    at 42000 crash agent.s2 for 500
    at 44000 crash controller.c1 for 500
    until 60000`);
};

const losses = {
  lost: (process: string) => `lose ${process} for 200`,
  "blank, after a while": (process: string) => `lose ${process} for 9000`,
  older: (process: string) => `put-back ${process} for 200`,
} as const;

const heldOf = ({ checked }: RunResult): number => checked.find(({ number }) => number === 88)?.held ?? 0;

test("every role is in the table, and hosts and agents are", () => {
  const named = Object.keys(losers).sort();
  assert.deepEqual(named, [...Object.keys(serviceRoles), "agent", "host"].sort());
});

describe("a lost store destroys nothing", () => {
  for (const [role, loser] of Object.entries(losers)) {
    if (!("process" in loser)) continue;
    for (const [how, loss] of Object.entries(losses)) {
      test(`${role}: ${how}`, async () => {
        for (let seed = 1; seed <= 2; seed += 1) {
          const history = historyOf(loser.process, loss(loser.process), seed);
          const result = await runHistory(history, { keepLog: true, mustSettle: loser.findsBack });
          assert.deepEqual(result.faults, [], `seed ${seed}`);
          assert.equal(heldOf(result), 3, "three VMs ran when the store was lost");
          const ended = result.log.split("\n").filter((line) => / machine\.\S+ ended /.test(line));
          assert.deepEqual(ended, [], `seed ${seed}: no VM ends`);
        }
      });
    }
  }
});

/** Of all that `disaster` takes the copies are older than the newest VM, whose volumes are still on the servers. */
test("all machines but the storage servers are lost: what the backup has comes back with its data, and what is new meets nobody", async () => {
  for (let seed = 1; seed <= 4; seed += 1) {
    const history = parseHistory(`
      hosts 3
      servers 2
      cells 1
      seed ${seed}
      at 100 apply c1 ${first}
      at 12000 copy controller.c1
      at 12000 copy cell-manager
      at 12000 copy address-manager
      at 12500 apply c1 ${second}
      at 25000 disaster for 500
      at 36000 apply c1 ${first} vm:d:128:data vm:c:128:data
      until 60000`);
    const result = await runHistory(history, { keepLog: true, mustSettle: true });
    assert.deepEqual(result.faults, [], `seed ${seed}`);
    const files = /\bvolume\/deleted\b/.exec(result.log);
    assert.equal(files, null, "no file of a volume goes");
  }
});

/** What `disaster` leaves: a host with its machines, of which its operator has not said that it is gone. */
interface Survival {
  readonly host: string;
  /** A VM has moved to another host since the copies were made. */
  readonly moved: boolean;
  /** It hears nobody at first, nor does anybody hear it. */
  readonly cutForMs: number;
}
const survivals: readonly Survival[] = ["h2", "h3"].flatMap((host) =>
  [false, true].flatMap((moved) => [0, 5000].map((cutForMs) => ({ host, moved, cutForMs }))),
);

/** Machines by VM, as the log has them come and go; `twice`: those that started while another incarnation ran. */
const machinesIn = (log: string) => {
  const running = new Map<string, string[]>();
  const twice: string[] = [];
  for (const line of log.split("\n")) {
    const [, host, verb, fields] = / machine\.(\S+) (started|ended) (.*)$/.exec(line) ?? [];
    if (fields === undefined) continue;
    const { vm, incarnation } = JSON.parse(fields) as { readonly vm: string; readonly incarnation: number };
    const there = running.get(vm) ?? [];
    if (verb === "started" && there.length > 0) twice.push(line);
    const name = `${host}@${incarnation}`;
    running.set(vm, verb === "started" ? [...there, name] : there.filter((each) => each !== name));
  }
  return { running, twice };
};

test("a host of then lives on, and nobody said that it is gone: what it runs goes on, and nothing starts twice", async () => {
  for (const { host, moved, cutForMs } of survivals) {
    const what = JSON.stringify({ host, moved, cutForMs });
    const history = parseHistory(`
      hosts 3
      servers 2
      cells 1
      seed 2
      at 100 apply c1 ${first} vm:d:64
      at 12000 copy controller.c1
      at 12000 copy cell-manager
      at 12000 copy address-manager
      ${moved ? "at 12100 power-off h1 for 11000\nat 20000 dead h1" : ""}
      ${cutForMs > 0 ? `at 30000 cut ${host} * for ${cutForMs}` : ""}
      at 30000 disaster ${host} for 500
      until 60000`);
    const { faults, log } = await runHistory(history, { keepLog: true, mustSettle: false });
    assert.deepEqual(faults, [], what);
    const until = log.split("\n").findIndex((line) => / history disaster /.test(line));
    const before = machinesIn(log.split("\n").slice(0, until).join("\n")).running;
    const again = [...before.values()].flat().filter((each) => !each.endsWith("@1"));
    assert.deepEqual(again, moved ? ["h2@2"] : [], `${what}: whether one has moved since the copies`);
    const { running, twice } = machinesIn(log);
    assert.deepEqual(twice, [], what);
    for (const [vm, there] of before)
      for (const each of there)
        if (each.startsWith(`${host}@`)) assert.deepEqual(running.get(vm), [each], `${what}: ${vm} goes on`);
    const others = [...running.values()].filter((there) => !there.some((each) => each.startsWith(`${host}@1`)));
    assert.ok(before.size === 3 && others.every((there) => there.length === 1), `${what}: the others are back`);
  }
});
