import type { FastifyReply } from "fastify";
import { Counts } from "../requests/places.ts";
import { refused } from "../requests/refused.ts";

/**
 * What a Placer works at for seconds, and nothing follows from: how much of that is asked at a time. The Placer has a bound of its own (`mostQuestions`), for
 * whatever several gateways ask.
 */
const [perPerson, inAll] = [2, 4] as const;

export interface Questions {
  /**
   * Answers by `work`, which is aborted once nobody waits for it any more: the Placer stops working at it then.
   *
   * @param person whoever asks
   */
  answer<T>(person: string, reply: FastifyReply, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

export function createQuestions(): Questions {
  const asked = new Counts();
  return {
    answer: async (person, reply, work) => {
      if (asked.of(person) >= perPerson || asked.all >= inAll) throw tooMany(reply);
      asked.add(person, 1);
      const gone = new AbortController();
      const leave = (): void => gone.abort();
      reply.raw.once("close", leave);
      try {
        return await work(gone.signal);
      } finally {
        reply.raw.off("close", leave);
        // One of several Placers may be at work still.
        leave();
        asked.add(person, -1);
      }
    },
  };
}

const tooMany = (reply: FastifyReply): Error => {
  reply.header("retry-after", "5");
  const most = `at most ${perPerson} of one person, ${inAll} in all`;
  return refused(503, "busy", `as many such questions as may be are being worked at (${most}): ask again in a moment`);
};
