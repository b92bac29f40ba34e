import type { ServerResponse } from "node:http";
import { type FollowEvent, type Position, positionsText } from "../../model/contract/follow/follow.ts";
import type { FollowedTopic } from "./topic.ts";

const beatMs = 10_000;
/** What is written before it is looked whether it was taken. */
const pieceBytes = 64 * 1024;

export interface StreamOptions {
  /** Where the follower was, by topic. */
  readonly last: ReadonlyMap<string, Position>;
  readonly takenWithinMs: number;
}

/**
 * One follower's events. It is told the next one when it has taken the last: what it did not take is made anew then, from where it is, so that nobody
 * keeps anything for it, however much there is to tell at first and however slow it is. Who takes nothing at all is cut off; he comes back,
 * says where he was, and gets what he missed or all of it.
 */
export function streamTopics(
  response: ServerResponse,
  topics: ReadonlyMap<string, FollowedTopic>,
  { last, takenWithinMs }: StreamOptions,
): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
  response.flushHeaders();
  const open = new Map(topics);
  const seen = new Map<string, Position>();
  for (const [name, position] of last) if (topics.has(name)) seen.set(name, position);
  const changed = new Set(topics.keys());
  const unheard = new Map<string, string>();
  let isBeatDue = false;
  let isTelling = false;

  const next = (): FollowEvent | null => {
    if (isBeatDue) {
      isBeatDue = false;
      return { kind: "beat", time: new Date().toISOString() };
    }
    for (const name of changed) {
      const topic = open.get(name);
      const [event, ...more] = topic?.since(seen.get(name)) ?? [];
      if (event !== undefined) {
        if (more.length === 0 && topic?.why === null) changed.delete(name);
        return event;
      }
      changed.delete(name);
      if (topic === undefined) continue;
      const time = new Date().toISOString();
      if (topic.why !== null) {
        open.delete(name);
        return { kind: "ended", time, topic: name, why: topic.why };
      }
      const { unheard: stale } = topic;
      if (stale !== null && unheard.get(name) !== stale) {
        unheard.set(name, stale);
        return { kind: "beat", time, topic: name, stale };
      }
    }
    return null;
  };
  const told = async (event: FollowEvent): Promise<boolean> => {
    const { topic, run, n, kind } = event;
    if (topic !== undefined && run !== undefined && n !== undefined) seen.set(topic, { run, n });
    const text = Buffer.from(`id: ${positionsText(seen)}\nevent: ${kind}\ndata: ${JSON.stringify(event)}\n\n`);
    for (let at = 0; at < text.length; at += pieceBytes)
      if (!response.write(text.subarray(at, at + pieceBytes)) && !(await isTaken(response, takenWithinMs)))
        return false;
    return true;
  };
  const tell = async (): Promise<void> => {
    if (isTelling) return;
    isTelling = true;
    for (let event = next(); event !== null && !response.destroyed; event = next())
      if (!(await told(event))) {
        response.destroy();
        return;
      }
    isTelling = false;
    if (open.size === 0) response.end();
  };

  const ends = [...topics].map(([name, topic]) =>
    topic.follow({
      changed: () => {
        changed.add(name);
        void tell();
      },
    }),
  );
  const beat = setInterval(() => {
    isBeatDue = true;
    void tell();
  }, beatMs);
  response.once("close", () => {
    clearInterval(beat);
    for (const end of ends) end();
  });
  void tell();
}

/** Until what was written was taken; false: that has taken too long, or nobody is there any more. */
function isTaken(response: ServerResponse, withinMs: number): Promise<boolean> {
  if (response.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (is: boolean) => (): void => {
      clearTimeout(timer);
      response.off("drain", taken).off("close", gone);
      resolve(is);
    };
    const taken = end(true);
    const gone = end(false);
    const timer = setTimeout(gone, withinMs);
    response.once("drain", taken).once("close", gone);
  });
}
