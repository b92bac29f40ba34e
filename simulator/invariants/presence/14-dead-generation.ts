import { peerName } from "../../../model/cell/identifiers.ts";
import type { Installation } from "../../world/installation.ts";
import type { Invariant, Verdict, View } from "../invariant.ts";

/** For whoever was told: from the declared death to the retraction (decision 28 measures it against this goal). */
const boundMs = 3000;
const lookEveryMs = 500;

/**
 * Two ways for a generation to be over. A source that starts again: what it does not say any more is nowhere at rest. And a
 * host that is declared dead: whoever is told has nothing of it any more, 3 s later and from then on, and at rest nobody has.
 */
export const deadGeneration: Invariant = {
  number: 14,
  title: "a dead generation's state vanishes everywhere and stays away",
  watch: (view, verdict) => {
    const { installation } = view;
    const deaths = watchDeaths(view, verdict);
    return () => {
      deaths();
      for (const { name, distribution } of installation.processes.values()) {
        for (const [peer, { actual }] of distribution?.targets ?? []) {
          const source = installation.processes.get(peer);
          const said = source?.distribution?.published;
          if (source === undefined || said === undefined || source.starts < 2) continue;
          for (const key of actual.keys())
            verdict.check(said.has(key), () => `${name} still has ${key} of ${peer}, which does not say so any more`);
        }
      }
    };
  },
};

interface Heard {
  readonly who: string;
  readonly peer: string;
  readonly life: number;
  readonly atMs: number;
  counted: boolean;
}

/**
 * Host → generation of its source → its life and when it was first said, by what it says when it connects. The one does not
 * follow from the other: a host without its store says lives again that are over, in later generations.
 */
type Lives = Map<string, Map<number, { readonly life: number; readonly sinceMs: number }>>;

/**
 * What `who` still has of a life of `peer` that is over, as a sentence.
 * @param over host and life → when anybody first heard that it is over
 */
const leftOver = (
  { installation, lives, over }: { installation: Installation; lives: Lives; over: ReadonlyMap<string, number> },
  who: string,
  peer: string,
  life: number,
): string | null => {
  const known = lives.get(peer);
  // What began when that life was over is not of it, whatever number it has.
  const endedMs = over.get(`${peer} ${life}`) ?? Number.POSITIVE_INFINITY;
  const isOver = (generation: number): boolean => {
    const own = known?.get(generation);
    return own !== undefined && own.life <= life && own.sinceMs < endedMs;
  };
  const newest = Math.max(-1, ...[...(known?.keys() ?? [])].filter(isOver));
  const target = [...(distributionOf(installation, who)?.targets ?? [])].find(([name]) => name === peer)?.[1];
  for (const [key, { generation }] of target?.actual ?? [])
    if (known?.has(generation) === true ? isOver(generation) : generation <= newest)
      return `${who} has ${key} of ${peer}, whose life ${life} was declared over`;
  return null;
};

const watchDeaths = ({ kernel, installation }: View, verdict: Verdict): (() => void) => {
  const lives: Lives = new Map();
  const over = new Map<string, number>();
  const known = { installation, lives, over };
  const heard = new Map<string, Heard>();
  /** Who and of whom → the latest life that each member of the Presence group said to them is over; one alone is no word of the group. */
  const said = new Map<string, Map<string, number>>();
  const hear = (who: string, peer: string, life: number): void => {
    if (!over.has(`${peer} ${life}`)) over.set(`${peer} ${life}`, kernel.clock.nowMs);
    const before = heard.get(`${who} ${peer}`);
    if (before !== undefined && before.life >= life) return;
    heard.set(`${who} ${peer}`, { who, peer, life, atMs: kernel.clock.nowMs, counted: false });
  };
  kernel.watchers.push({
    began: (who) => {
      for (const [key, each] of heard) if (each.who === who) heard.delete(key);
      for (const key of said.keys()) if (key.startsWith(`${who} `)) said.delete(key);
    },
    log: (who, event, { peer, life }) => {
      if (event === "presence/heard") hear(who, String(peer), Number(life));
    },
    frame: (from, to, frame) => {
      if (frame.frame === "hello" && from.startsWith("host.") && frame.life !== undefined) {
        const own = lives.get(from) ?? new Map<number, { readonly life: number; readonly sinceMs: number }>();
        lives.set(from, own);
        if (!own.has(frame.generation)) own.set(frame.generation, { life: frame.life, sinceMs: kernel.clock.nowMs });
      }
      if (frame.frame !== "actual" || !from.startsWith("presence.") || !frame.key.startsWith("dead/")) return;
      const { generation } = (frame.value ?? {}) as { readonly generation?: number };
      if (generation === undefined) return;
      const peer = frame.key.replace("dead/", "host.");
      const words = said.get(`${to} ${peer}`) ?? new Map<string, number>();
      said.set(`${to} ${peer}`, words.set(from, Math.max(generation, words.get(from) ?? 0)));
      const agreed = [...words.values()].sort((a, b) => b - a)[Math.floor(installation.members.size / 2)];
      if (agreed !== undefined) hear(to, peer, agreed);
    },
  });
  const look = (): void => {
    for (const each of heard.values()) {
      const { who, peer, life, atMs } = each;
      const process = installation.processes.get(peerName(who));
      // A controller that was taken away with its cell hears nothing any more.
      if (process === undefined || !process.isRunning || process.isPaused) continue;
      if (kernel.clock.nowMs - Math.max(atMs, process.wellSinceMs) < boundMs) continue;
      const found = leftOver(known, who, peer, life);
      if (found !== null) verdict.violate(`${found} ${kernel.clock.nowMs - atMs} ms ago`);
      else if (!each.counted) verdict.check(true, () => "");
      each.counted = true;
    }
    kernel.clock.after(lookEveryMs, look);
  };
  kernel.clock.after(lookEveryMs, look);
  return () => {
    const last = new Map<string, number>();
    for (const { peer, life } of heard.values()) last.set(peer, Math.max(life, last.get(peer) ?? 0));
    for (const [peer, life] of last)
      for (const { name } of installation.processes.values()) {
        const found = leftOver(known, name, peer, life);
        verdict.check(found === null, () => `at rest ${found}`);
      }
  };
};
const distributionOf = (installation: Installation, who: string) =>
  installation.processes.get(peerName(who))?.distribution ?? null;
