import { setTimeout as sleep } from "node:timers/promises";
import { positionsText } from "../../model/contract/follow/follow.ts";
import { type Followed, nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";
import { CommandFailure, exitCodes } from "../terminal/failure.ts";
import { type Client, Refused } from "./client.ts";

const reconnectMs = 1_000;

/**
 * Topics as they are and become, each time something has changed. A stream that breaks is asked for again, from where it was. Rejects where it cannot be
 * had at first, and where a topic has ended.
 */
export async function* followed(client: Pick<Client, "stream">, topics: readonly string[]): AsyncGenerator<Followed> {
  let all = nothingFollowed;
  let wasThere = false;
  for (;;) {
    try {
      const headers = { "last-event-id": positionsText(all.topics) };
      for await (const event of client.stream("follow", { parameters: {}, query: { topic: topics }, headers })) {
        wasThere = true;
        const next = reduced(all, event);
        const isNews = next.followed !== all;
        all = next.followed;
        if (isNews) yield all;
        const [why] = all.ended.values();
        if (why !== undefined) throw new CommandFailure(exitCodes.refused, why);
        if (next.isGap) break;
      }
    } catch (error) {
      const isAway = error instanceof Refused && (error.status === 502 || error.status === 503);
      const isNo = error instanceof CommandFailure && error.exitCode === exitCodes.refused && !isAway;
      if (isNo || !wasThere) throw error;
    }
    await sleep(reconnectMs);
  }
}
