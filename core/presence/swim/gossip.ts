import type { HostName } from "../../../model/cell/identifiers.ts";
import { updateBytes } from "./codec.ts";
import type { Broadcast, BroadcastQueue, Update } from "./types.ts";

/**
 * What is still to be told. Updates ride on whatever packet leaves, those first that were told least often, and each a
 * bounded number of times (SWIM, section 4.1). A newer update about a host takes the place of an older one.
 *
 * Kept in buckets by number of tellings: taking costs what is taken, never the length of the queue.
 */
export const createQueue = (): BroadcastQueue => ({ buckets: [[]], byHost: new Map() });

export const enqueue = (queue: BroadcastQueue, update: Update): void => {
  const old = queue.byHost.get(update.host);
  if (old !== undefined) old.current = false;
  const broadcast = { update, bytes: updateBytes(update), sends: 0, current: true };
  queue.byHost.set(update.host, broadcast);
  put(queue, broadcast);
};

/** What is superseded stays where it is until it is met, or until there is too much of it. */
const put = (queue: BroadcastQueue, broadcast: Broadcast): void => {
  const list = bucket(queue, broadcast.sends);
  list.push(broadcast);
  if (list.length <= 2 * queue.byHost.size + 64) return;
  const current = list.filter((candidate) => candidate.current);
  list.length = 0;
  for (const kept of current) list.push(kept);
};

const bucket = (queue: BroadcastQueue, sends: number): BroadcastQueue["buckets"][number] => {
  for (let missing = queue.buckets.length; missing <= sends; missing += 1) queue.buckets.push([]);
  return queue.buckets[sends] ?? [];
};

const nothing: readonly Update[] = [];

/**
 * Updates for one packet, at most `room` bytes of them; each counts as told once more and is dropped after `limit` times.
 * @param first goes before all others, and is not counted: what its receiver must know about itself
 */
export const takeUpdates = (
  queue: BroadcastQueue,
  room: number,
  limit: number,
  first: Update | null,
): readonly Update[] => {
  if (queue.byHost.size === 0) return first === null ? nothing : [first];
  const taken: Update[] = first === null ? [] : [first];
  let left = first === null ? room : room - updateBytes(first);
  // From the most told down, so that nothing is met twice after it moved up.
  const chosen: { readonly sends: number; readonly count: number }[] = [];
  for (let sends = 0; sends < queue.buckets.length && left > 0; sends += 1) {
    const list = queue.buckets[sends] ?? [];
    let count = 0;
    for (let index = list.length - 1; index >= 0; index -= 1) {
      const candidate = list[index];
      if (candidate?.current === true) {
        if (candidate.bytes > left) {
          left = 0;
          break;
        }
        left -= candidate.bytes;
        if (candidate.update.host !== first?.host) taken.push(candidate.update);
      }
      count += 1;
    }
    if (count > 0) chosen.push({ sends, count });
  }
  for (let index = chosen.length - 1; index >= 0; index -= 1) {
    const { sends, count } = chosen[index] ?? { sends: 0, count: 0 };
    const list = queue.buckets[sends] ?? [];
    // The newest of a bucket stay the newest in the next one.
    for (const told of list.splice(list.length - count, count)) {
      if (!told.current) continue;
      told.sends += 1;
      if (told.sends < limit) put(queue, told);
      else queue.byHost.delete(told.update.host);
    }
  }
  return taken;
};

/** A host that is gone need not be told of any more. */
export const forget = (queue: BroadcastQueue, host: HostName): void => {
  const old = queue.byHost.get(host);
  if (old !== undefined) old.current = false;
  queue.byHost.delete(host);
};
