import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fastify from "fastify";
import { type FollowEvent, positionsText, type Rows } from "../../model/contract/follow/follow.ts";
import { type Followed, nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";
import { routes } from "../../model/contract/routes.ts";
import { faultIn } from "../../model/contract/schema.ts";
import type { Json } from "../../model/json/json.ts";
import { readEventStream } from "../../runtime/http/event-stream.ts";
import { eventually } from "../../runtime/installation.testing.ts";
import type { Person } from "../requests/credentials.ts";
import { type RefusedError, refused } from "../requests/refused.ts";
import { type FollowLimits, followLimits, registerFollow } from "./follow.ts";
import { topicTimes } from "./topic.ts";

/** Waits a while for it, and then goes on: the test looks at what has come. */
const soon = async (look: () => boolean): Promise<void> => {
  for (let n = 0; n < 500 && !look(); n += 1) await sleep(20);
};
const until = (look: () => boolean | Promise<boolean>) => eventually("it is so", async () => look());

/** A gateway with topics whose rows a test sets. Who shows `bad` may see no cell. */
async function world(t: TestContext, limits: Partial<FollowLimits> = {}, everyMs = 60_000) {
  const rows: { [topic: string]: Rows | RefusedError | Error | "silent" } = {
    status: { a: 1 },
    cells: {},
    "cell:shop": { vm: 1 },
  };
  const wakes = new Set<() => void>();
  const reads = { count: 0, topics: [] as string[] };
  const app = fastify({ forceCloseConnections: true });
  app.setErrorHandler((error, _request, reply) => {
    const { statusCode = 500, refusal } = error as unknown as Partial<RefusedError>;
    reply.code(statusCode).send({ error: refusal ?? { code: "internal", message: (error as Error).message } });
  });
  const sources = {
    sourceOf: async (topic: { readonly kind: string; readonly cell?: string }, authorization: string) => {
      const name = topic.cell === undefined ? topic.kind : `cell:${topic.cell}`;
      if (authorization.includes("bad")) throw refused(403, "forbidden", "not yours");
      return {
        read: async () => {
          reads.count += 1;
          reads.topics.push(name);
          const found = rows[name];
          if (found === "silent") return new Promise<{ rows: Rows }>(() => undefined);
          if (found === undefined) throw refused(404, "not-found", `there is no ${name}`);
          if (found instanceof Error) throw found;
          return { rows: found };
        },
        watch: (changed: () => void, signal: AbortSignal) => {
          wakes.add(changed);
          signal.addEventListener("abort", () => wakes.delete(changed));
        },
        everyMs,
      };
    },
    // `Bearer ann-2` is another credential of ann.
    whoIs: (authorization: string): Person => {
      const person = authorization.replace("Bearer ", "").replace(/-\d+$/, "");
      return { person, scope: { kind: "account", account: person } };
    },
  };
  registerFollow(app, sources, { ...followLimits, ...limits });
  await app.listen({ port: 0, host: "127.0.0.1" });
  const stopping = new AbortController();
  t.after(async () => {
    stopping.abort();
    await app.close();
  });
  const { port } = app.server.address() as { readonly port: number };
  const ask = (query: string, headers: Record<string, string> = {}, stop = stopping.signal) =>
    fetch(`http://127.0.0.1:${port}/follow?${query}`, {
      headers: { authorization: "Bearer ann", ...headers },
      signal: AbortSignal.any([stop, stopping.signal]),
    });
  /** Follows, and has what it comes to. */
  const follow = async (query: string, headers: Record<string, string> = {}) => {
    const stop = new AbortController();
    const response = await ask(query, headers, stop.signal);
    assert.equal(response.status, 200, await (response.status === 200 ? "" : response.clone().text()));
    const seen: FollowEvent[] = [];
    const is = { followed: nothingFollowed as Followed, isOver: false };
    void (async () => {
      for await (const event of readEventStream<FollowEvent>(response.body ?? assert.fail())) {
        assert.equal(faultIn(routes.follow.answer.schema, event as unknown as Json), null);
        seen.push(event);
        is.followed = reduced(is.followed, event).followed;
      }
    })()
      .catch(() => undefined)
      .finally(() => {
        is.isOver = true;
      });
    return {
      seen,
      is,
      rows: (topic: string) => is.followed.topics.get(topic)?.rows,
      leave: () => stop.abort(),
    };
  };
  const set = (topic: string, now: Rows | Error | "silent"): void => {
    rows[topic] = now;
    for (const wake of wakes) wake();
  };
  return { ask, follow, set, port, reads, wakes };
}
const refusalOf = async (response: Response): Promise<readonly [number, string]> => {
  // What is given in place of a refusal never ends.
  assert.notEqual(response.status, 200);
  const { error } = (await response.json()) as { readonly error: { readonly message: string } };
  return [response.status, error.message];
};

test("who follows gets all rows of his topics, and then what changes, as often as each quarter of a second", async (t) => {
  const { follow, set } = await world(t);
  const one = await follow("topic=status&topic=cells");
  await until(() => one.seen.length === 2);
  assert.deepEqual([one.rows("status"), one.rows("cells")], [{ a: 1 }, {}]);
  set("status", { a: 2 });
  set("status", { a: 3, b: 1 });
  await until(() => one.rows("status")?.b === 1);
  assert.deepEqual([one.rows("status"), one.seen.length, one.seen.at(-1)?.kind], [{ a: 3, b: 1 }, 3, "delta"]);
  set("status", { b: 1 });
  await until(() => one.seen.length === 4);
  assert.deepEqual([one.seen.at(-1)?.gone, one.rows("status")], [["a"], { b: 1 }]);
});

test("who comes back says where he was, and gets what he missed, or all rows where that is not known", async (t) => {
  const { follow, set } = await world(t);
  const one = await follow("topic=status");
  await until(() => one.seen.length === 1);
  const at = positionsText(one.is.followed.topics);
  const two = await follow("topic=status");
  set("status", { a: 2 });
  await until(() => two.seen.length === 2);
  const back = await follow("topic=status", { "last-event-id": at });
  await until(() => back.seen.length === 1);
  assert.deepEqual([back.seen[0]?.kind, back.seen[0]?.rows], ["delta", { a: 2 }]);
  const stranger = await follow("topic=status", { "last-event-id": "status=another.1" });
  await until(() => stranger.seen.length === 1);
  assert.equal(stranger.seen[0]?.kind, "snapshot");
});

test("streams of one person share a reading, another's are read for himself", async (t) => {
  const { follow, reads } = await world(t);
  await follow("topic=status");
  await follow("topic=status");
  assert.equal(reads.count, 1);
  await follow("topic=status", { authorization: "Bearer bob" });
  assert.equal(reads.count, 2);
});

test("where nobody answers the rows stay, and are said to be old; then they are of now again", async (t) => {
  const { follow, set } = await world(t);
  const one = await follow("topic=status");
  set("status", new Error("the controller does not answer"));
  await until(() => one.is.followed.topics.get("status")?.stale === "the controller does not answer");
  assert.deepEqual(one.rows("status"), { a: 1 });
  set("status", { a: 1 });
  await until(() => one.is.followed.topics.get("status")?.stale === null);
});

test("who may not see a topic any more is told why, and a stream with nothing left ends", async (t) => {
  const { follow, set } = await world(t);
  const one = await follow("topic=status&topic=cell:shop");
  set("cell:shop", refused(403, "forbidden", "ann may not see shop any more"));
  await until(() => one.is.followed.ended.get("cell:shop") === "ann may not see shop any more");
  assert.equal(one.rows("cell:shop"), undefined);
  set("status", refused(401, "unauthorized", "the session is over"));
  await until(() => one.is.isOver);
});

test("a topic that is unknown, not there or not allowed is refused with what would be right", async (t) => {
  const { ask } = await world(t);
  assert.match((await refusalOf(await ask("")))[1], /what to follow is not said: \?topic=status/);
  const long = await refusalOf(await ask(`topic=${"x".repeat(10_000)}`));
  assert.deepEqual(
    [long[0], long[1].length < 200, /a topic is status, ha, cells, cell:NAME, or counters:NAME/.test(long[1])],
    [400, true, true],
  );
  for (const topic of ["Status", "cell:", "cell:a/b", "cell:../x", "cells,status"])
    assert.equal((await ask(`topic=${encodeURIComponent(topic)}`)).status, 400, topic);
  assert.equal((await ask(Array.from({ length: 17 }, (_, n) => `topic=cell:c${n}`).join("&"))).status, 400);
  assert.deepEqual(await refusalOf(await ask("topic=cell:none")), [404, "there is no cell:none"]);
  assert.deepEqual(await refusalOf(await ask("topic=status&topic=cell:shop", { authorization: "Bearer bad" })), [
    403,
    "not yours",
  ]);
});

test("one person has eight streams, all together so many, and who leaves makes room", async (t) => {
  const { ask, follow } = await world(t, { perPerson: 2, inAll: 3 });
  const first = await follow("topic=status");
  await follow("topic=status");
  const [status, why] = await refusalOf(await ask("topic=status"));
  assert.deepEqual([status, /at most 2 of one person, 3 in all/.test(why)], [503, true]);
  const bob = { authorization: "Bearer bob" };
  await follow("topic=status", bob);
  assert.equal((await ask("topic=status", bob)).status, 503, "in all");
  first.leave();
  await until(async () => (await ask("topic=status")).status === 200);
  assert.deepEqual([followLimits.perPerson, followLimits.inAll], [8, 128]);
});

test("another credential of the same person is no other person", async (t) => {
  const { ask, follow } = await world(t, { perPerson: 2 });
  await follow("topic=status", { authorization: "Bearer ann-1" });
  await follow("topic=status", { authorization: "Bearer ann-2" });
  assert.equal((await ask("topic=status", { authorization: "Bearer ann-3" })).status, 503);
  await follow("topic=status", { authorization: "Bearer bob-1" });
});

test("who takes nothing is cut off, and whoever reads is not", async (t) => {
  const { follow, set, port } = await world(t, { takenWithinMs: 300 });
  const reader = await follow("topic=status");
  const slow = connect(port, "127.0.0.1").pause();
  let isCut = false;
  slow.once("close", () => {
    isCut = true;
  });
  slow.on("error", () => undefined);
  slow.write("GET /follow?topic=status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann\r\n\r\n");
  await sleep(200);
  for (let n = 0; n < 8; n += 1) {
    set("status", { a: `${n}${"x".repeat(2_000_000)}` });
    await until(() => String(reader.rows("status")?.a).startsWith(`${n}x`));
  }
  slow.resume();
  await soon(() => isCut);
  assert.equal(isCut, true);
  assert.equal(reader.is.isOver, false);
});

test("first rows of more than 4 MiB together arrive, also where they are taken slowly", async (t) => {
  const { follow, set, port } = await world(t);
  const names = ["status", "cells", "cell:a", "cell:b", "cell:c", "cell:d"];
  for (const name of names) set(name, { a: "é".repeat(1_000_000) });
  const query = names.map((name) => `topic=${name}`).join("&");
  const one = await follow(query);
  await soon(() => one.is.isOver || names.every((name) => one.rows(name)?.a === "é".repeat(1_000_000)));
  assert.equal(one.seen.length, names.length);

  const slow = connect(port, "127.0.0.1").pause();
  let taken = "";
  slow.setEncoding("utf8").on("data", (text: string) => {
    taken += text;
  });
  slow.write(`GET /follow?${query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ann\r\n\r\n`);
  await sleep(300);
  slow.resume();
  await until(() => taken.split("event: snapshot").length === names.length + 1);
  slow.destroy();
});

test("so many topics are read, and one that nobody follows any more makes room", async (t) => {
  const { ask, follow } = await world(t, { topics: { inAll: 1, reserved: 0, perCell: 1 } });
  const one = await follow("topic=status", { authorization: "Bearer ann-1" });
  const bob = { authorization: "Bearer bob" };
  assert.deepEqual(await refusalOf(await ask("topic=status", bob)), [
    503,
    "too many topics are followed; try again in a moment",
  ]);
  one.leave();
  await until(async () => (await ask("topic=status", bob)).status === 200);
});

test("one account has its share of topics, and no other goes without", async (t) => {
  const { ask, follow } = await world(t, { topics: { inAll: 8, reserved: 1, perCell: 2 } });
  const one = await follow("topic=status&topic=cells");
  const [status, why] = await refusalOf(await ask("topic=cell:shop", { authorization: "Bearer ann-2" }));
  assert.deepEqual(
    [status, why],
    [503, "as many topics are followed as you and those you share with may have: close one"],
  );
  await follow("topic=status&topic=cells", { authorization: "Bearer bob" });
  one.leave();
  await until(async () => (await ask("topic=cell:shop", { authorization: "Bearer ann-2" })).status === 200);
});

test("a topic that was asked for and never followed is not read for ever", async (t) => {
  const { ask, follow, reads } = await world(t, { times: { ...topicTimes, lingerMs: 300 } }, 50);
  // The other one is refused, so nobody ever follows this one.
  assert.equal((await ask("topic=status&topic=cell:none")).status, 404);
  const bob = await follow("topic=cells", { authorization: "Bearer bob" });
  await sleep(600);
  const before = reads.topics.filter((name) => name === "status").length;
  const cells = reads.topics.filter((name) => name === "cells").length;
  await sleep(800);
  assert.equal(reads.topics.filter((name) => name === "status").length, before);
  assert.ok(reads.topics.filter((name) => name === "cells").length > cells, "what is followed is read on");
  assert.equal(bob.is.isOver, false);
});

test("one cell that says nothing withholds no other topic, and is named", async (t) => {
  const { follow, set } = await world(t, { times: { ...topicTimes, firstMs: 100 } });
  set("cell:shop", "silent");
  const one = await Promise.race([follow("topic=status&topic=cell:shop"), sleep(5_000)]);
  assert.ok(one, "the stream begins");
  await until(() => one.rows("status") !== undefined);
  await until(() => one.is.followed.unheard.get("cell:shop") === 'nothing was heard of the cell "shop" yet');
  assert.equal(one.rows("cell:shop"), undefined, "and it has no rows by that, not even none");
});

test("a reading that says nothing is given up and made anew, and what was read meanwhile may be old", async (t) => {
  const { follow, set } = await world(t, { times: { ...topicTimes, firstMs: 100, laterMs: 100, givenUpMs: 400 } });
  set("cell:shop", "silent");
  const one = await follow("topic=cell:shop");
  set("cell:shop", { vm: 2 });
  await until(() => one.rows("cell:shop")?.vm === 2);
  assert.equal(one.is.followed.unheard.size, 0);
  set("cell:shop", "silent");
  await until(() => one.is.followed.topics.get("cell:shop")?.stale !== null);
  assert.deepEqual(
    [one.is.followed.topics.get("cell:shop")?.stale, one.rows("cell:shop")],
    ['nothing was heard of the cell "shop" for a while', { vm: 2 }],
  );
});

test("a topic that is not read any more says so to who follows it, and the stream ends", async (t) => {
  const times = { ...topicTimes, firstMs: 400 };
  const { ask, follow, set } = await world(t, { topics: { inAll: 1, reserved: 0, perCell: 1 }, times });
  set("status", "silent");
  const ann = follow("topic=status");
  await sleep(100);
  assert.equal((await ask("topic=cells", { authorization: "Bearer bob" })).status, 200);
  const one = await ann;
  await soon(() => one.is.isOver);
  assert.deepEqual(
    one.seen.map(({ kind, why }) => [kind, why]),
    [["ended", "others are followed in its place"]],
  );
});
