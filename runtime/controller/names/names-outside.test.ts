import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { type Answer, decode, encode, type Packet } from "dns-packet";
import { askByTcp } from "../../dns/by-tcp.ts";
import { serveNames } from "./name-server.ts";
import { type NamesOutsideOptions, namesOutside } from "./names-outside.ts";

/** A controller's name server between VMs and resolvers, over real sockets: each at a loopback address of its own. */
const own = "127.16.53.1";
const [first, second, stranger] = ["127.16.53.2", "127.16.53.3", "127.16.53.4"];
const guarded = {
  domain: "cells.internal",
  networks: ["10.0.0.0/16", "10.64.0.0/10"],
  closed: ["10.0.0.0/16", "10.64.0.0/10"],
};
const query = (name: string, id = 77, type: "A" | "AAAA" | "HTTPS" | "TXT" = "A"): Buffer =>
  encode({ type: "query", id, flags: 0x0100, questions: [{ name, type: type as "A" }] });
const address = (name: string, data: string, ttl = 60): Answer => ({ name, type: "A", ttl, data });

type Reply = (asked: Packet, from: RemoteInfo) => Partial<Packet> | readonly Partial<Packet>[] | null;
interface Resolver {
  readonly asked: { readonly name: string; readonly id: number; readonly port: number }[];
  reply: Reply;
}
interface Scene {
  readonly resolvers: Readonly<Record<string, Resolver>>;
  readonly port: number;
  ask(packet: Buffer): Promise<Packet | null>;
  askByTcp(packet: Buffer): Promise<Packet | null>;
  readonly counts: () => Record<string, number>;
}

/** The answer to a question, by way of what the library writes. */
const answerOf = (asked: Packet, parts: Partial<Packet>): Buffer =>
  encode({ type: "response", id: asked.id ?? 0, flags: 0x8180, questions: asked.questions ?? [], ...parts } as Packet);

async function withResolvers(
  options: Partial<NamesOutsideOptions>,
  work: (scene: Scene) => Promise<void>,
  patienceMs = 1_000,
): Promise<void> {
  const port = 5_353 + Math.floor(process.pid % 500);
  const closers: (() => void)[] = [];
  const resolvers: Record<string, Resolver> = {};
  for (const place of [first, second]) {
    const socket = createSocket("udp4");
    const resolver: Resolver = { asked: [], reply: () => null };
    socket.on("message", (packet, from) => {
      const asked = decode(packet);
      resolver.asked.push({ name: asked.questions?.[0]?.name ?? "", id: asked.id ?? 0, port: from.port });
      for (const parts of [resolver.reply(asked, from) ?? []].flat())
        socket.send(answerOf(asked, parts), from.port, from.address);
    });
    socket.bind(port, place);
    await once(socket, "listening");
    closers.push(() => socket.close());
    resolvers[place] = resolver;
  }
  const manager = createSocket("udp4");
  manager.on("message", (packet, from) =>
    manager.send(answerOf(decode(packet), { flags: 0x8185 } as Partial<Packet>), from.port, from.address),
  );
  manager.bind(0, stranger);
  await once(manager, "listening");
  closers.push(() => manager.close());
  const outside = namesOutside({
    from: own,
    resolvers: async () => [first, second],
    guarded,
    port,
    attemptMs: 150,
    ...options,
  });
  const upstream = () => ({ address: stranger, port: manager.address().port });
  const names = await serveNames({ listen: { address: own, port: 0 }, upstream, outside });
  const ask = async (packet: Buffer): Promise<Packet | null> => {
    const socket = createSocket("udp4");
    try {
      socket.bind(0, "127.16.53.9");
      await once(socket, "listening");
      socket.send(packet, names.port, own);
      const [answer] = (await once(socket, "message", { signal: AbortSignal.timeout(patienceMs) })) as [Buffer];
      return decode(answer);
    } catch {
      return null;
    } finally {
      socket.close();
    }
  };
  const asksByTcp = async (packet: Buffer): Promise<Packet | null> => {
    const place = { address: own, port: names.port, from: "127.16.53.9", timeoutMs: patienceMs, largest: 65_535 };
    const answer = await askByTcp(place, packet);
    return answer === null ? null : decode(answer);
  };
  const counts = () =>
    Object.fromEntries(outside.metrics()[0]?.samples.map(({ labels, value }) => [labels.outcome ?? "", value]) ?? []);
  try {
    await work({ resolvers, port, ask, askByTcp: asksByTcp, counts });
  } finally {
    outside.close();
    for (const close of closers) close();
    await names.close();
  }
}
const dataIn = (packet: Packet | null): unknown => {
  const [answer] = packet?.answers ?? [];
  return answer !== undefined && "data" in answer ? answer.data : null;
};
const rcodeOf = (packet: Packet | null): string | undefined => (packet as { rcode?: string } | null)?.rcode;
const good: Reply = ({ questions }) => ({ answers: [address(questions?.[0]?.name ?? "", "203.0.113.9")] });

test("a name outside is asked once, from a port and under a number of its own, and then known", () =>
  withResolvers({}, async ({ resolvers, ask, counts }) => {
    const resolver = resolvers[first]!;
    resolver.reply = good;
    const [one, other] = await Promise.all([ask(query("www.example.org", 1)), ask(query("www.example.org", 2))]);
    assert.deepEqual([one?.id, other?.id, dataIn(one), dataIn(other)], [1, 2, "203.0.113.9", "203.0.113.9"]);
    assert.equal(dataIn(await ask(query("WWW.example.org", 3))), "203.0.113.9");
    assert.deepEqual([resolver.asked.length, counts().cached], [1, 1]);
    for (let number = 0; number < 8; number += 1) await ask(query(`n${number}.example.org`));
    assert.equal(new Set(resolver.asked.map(({ port }) => port)).size, 9, "each from a port of its own");
    assert.ok(new Set(resolver.asked.map(({ id }) => id)).size > 6, "numbers are drawn");
    assert.equal(resolvers[second]?.asked.length, 0);
  }));

test("names of the inside, and all names where the cell may ask nobody, go to the DNS Manager alone", async () => {
  const inside = ["web1.shop.cells.internal", "db", "2.0.64.10.in-addr.arpa", "printer.local"];
  await withResolvers({}, async ({ resolvers, ask }) => {
    resolvers[first]!.reply = good;
    for (const name of inside) assert.equal(rcodeOf(await ask(query(name))), "REFUSED", name);
    assert.equal(rcodeOf(await ask(query("www.example.org", 1, "HTTPS"))), "NOTIMP", "its data may hold addresses");
    assert.deepEqual(resolvers[first]?.asked, []);
    assert.equal(dataIn(await ask(query("www.example.org"))), "203.0.113.9", "while another name is asked");
  });
  await withResolvers({ resolvers: async () => [] }, async ({ resolvers, ask }) => {
    resolvers[first]!.reply = good;
    assert.equal(rcodeOf(await ask(query("www.example.org"))), "REFUSED");
    assert.deepEqual(resolvers[first]?.asked, []);
  });
});

test("another resolver is asked when one is silent or cannot, and the one that answered is the first from then on", () =>
  withResolvers({}, async ({ resolvers, ask, counts }) => {
    resolvers[second]!.reply = good;
    assert.equal(dataIn(await ask(query("one.example.org"))), "203.0.113.9");
    assert.equal(dataIn(await ask(query("two.example.org"))), "203.0.113.9");
    assert.deepEqual([resolvers[first]?.asked.length, resolvers[second]?.asked.length], [1, 2]);
    resolvers[second]!.reply = () => ({ flags: 0x8182 }) as Partial<Packet>;
    assert.equal(rcodeOf(await ask(query("three.example.org"))), "SERVFAIL");
    const before = resolvers[second]?.asked.length;
    assert.equal(rcodeOf(await ask(query("three.example.org"))), "SERVFAIL", "for a moment nobody is asked again");
    assert.deepEqual([resolvers[second]?.asked.length, counts().failed], [before, 1]);
  }));

test("an answer from elsewhere is none, nor one under another number, and many of these end the attempt", () =>
  withResolvers({ attemptMs: 30_000 }, async ({ resolvers, ask, port }) => {
    const forged = { answers: [address("www.example.org", "203.0.113.66")] };
    const other = createSocket("udp4");
    other.bind(port, stranger);
    await once(other, "listening");
    resolvers[first]!.reply = (asked, from) => {
      for (let count = 0; count < 20; count += 1) other.send(answerOf(asked, forged), from.port, from.address);
      return Array.from({ length: 8 }, (_, index) => ({ ...forged, id: ((asked.id ?? 0) + 1 + index) % 65_536 }));
    };
    resolvers[second]!.reply = good;
    const answer = await ask(query("www.example.org"));
    other.close();
    assert.equal(dataIn(answer), "203.0.113.9");
    assert.deepEqual([resolvers[first]?.asked.length, resolvers[second]?.asked.length], [1, 1]);
  }));

test("a real resolver: an alias, a name that is not there, one that leads inside, an answer too long for UDP", async () => {
  const place = "127.16.53.5";
  await withResolvers(
    { resolvers: async () => [place], attemptMs: 1_000 },
    async ({ ask, askByTcp, port, counts }) => {
      const texts = Array.from(
        { length: 9 },
        (_, index) => `--txt-record=long.example.org,${String(index).repeat(200)}`,
      );
      const server = spawn("dnsmasq", [
        "--keep-in-foreground",
        `--port=${port}`,
        `--listen-address=${place}`,
        "--bind-interfaces",
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--local=/example.org/",
        "--user=root",
        "--pid-file",
        "--host-record=www.example.org,203.0.113.9",
        "--cname=alias.example.org,www.example.org",
        "--host-record=rebound.example.org,10.64.0.2",
        ...texts,
      ]);
      try {
        const first = async (): Promise<Packet | null> => {
          for (let tries = 0; tries < 40; tries += 1) {
            const answer = await ask(query("alias.example.org"));
            if (answer?.answers?.length) return answer;
            await new Promise((resolve) => setTimeout(resolve, 250));
          }
          return null;
        };
        const answer = await first();
        assert.deepEqual(
          answer?.answers?.map((each) => ("data" in each ? each.data : null)),
          ["www.example.org", "203.0.113.9"],
        );
        assert.equal(rcodeOf(await ask(query("nobody.example.org"))), "NXDOMAIN");
        assert.equal(rcodeOf(await ask(query("rebound.example.org"))), "REFUSED");
        const before = counts();
        const long = await ask(query("long.example.org", 5, "TXT"));
        assert.ok((long?.answers?.length ?? 0) > 0, "as many records as fit");
        assert.ok((long as { flag_tc?: boolean } | null)?.flag_tc, "and that some are missing");
        const whole = await askByTcp(query("long.example.org", 6, "TXT"));
        assert.deepEqual([whole?.id, whole?.answers?.length], [6, 9]);
        assert.equal(counts().failed, before.failed);
      } finally {
        const ended = once(server, "exit");
        server.kill();
        await ended;
      }
    },
    5_000,
  );
});

test("what leads inside is refused, for whoever asks", () =>
  withResolvers({}, async ({ resolvers, ask, counts }) => {
    resolvers[first]!.reply = ({ questions }) => ({ answers: [address(questions?.[0]?.name ?? "", "10.64.0.2")] });
    assert.equal(rcodeOf(await ask(query("rebound.example.org"))), "REFUSED");
    assert.equal(counts().inside, 1);
  }));

test("an answer that does not fit is fetched by TCP, within a bound", () =>
  withResolvers({ resolvers: async () => [first], attemptMs: 30_000 }, async ({ resolvers, ask, port }) => {
    resolvers[first]!.reply = () => ({ flags: 0x8380 }) as Partial<Packet>;
    let size = 3;
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.once("data", (part) => {
        const asked = decode(part.subarray(2));
        const name = asked.questions?.[0]?.name ?? "";
        const all = Array.from({ length: size }, (_, index) => address(name, `203.0.113.${1 + (index % 250)}`));
        const answer = answerOf(asked, { answers: all });
        // Of one that is longer than any it is enough to hear how long it will be.
        if (size === 0) return socket.write(Buffer.from([0x40, 0x01]));
        const length = Buffer.from([answer.length >> 8, answer.length & 255]);
        socket.write(Buffer.concat([length, answer.subarray(0, 20)]));
        socket.write(answer.subarray(20));
      });
    });
    server.listen(port, first);
    await once(server, "listening");
    try {
      assert.equal((await ask(query("long.example.org")))?.answers?.length, 3);
      size = 0;
      assert.equal(rcodeOf(await ask(query("longer.example.org"))), "SERVFAIL");
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  }));

test("one VM has 16 questions under way and no more, which takes nothing from names of the inside", () =>
  withResolvers(
    { attemptMs: 400 },
    async ({ resolvers, ask, counts }) => {
      const all = Array.from({ length: 30 }, (_, number) => ask(query(`n${number}.example.org`)));
      assert.equal(rcodeOf(await ask(query("web1.shop.cells.internal"))), "REFUSED");
      assert.equal(resolvers[first]?.asked.length, 16);
      assert.equal(counts().refused, 14);
      await Promise.all(all);
    },
    2_000,
  ));
