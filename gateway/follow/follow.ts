import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { mostTopics, positionsIn, type Topic, topicOf } from "../../model/contract/follow/follow.ts";
import { bearerOf, hashCredential } from "../../runtime/http/bearer.ts";
import type { Person, Scope } from "../requests/credentials.ts";
import { Counts, type PlaceLimits, Places } from "../requests/places.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { streamTopics } from "./stream.ts";
import { FollowedTopic, type TopicSource, type TopicTimes, topicTimes } from "./topic.ts";

/**
 * `GET /follow`: each person's topics are read by what he shows himself, so a topic has nothing that he could not ask for, and is kept apart from
 * the same topic of everybody else. Streams of one person share them.
 */
export interface FollowSources {
  /** Rejects with a refusal where a topic is not there for who shows this. */
  sourceOf(topic: Topic, authorization: string): Promise<TopicSource>;
  /** Who it is, whichever of his credentials he shows, and whose share his topics are of. */
  whoIs(authorization: string): Person;
}
export interface FollowLimits {
  readonly perPerson: number;
  readonly inAll: number;
  /** Topics that are read, of all people; of one cell or account there is a share. */
  readonly topics: PlaceLimits;
  /** Who takes nothing for so long is cut off. */
  readonly takenWithinMs: number;
  readonly times: TopicTimes;
}
export const followLimits: FollowLimits = {
  perPerson: 8,
  inAll: 128,
  topics: { inAll: 512, reserved: 64, perCell: 128 },
  takenWithinMs: 30_000,
  times: topicTimes,
};

interface Kept {
  readonly topic: FollowedTopic;
  readonly owner: string;
}

export function registerFollow(app: FastifyInstance, sources: FollowSources, limits = followLimits): void {
  const topics = new Map<string, Kept>();
  const places = new Places(limits.topics);
  const followers = new Counts();
  app.addHook("onClose", async () => {
    for (const { topic } of [...topics.values()]) topic.stop("the gateway ends");
  });

  /** Who has his share may give up what nobody follows of it; where all are taken, anybody's that nobody follows goes. */
  const placeFor = (scope: Scope): (() => void) => {
    for (;;) {
      const place = places.take(scope);
      if (typeof place === "function") return place;
      const owner = JSON.stringify(scope);
      const idle = [...topics.values()].find((each) => each.topic.isIdle && (place === "full" || each.owner === owner));
      if (idle !== undefined) idle.topic.stop("others are followed in its place");
      else if (place === "full") throw refused(503, "busy", "too many topics are followed; try again in a moment");
      else
        throw refused(503, "busy", "as many topics are followed as you and those you share with may have: close one");
    }
  };
  const topicFor = ({ scope }: Person, written: string, authorization: string): FollowedTopic => {
    const key = `${hashCredential(bearerOf(authorization) ?? "")} ${written}`;
    const known = topics.get(key);
    if (known !== undefined) return known.topic;
    const wanted = topicOf(written);
    if (!wanted.ok) throw refused(400, "bad-request", wanted.error);
    const leave = placeFor(scope);
    const topic: FollowedTopic = new FollowedTopic(
      { topic: written, run: randomBytes(6).toString("hex"), times: limits.times },
      () => sources.sourceOf(wanted.value, authorization),
      () => {
        leave();
        topics.delete(key);
      },
    );
    topics.set(key, { topic, owner: JSON.stringify(scope) });
    return topic;
  };

  serveRoute(app, "follow", async ({ request, query }, reply) => {
    const { authorization = "" } = request.headers;
    const wanted = [...new Set(query.topic ?? [])];
    if (wanted.length === 0)
      throw refused(
        400,
        "bad-request",
        "what to follow is not said: ?topic=status, ha, cells, cell:NAME, or counters:NAME",
      );
    if (wanted.length > mostTopics)
      throw refused(400, "bad-request", `one stream has at most ${mostTopics} topics, not ${wanted.length}`);
    const wrong = wanted.map(topicOf).find((topic) => !topic.ok);
    if (wrong?.ok === false) throw refused(400, "bad-request", wrong.error);
    const who = sources.whoIs(authorization);
    const { person } = who;
    if (followers.of(person) >= limits.perPerson || followers.all >= limits.inAll) {
      reply.header("retry-after", "5");
      const most = `at most ${limits.perPerson} of one person, ${limits.inAll} in all`;
      throw refused(503, "busy", `as many streams as may be are followed (${most}): close one`);
    }
    if (reply.raw.destroyed) return;
    followers.add(person, 1);
    reply.raw.once("close", () => followers.add(person, -1));
    const followed = new Map<string, FollowedTopic>();
    for (const each of wanted) followed.set(each, topicFor(who, each, authorization));
    await Promise.all([...followed.values()].map((topic) => topic.ready()));
    if (reply.raw.destroyed) return;
    reply.hijack();
    const last = positionsIn(String(request.headers["last-event-id"] ?? ""));
    streamTopics(reply.raw, followed, { last, takenWithinMs: limits.takenWithinMs });
  });
}
