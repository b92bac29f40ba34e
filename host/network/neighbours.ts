import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import {
  type ActualProbe,
  type DesiredProbe,
  type MachineAnswers,
  type ProbedMachine,
  probeKey,
} from "../../core/documents/ha.ts";
import { desiredProbe } from "../../core/documents/readers/ha.ts";
import { actualKey } from "../../core/documents/vocabulary.ts";
import { toJson } from "../../core/outbox.ts";
import { hostName, type Mac, mac, type PeerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { AsksElsewhere } from "../drivers/network/driver.ts";
import type { HostState } from "../known.ts";

/**
 * Whether other hosts answer on the underlay, asked for the HA Manager. The kernel puts the question: an entry of its table of
 * neighbours that is set to `probe` (ip-neighbour(8)) is verified at once by ARP requests to that very MAC, and is `REACHABLE`
 * when it was answered. No tool beside `ip` is needed, and nothing of Cells has to run at the host that is asked. Machines there are asked in the
 * same round, by the dataplanes of both hosts.
 */
const run = promisify(execFile);
/** What `ip` prints, with these arguments. */
export type Ip = (args: readonly string[]) => Promise<string>;
const here: Ip = async (args) => (await run("ip", [...args])).stdout;
const everyMs = 2_000;
/** The second question follows at once: whoever waits for the answers waits for two (`core/ha/probes.ts`). */
const secondMs = 200;
/** The kernel asks three times, a second apart; a machine that runs answers the first. */
const answerMs = 1_200;

/** @returns the MAC that has answered; null: nobody has. Rejects where the kernel cannot be asked. */
export async function askNeighbour(
  { address, mac: at }: Pick<DesiredProbe, "address" | "mac">,
  device: string,
  ip: Ip = here,
): Promise<Mac | null> {
  await ip(["neigh", "replace", address, "lladdr", at, "dev", device, "nud", "probe"]);
  await sleep(answerMs);
  const stdout = await ip(["-j", "neigh", "show", "to", address, "dev", device]);
  const [entry] = JSON.parse(stdout === "" ? "[]" : stdout) as {
    readonly lladdr?: string;
    readonly state?: string[];
  }[];
  return entry?.state?.includes("REACHABLE") === true && entry.lladdr !== undefined ? mac(entry.lladdr) : null;
}

/** @returns those that have answered, from that very host */
export async function askMachines(
  { mac: at, machines = [] }: Pick<DesiredProbe, "mac" | "machines">,
  network: AsksElsewhere,
): Promise<readonly Uid[]> {
  const answers = await Promise.all(
    machines.map(({ address }) => network.ask({ address, mac: at }, answerMs).catch(() => false)),
  );
  return machines.flatMap(({ vm }, index) => (answers[index] === true ? [vm] : []));
}

export interface Neighbours {
  readonly take: (wanted: readonly DesiredProbe[]) => void;
  /** Whom to tell what came back; the service may begin after it has said what is wanted. */
  readonly tell: (request: (request: Json) => Promise<Json>) => void;
  readonly stop: () => void;
}
/** What came back of one round. */
export interface CameBack {
  /** From which the host has answered; null: it has not. */
  readonly mac: Mac | null;
  /** Which of its machines have. Absent: none. */
  readonly machines?: readonly Uid[];
}
/** One round, and which machines were asked in it. */
export interface Round extends CameBack {
  readonly asked: readonly Uid[];
}
export type Ask = (wanted: DesiredProbe) => Promise<CameBack>;
const machinesOf = ({ machines = [] }: DesiredProbe): readonly Uid[] => machines.map(({ vm }) => vm);

/** Asks those that are wanted, again and again, and tells the service what came back. */
export function createNeighbours(
  ask: Ask,
  pause: (ms: number) => Promise<unknown> = (ms) => sleep(ms, undefined, { ref: false }),
): Neighbours {
  const rounds = new Map<string, { wanted: DesiredProbe }>();
  let to: ((request: Json) => Promise<Json>) | null = null;
  let stopped = false;
  const go = async (host: string, round: { wanted: DesiredProbe }): Promise<void> => {
    for (let asked = 1; !stopped && rounds.get(host) === round; asked += 1) {
      const { wanted } = round;
      const back = await ask(wanted).catch((): CameBack => ({ mac: null }));
      if (stopped || rounds.get(host) !== round) return;
      const said: Round = { ...back, asked: machinesOf(wanted) };
      await to?.(toJson({ kind: "probed", host, ...said })).catch(() => undefined);
      // Whoever has machines asked in turns says which come next when it has heard of these.
      const isSame = (): boolean => machinesOf(round.wanted).join(" ") === said.asked.join(" ");
      for (let ms = 0; ms < (asked === 1 ? secondMs : everyMs) && (ms === 0 || isSame()); ms += secondMs)
        await pause(secondMs);
    }
  };
  return {
    take: (wanted) => {
      const names = new Set<string>(wanted.map(({ host }) => host));
      for (const host of [...rounds.keys()]) if (!names.has(host)) rounds.delete(host);
      for (const each of wanted) {
        const known = rounds.get(each.host);
        if (known !== undefined) known.wanted = each;
        else {
          const round = { wanted: each };
          rounds.set(each.host, round);
          void go(each.host, round);
        }
      }
    },
    tell: (request) => {
      to = request;
    },
    stop: () => {
      stopped = true;
    },
  };
}

// --- the service's part ------------------------------------------------------------------------------------------------

type OnProbes = (wanted: readonly DesiredProbe[]) => void;

/** @returns whether others may want to know, or why the document is refused */
export function takeProbeDesire(
  { probes }: HostState,
  { from, name, value }: { readonly from: PeerName; readonly name: string; readonly value: Json },
  onProbes: OnProbes = () => undefined,
): boolean | string {
  const host = hostName(name);
  const wanted = desiredProbe.of(value, host);
  if (value !== null && wanted === null) return "it is malformed, or about another host than its key";
  const askers = probes.get(host) ?? new Map<PeerName, Probe>();
  // What came back before is no answer to who asks now, and whoever waits for two questions has them at once.
  const isOneMore = wanted !== null && askers.size > 0 && !askers.has(from);
  if (wanted === null) askers.delete(from);
  else askers.set(from, { wanted, said: askers.get(from)?.said ?? nothingYet(wanted) });
  if (askers.size === 0) probes.delete(host);
  else probes.set(host, askers);
  const all = [...probes.values()].flatMap(together);
  if (isOneMore) onProbes(all.filter((each) => each.host !== host));
  onProbes(all);
  return true;
}
interface Probe {
  readonly wanted: DesiredProbe;
  readonly said: ActualProbe;
}
/** Where the last one who asks says that the host is, with the machines of all who do. */
function together(askers: ReadonlyMap<PeerName, Probe>): readonly DesiredProbe[] {
  const wanted = [...askers.values()].map((each) => each.wanted);
  const machines = new Map<string, ProbedMachine>();
  for (const each of wanted.flatMap((one) => one.machines ?? [])) machines.set(`${each.vm} ${each.address}`, each);
  return wanted.slice(-1).map((last) => (machines.size === 0 ? last : { ...last, machines: [...machines.values()] }));
}
const nothingYet = ({ host }: DesiredProbe): ActualProbe => ({ host, asked: 0, answered: 0, mac: null });

/** One question was put, and this came back. Of a machine that is wanted only since then nothing is said. */
export function takeProbed(
  state: HostState,
  host: string,
  { mac: answer, machines = [], asked: asking }: Round,
): boolean {
  const askers = state.probes.get(hostName(host));
  if (askers === undefined) return false;
  const came = answer === null ? 0 : 1;
  const answeredNow = new Set(machines);
  const askedNow = new Set(asking);
  for (const [peer, { wanted, said }] of askers) {
    const { asked, answered, mac: before } = said;
    const counted = machinesOf(wanted).flatMap((vm): readonly MachineAnswers[] => {
      const so = said.machines?.find((each) => each.vm === vm)?.answered;
      if (so === undefined && !askedNow.has(vm)) return [];
      return [{ vm, answered: (so ?? 0) + (answeredNow.has(vm) ? 1 : 0) }];
    });
    const ofHost = { host: said.host, asked: asked + 1, answered: answered + came, mac: answer ?? before };
    askers.set(peer, { wanted, said: counted.length === 0 ? ofHost : { ...ofHost, machines: counted } });
  }
  return true;
}

export const probesSaid = ({ probes }: Pick<HostState, "probes">): readonly (readonly [key: string, said: Json])[] =>
  [...probes].flatMap(([host, askers]) =>
    [...askers].map(([peer, { said }]) => [actualKey(peer, probeKey(host)), toJson(said)] as const),
  );
