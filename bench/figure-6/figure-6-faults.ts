import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../cli/connection/client.ts";
import type { Testbed } from "../../testbed/harness.ts";
import { freezeMachine, vmState } from "../../testbed/management/self-hosted.testing.ts";
import type { TimeLine } from "./time-line.ts";
import { cellOf, type PowerCut, type Spell } from "./trace.ts";

/** What a fault is done to. */
export interface Scene {
  readonly testbed: Testbed;
  readonly client: Client;
  readonly line: TimeLine;
  /** The VMs that answer now. */
  readonly answering: readonly Spell[];
  readonly darkMs: number;
  readonly patienceMs: number;
}
/** When it was done and when it was over. Milliseconds since 1970. */
export interface Happened {
  readonly atMs: number;
  /** A killed service answers again, or a host has power again. */
  readonly endMs: number | null;
  /** A host was declared dead, or a VM was found to be silent. */
  readonly declaredMs: number | null;
  /** When it was certain that the last of a lost host's VMs writes no more, so that they may start elsewhere. */
  readonly overMs: number | null;
  readonly cuts: readonly PowerCut[];
}
export type Fault = (scene: Scene) => Promise<Happened>;

/** Ends the controller's process; who watches it starts it again. */
export const killedController =
  (cell: string): Fault =>
  async ({ testbed, line, patienceMs }) => {
    const name = `controller.${cell}`;
    const atMs = Date.now();
    await testbed.kill(name);
    const answers = await line.event(
      `${name} answers again`,
      atMs,
      ({ event, fields }) => event === "service/answers" && fields.peer === name,
      patienceMs,
    );
    return { atMs, endMs: Date.parse(answers.time), declaredMs: null, overMs: null, cuts: [] };
  };

/** The VM that the controller runs in goes on and does nothing any more: nothing has ended, and its liveness alone tells. */
export const frozenController =
  (cell: string): Fault =>
  async ({ testbed, client, line, patienceMs }) => {
    const vm = `root/controllers/${cell}/vm`;
    const { host, uid } = await vmState(testbed, vm);
    const atMs = Date.now();
    await freezeMachine(testbed, host, uid);
    const silent = await line.event(
      `${vm} is found silent`,
      atMs,
      ({ event, path, fields }) => event === "machine/health" && path === vm && fields.what !== "answering",
      patienceMs,
    );
    for (const end = atMs + patienceMs; ; await sleep(250)) {
      const isThere = await client.model(cell, cell, false).then(
        () => true,
        () => false,
      );
      if (isThere) break;
      if (Date.now() > end) throw new Error(`the controller of ${cell} does not answer again`);
    }
    return { atMs, endMs: Date.now(), declaredMs: Date.parse(silent.time), overMs: null, cuts: [] };
  };

/** Of the hosts with VMs of most cells, the one with the most VMs; ties by name. */
export function hostToLose(answering: readonly Spell[], cells: readonly string[]): string {
  const hosts = [...new Set(answering.map(({ host }) => host))].sort();
  const worth = (host: string): number => {
    const own = answering.filter((spell) => spell.host === host);
    const hit = cells.filter((cell) => own.some(({ vm }) => cellOf(vm) === cell)).length;
    return hit * 1000 + own.length;
  };
  const [first] = hosts.toSorted((a, b) => worth(b) - worth(a));
  if (first === undefined) throw new Error("no VM answers, so no host has one to lose");
  return first;
}

/**
 * Every process of a host but the one that holds its namespaces. The Host Manager is ended by its supervisor, which must not
 * start it again; the script finds the others by their network namespace and leaves itself out by its own.
 */
const endProcesses = `own=$(readlink /proc/self/ns/net)
for p in /proc/[0-9]*; do
  test "$(readlink $p/ns/net 2>/dev/null)" = "$own" || continue
  case "$(cat $p/comm 2>/dev/null)" in qemu-*|node|MainThread) kill -9 \${p#/proc/} 2>/dev/null && echo killed ;; esac
done
true`;

async function cutPower(testbed: Testbed, host: string): Promise<void> {
  const ran = async (command: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await testbed.exec(host, command);
    if (code !== 0) throw new Error(`${host}: ${command[0]} ended with ${code}: ${stderr.trim()}`);
    return stdout;
  };
  // First the link: what dies says no goodbye to anybody.
  await ran(["ip", "link", "set", "eth0", "down"]);
  await testbed.kill(host, "SIGSTOP");
  const stopped = testbed.stop(host);
  await testbed.kill(host, "SIGKILL").catch(() => undefined);
  await stopped;
  if (!(await ran(["sh", "-c", endProcesses])).includes("killed"))
    throw new Error(`${host} had no machine to lose when its power was cut`);
  for (const end = Date.now() + 10_000; (await ran(["sh", "-c", endProcesses])) !== ""; await sleep(100))
    if (Date.now() > end) throw new Error(`something on ${host} does not end`);
}

/** Resolves with the moment at which the last of so many VMs was fenced. */
const fenced = (line: TimeLine, count: number, sinceMs: number, patienceMs: number): Promise<number> =>
  line.until(
    `${count} VMs are fenced`,
    () => {
      const ends = line
        .events()
        .filter(({ event, time }) => event === "ha/over" && Date.parse(time) >= sinceMs)
        .map(({ time }) => Date.parse(time))
        .sort((a, b) => a - b);
      return ends[count - 1] ?? null;
    },
    patienceMs,
  );

/** A host is without power for a while, its VMs with it, and nobody says anything of it; later it comes back. */
export const hostFault =
  (cells: readonly string[]): Fault =>
  async ({ testbed, line, answering, darkMs, patienceMs }) => {
    const host = hostToLose(answering, cells);
    const atMs = Date.now();
    await cutPower(testbed, host);
    const declared = await line.event(
      `${host} is declared dead`,
      atMs,
      ({ event, fields }) => event === "presence/declared" && fields.host === host,
      patienceMs,
    );
    const lost = answering.filter((spell) => spell.host === host).length;
    const overMs = await fenced(line, lost, atMs, patienceMs);
    await sleep(Math.max(0, atMs + darkMs - Date.now()));
    const endMs = Date.now();
    const { code, stderr } = await testbed.exec(host, ["ip", "link", "set", "eth0", "up"]);
    if (code !== 0) throw new Error(`the link of ${host} does not come up: ${stderr.trim()}`);
    await testbed.start(host);
    return { atMs, endMs, declaredMs: Date.parse(declared.time), overMs, cuts: [{ host, atMs }] };
  };
