import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import {
  type FollowEvent,
  mostTopics,
  type Position,
  positionsIn,
  positionsText,
  type Topic,
  topicOf,
} from "../../model/contract/follow/follow.ts";
import { bearerOf, hashCredential } from "../../runtime/http/bearer.ts";
import { Counts } from "../requests/places.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { FollowedTopic, type TopicSource } from "./topic.ts";

/**
 * `GET /follow`: each person's topics are read by what he shows himself, so a topic has nothing that he could not ask for, and is kept apart from
 * the same topic of everybody else. Streams of one person share them.
 */
export interface FollowSources {
  /** Rejects with a refusal where a topic is not there for who shows this. */
  sourceOf(topic: Topic, authorization: string): Promise<TopicSource>;
}
export interface FollowLimits {
  readonly perPerson: number;
  readonly inAll: number;
  /** Topics that are read, of all people. */
  readonly topics: number;
  /** What may wait for one who is slow, in octets. */
  readonly backlog: number;
}
export const followLimits: FollowLimits = { perPerson: 8, inAll: 128, topics: 512, backlog: 4 * 1024 * 1024 };
const beatMs = 10_000;

export function registerFollow(app: FastifyInstance, sources: FollowSources, limits = followLimits): void {
  const topics = new Map<string, FollowedTopic>();
  const followers = new Counts();
  app.addHook("onClose", async () => {
    for (const each of [...topics.values()]) each.stop();
  });

  const topicFor = async (person: string, written: string, authorization: string): Promise<FollowedTopic> => {
    const key = `${person} ${written}`;
    const known = topics.get(key);
    if (known !== undefined) return known;
    const topic = topicOf(written);
    if (!topic.ok) throw refused(400, "bad-request", topic.error);
    const source = await sources.sourceOf(topic.value, authorization);
    const other = topics.get(key);
    if (other !== undefined) return other;
    const idle = topics.size < limits.topics ? undefined : [...topics.values()].find(({ isIdle }) => isIdle);
    if (topics.size >= limits.topics && idle === undefined)
      throw refused(503, "busy", "too many topics are followed; try again in a moment");
    idle?.stop();
    const made: FollowedTopic = new FollowedTopic(written, randomBytes(6).toString("hex"), source, () => {
      if (topics.get(key) === made) topics.delete(key);
    });
    topics.set(key, made);
    return made;
  };

  serveRoute(app, "follow", async ({ request, query }, reply) => {
    const { authorization = "" } = request.headers;
    const wanted = [...new Set(query.topic ?? [])];
    if (wanted.length === 0)
      throw refused(400, "bad-request", "what to follow is not said: ?topic=status, ha, cells, or cell:NAME");
    if (wanted.length > mostTopics)
      throw refused(400, "bad-request", `one stream has at most ${mostTopics} topics, not ${wanted.length}`);
    const wrong = wanted.map(topicOf).find((topic) => !topic.ok);
    if (wrong?.ok === false) throw refused(400, "bad-request", wrong.error);
    const person = hashCredential(bearerOf(authorization) ?? "");
    if (followers.of(person) >= limits.perPerson || followers.all >= limits.inAll) {
      reply.header("retry-after", "5");
      const most = `at most ${limits.perPerson} of one person, ${limits.inAll} in all`;
      throw refused(503, "busy", `as many streams as may be are followed (${most}): close one`);
    }
    followers.add(person, 1);
    reply.raw.once("close", () => followers.add(person, -1));
    const followed = await Promise.all(wanted.map((topic) => topicFor(person, topic, authorization)));
    await Promise.all(followed.map((topic) => topic.ready()));
    if (reply.raw.destroyed) return;
    reply.hijack();
    const last = positionsIn(String(request.headers["last-event-id"] ?? ""));
    const by = new Map(followed.map((topic, at) => [wanted[at] ?? "", topic]));
    stream(reply.raw, by, { last, backlog: limits.backlog });
  });
}

function stream(
  response: ServerResponse,
  topics: ReadonlyMap<string, FollowedTopic>,
  { last, backlog }: { readonly last: ReadonlyMap<string, Position>; readonly backlog: number },
): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
  response.flushHeaders();
  const seen = new Map<string, Position>();
  const open = new Set(topics.keys());
  const tell = (event: FollowEvent): void => {
    if (response.destroyed) return;
    // Who has not taken what was told before, long as one event may be. He comes back, says where he was, and gets what he missed or all of it.
    if (response.writableLength > backlog) {
      response.destroy();
      return;
    }
    const { topic, run, n, kind } = event;
    if (topic !== undefined && run !== undefined && n !== undefined) seen.set(topic, { run, n });
    response.write(`id: ${positionsText(seen)}\nevent: ${kind}\ndata: ${JSON.stringify(event)}\n\n`);
    if (kind === "ended" && topic !== undefined) open.delete(topic);
    if (open.size === 0) response.end();
  };
  const ends = [...topics].map(([name, topic]) => {
    const position = last.get(name);
    if (position !== undefined) seen.set(name, position);
    return topic.follow({ tell }, position);
  });
  const beat = setInterval(() => tell({ kind: "beat", time: new Date().toISOString() }), beatMs);
  response.once("close", () => {
    clearInterval(beat);
    for (const end of ends) end();
  });
}
