import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { Gathering, mayWait } from "../../distribution/inputs/gathering.ts";
import { carryOutBatch } from "../../distribution/node/batch.ts";
import type { Frame } from "../../distribution/node/frames.ts";
import { createNode, stepNode } from "../../distribution/node/node.ts";
import type { LogLine, NodeInput } from "../../distribution/node/types.ts";
import { createAgentService } from "../agent/agent.ts";

type Item = { readonly input: NodeInput };
const hosts = 100;

/** An agent to which inputs come one by one, so that each has a commit of its own where it does not wait. */
const createAgent = () => {
  const service = createAgentService({ server: "s1", address: ipv4("10.0.2.1"), firstPort: 20_000 });
  const now = { ms: 1000, wallMs: 1000 };
  const node = createNode(service, new Map(), peerName("agent.s1"), now, "draw");
  const gathering = new Gathering<Item>();
  const seen = { commits: 0, sent: new Map<number, Frame[]>(), logs: [] as LogLine[] };
  const step = (items: readonly Item[]): void => {
    if (items.length === 0) return;
    carryOutBatch(
      items.map(({ input }) => stepNode(node, input, now)),
      {
        commit: (writes, durable) => {
          if (writes.size > 0) seen.commits += 1;
          durable();
        },
        log: (line) => void seen.logs.push(line),
        reply: () => undefined,
        connect: () => undefined,
        send: (connection, frames) => {
          seen.sent.set(connection, [...(seen.sent.get(connection) ?? []), ...frames]);
          give({ kind: "sendable", connection });
        },
        close: () => undefined,
      },
    );
  };
  const give = (input: NodeInput): void => step(gathering.take({ input }, () => mayWait(node, input)));
  const frame = (connection: number, frame: Json): void => give({ kind: "frame", connection, frame });
  give({ kind: "start" });
  for (let at = 1; at <= hosts; at += 1) {
    const name = peerName(`host.h${at}`);
    give({ kind: "connected", connection: at, peer: name, role: "server" });
    frame(at, { frame: "hello", version: 2, generation: 1, session: 0, name });
    frame(at, { frame: "subscribe", prefix: `${name}/beat` });
    frame(at, { frame: "desired-complete" });
  }
  return {
    node,
    seen,
    beat: (at: number, seq: number, value: Json) => frame(at, { frame: "desire", key: "beat", seq, value }),
    everyBody: (seq: number, value: Json): void => {
      seen.commits = 0;
      seen.sent.clear();
      for (let at = 1; at <= hosts; at += 1) frame(at, { frame: "desire", key: "beat", seq, value });
    },
    timeIsOver: () => step(gathering.letGo()),
    /** What a host was told of its beats. */
    told: (at: number) =>
      (seen.sent.get(at) ?? []).flatMap((each) =>
        each.frame === "actual" ? [each.value] : each.frame === "ack" ? [each.seq] : [],
      ),
  };
};

test("beats of a hundred hosts cost one commit, and each is answered with it", () => {
  const agent = createAgent();
  agent.everyBody(1, { boot: 7, count: 1 });
  assert.equal(agent.seen.commits, hosts, "the first ones are news");
  agent.everyBody(2, { boot: 7, count: 2 });
  assert.equal(agent.seen.commits, 0);
  assert.equal(agent.seen.sent.size, 0, "nobody is told of what is not durable");
  agent.timeIsOver();
  assert.equal(agent.seen.commits, 1);
  for (let at = 1; at <= hosts; at += 1) assert.deepEqual(agent.told(at), [{ boot: 7, count: 2 }, 2]);
});

test("an earlier boot's beat waits for nobody, and is refused behind what its host had said before", () => {
  const agent = createAgent();
  agent.everyBody(1, { boot: 7, count: 1 });
  agent.everyBody(2, { boot: 7, count: 2 });
  agent.beat(3, 3, { boot: 6, count: 9 });
  assert.match(JSON.stringify(agent.seen.logs), /it is of boot 6, and boot 7 was heard/);
  assert.deepEqual(
    agent.told(3),
    [{ boot: 7, count: 2 }, 2, 3],
    "it is acknowledged as a document, and never said back",
  );
  assert.deepEqual(agent.told(4), [{ boot: 7, count: 2 }, 2], "what waited has gone before it");
});
