import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, createServer, type TLSSocket } from "node:tls";
import fc from "fast-check";
import type { Frame } from "../../../core/distribution/node/frames.ts";
import type { NodeInput } from "../../../core/distribution/node/types.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { createTestInstallation, eventually } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { transportLimits } from "../connections/connection.ts";
import { deafListener } from "../deaf-listener.testing.ts";
import { aliveFrame, channelHead, createFrameReader, createPieceReader, encodeFrame } from "../frame-codec.ts";
import { readCredentials } from "../mutual-tls.ts";
import { createTransport, type Transport } from "../transport.ts";
import type { Control } from "./control.ts";
import { createLinks, type Links, linkProtocol, shareLinks } from "./links.ts";
import { prove, sessionSecret } from "./proof.ts";

const installation = await createTestInstallation("links");
const closing: (() => unknown)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
  await installation.remove();
});

interface End {
  readonly name: PeerName;
  readonly configuration: ProcessConfiguration;
  readonly transport: Transport;
  readonly inputs: NodeInput[];
  readonly logs: string[];
  /** Connections that stand: the peer of each, by its number. */
  peers(): ReadonlyMap<number, PeerName>;
  heard(peer: PeerName): readonly Json[];
  say(peer: PeerName, value: Json): void;
  stop(): Promise<void>;
}
const standing = (inputs: readonly NodeInput[]): ReadonlyMap<number, PeerName> => {
  const found = new Map<number, PeerName>();
  for (const input of inputs) {
    if (input.kind === "connected") found.set(input.connection, input.peer);
    if (input.kind === "disconnected") found.delete(input.connection);
  }
  return found;
};
const configurations = new Map<string, ProcessConfiguration>();
/** A service of a process, which is what shares links. */
const serve = async (links: Links, name: string, limits = transportLimits): Promise<End> => {
  const configuration = configurations.get(name) ?? (await installation.configure(peerName(name))).configuration;
  configurations.set(name, configuration);
  const inputs: NodeInput[] = [];
  const logs: string[] = [];
  const transport = await shareLinks(links, () =>
    createTransport(
      configuration,
      { input: (input) => inputs.push(input), log: (event, { why }) => logs.push(`${event} ${String(why)}`) },
      limits,
    ),
  );
  const stop = (): Promise<void> => transport.stop();
  closing.push(stop);
  const peers = () => standing(inputs);
  const numberOf = (peer: PeerName): number =>
    [...peers()].find(([, other]) => other === peer)?.[0] ?? assert.fail(`${name} has no connection to ${peer}`);
  return {
    name: configuration.name,
    configuration,
    transport,
    inputs,
    logs,
    peers,
    stop,
    heard: (peer) => {
      const all = new Map<number, PeerName>();
      const found: Json[] = [];
      for (const input of inputs) {
        if (input.kind === "connected") all.set(input.connection, input.peer);
        if (input.kind === "frame" && all.get(input.connection) === peer) found.push(input.frame as Json);
      }
      return found;
    },
    say: (peer, value) => transport.send(numberOf(peer), [frameOf(value)]),
  };
};
const frameOf = (value: Json): Frame => ({ frame: "actual", key: "k", seq: 1, value }) as unknown as Frame;
const names = (end: End): readonly string[] => [...end.peers().values()].sort();

/** Two processes with two services each, each of one connected to each of the other. */
const twoProcesses = async (tag: string) => {
  const [here, there] = [createLinks(transportLimits), createLinks(transportLimits)];
  const own = [await serve(here, `controller.${tag}1`), await serve(here, `controller.${tag}2`)] as const;
  const others = [await serve(there, `host.${tag}1`), await serve(there, `host.${tag}2`)] as const;
  for (const one of own) for (const other of others) one.transport.connect(other.name);
  const all = [...own, ...others];
  await eventually("all pairs are connected", () => all.every((end) => end.peers().size === 2));
  return { here, there, own, others, all };
};

test("the services of two processes share one link, and each hears what is said to it", async () => {
  const { here, there, own, others, all } = await twoProcesses("share");
  assert.deepEqual([here.count(), there.count()], [1, 1]);
  for (const end of all) for (const peer of end.peers().values()) end.say(peer, `${end.name} to ${peer}`);
  for (const end of all)
    for (const peer of new Set(end.peers().values()))
      await eventually(`${end.name} hears ${peer}`, () => end.heard(peer).length > 0);
  for (const [ends, peers] of [[own, others] as const, [others, own] as const])
    for (const end of ends)
      for (const { name } of peers) assert.deepEqual(end.heard(name), [frameOf(`${name} to ${end.name}`)]);
  // The other way round, who was reached asks on the same link.
  others[1].transport.connect(own[0].name);
  await eventually("a third connection", () => own[0].peers().size === 3);
  assert.equal(here.count(), 1);
});

test("services that reach another process at the same time end with one link, as their handshakes take longer than they wait", async () => {
  const atOnce = { ...transportLimits, othersMs: 0 };
  const [here, there] = [createLinks(atOnce), createLinks(atOnce)];
  const own = await Promise.all([1, 2, 3].map((number) => serve(here, `controller.spare${number}`, atOnce)));
  const others = await Promise.all([1, 2, 3].map((number) => serve(there, `host.spare${number}`, atOnce)));
  for (const one of own) for (const other of others) one.transport.connect(other.name);
  await eventually("all pairs are connected", () => [...own, ...others].every((end) => new Set(names(end)).size === 3));
  await eventually("the spare ones have ended", () => here.count() === 1 && there.count() === 1);
  for (const one of own) for (const other of others) one.say(other.name, `${one.name} to ${other.name}`);
  for (const one of own)
    for (const other of others) await eventually("each hears it", () => other.heard(one.name).length > 0);
  const ends = own.flatMap(({ inputs }) => inputs).filter(({ kind }) => kind === "disconnected");
  assert.equal(ends.length, 0, "what was spare was nobody's connection");
  assert.ok(own.every((end) => names(end).length === 3));
});

test("a service that ends takes its own connections along, the link's first too, and comes back on the link", async () => {
  const { here, there, own, others } = await twoProcesses("ends");
  const before = others.map((end) => [...end.peers()].filter(([, peer]) => peer === own[1].name));
  own[0].say(others[0].name, "the last word");
  await own[0].stop();
  await eventually("the others notice", () => others.every((end) => end.peers().size === 1));
  assert.deepEqual(others[0].heard(own[0].name), [frameOf("the last word")]);
  assert.deepEqual(
    others.map((end) => [...end.peers()]),
    before,
    "the other service's connections are the same",
  );
  const again = await serve(here, own[0].name);
  for (const other of others) again.transport.connect(other.name);
  await eventually("it is back", () => others.every((end) => end.peers().size === 2));
  assert.deepEqual([here.count(), there.count()], [1, 1]);
  // The last one closes the link; who dials goes on trying.
  for (const other of others) await other.stop();
  await eventually("the link is closed", () => here.count() === 0 && there.count() === 0);
  const back = await serve(there, others[0].name);
  await eventually("who dials has not given up", () => back.peers().size === 2);
});

test("who waits for its next attempt asks on a link that has come from there meanwhile", async () => {
  const patient = { ...transportLimits, retryMs: { first: 3_600_000, last: 3_600_000 } };
  const [here, there] = [createLinks(transportLimits), createLinks(transportLimits)];
  // Its machine is not there yet, and an hour is longer than this test.
  await (await serve(there, "host.later")).stop();
  const waits = await serve(here, "controller.later", patient);
  waits.transport.connect(peerName("host.later"));
  await eventually("the attempt has failed", () => waits.logs.some((line) => /^transport\/unreachable/.test(line)));
  const later = await serve(there, "host.later");
  later.transport.connect(waits.name);
  await eventually("both have their connection", () => later.peers().size === 2 && waits.peers().size === 2);
  assert.deepEqual([here.count(), there.count()], [1, 1]);
});

test("who waits for a kernel that does not answer asks on the link, too", async () => {
  const [here, there] = [createLinks(transportLimits), createLinks(transportLimits)];
  const patient = { ...transportLimits, reachMs: 3_600_000, retryMs: { first: 3_600_000, last: 3_600_000 } };
  const later = await serve(there, "host.deaf");
  const waits = await serve(here, "controller.deaf", patient);
  const { peersFile } = waits.configuration;
  const book = readFileSync(peersFile, "utf8");
  const deaf = await deafListener();
  closing.push(() => deaf.end());
  const { peers } = JSON.parse(book) as { readonly peers: Readonly<Record<string, string>> };
  writeFileSync(peersFile, JSON.stringify({ peers: { ...peers, [later.name]: `127.0.0.1:${deaf.port}:1` } }));
  waits.transport.connect(later.name);
  // It has read where it is, and begun to reach it.
  await new Promise((resolve) => setTimeout(resolve, 50));
  writeFileSync(peersFile, book);
  later.transport.connect(waits.name);
  await eventually("both have their connection", () => later.peers().size === 2 && waits.peers().size === 2);
  assert.deepEqual([here.count(), there.count()], [1, 1]);
});

test("a service whose key is another's now loses its connections, and the link stays for the others", async () => {
  const { here, own, others } = await twoProcesses("key");
  const { peersFile } = others[0].configuration;
  const { peers } = JSON.parse(readFileSync(peersFile, "utf8"));
  const keys = { [own[1].name]: { key: "0".repeat(64), sinceMs: Date.now() } };
  writeFileSync(peersFile, JSON.stringify({ peers, keys }));
  await eventually("it is put out", () => others.every((end) => !names(end).includes(own[1].name)));
  assert.ok(others.every((end) => names(end).includes(own[0].name)));
  assert.equal(here.count(), 1);
});

/** The other end of a link, as its wire has it, with the certificate of a service. */
const stranger = async (as: ProcessConfiguration, port: number) => {
  const socket = connect({
    ...readCredentials(as),
    port,
    host: "127.0.0.1",
    checkServerIdentity: () => undefined,
    ALPNProtocols: [linkProtocol],
  });
  const heard: Control[] = [];
  const reader = createPieceReader();
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => {
    for (const { channel, frame } of reader.read(chunk)) if (channel === 0) heard.push(frame as unknown as Control);
  });
  closing.push(() => socket.destroy());
  await once(socket, "secureConnect");
  const piece = (channel: number, value: Json): void => {
    socket.write(Buffer.concat([channelHead(channel), encodeFrame(value as unknown as Frame) ?? assert.fail()]));
  };
  piece(1, { frame: "goodbye" });
  const answer = async (channel: number): Promise<Control> => {
    const found = (): Control | undefined => heard.find((one) => "channel" in one && one.channel === channel);
    await eventually(`channel ${channel} is answered`, () => found() !== undefined || socket.closed);
    return found() ?? assert.fail("the link has ended");
  };
  return { socket, heard, piece, answer };
};
type Configured = Awaited<ReturnType<typeof installation.configure>>;
type Stranger = Awaited<ReturnType<typeof stranger>>;

test("a channel is of who proves its key on this link, for this channel and pair, and of nobody else", async () => {
  const links = createLinks(transportLimits);
  const served = await serve(links, "placer");
  const configured = async (name: string) => (await installation.configure(peerName(name))).configuration;
  const [bad, good] = [await configured("controller.bad"), await configured("controller.good")];
  const at = await stranger(bad, served.transport.port);
  const elsewhere = await stranger(bad, served.transport.port);
  const to = served.name;
  const secretOf = ({ socket }: Stranger): Buffer => sessionSecret(socket);
  const ask = async (channel: number, from: PeerName, proof: object, whom = to): Promise<string> => {
    at.piece(0, { say: "open", channel, from, to: whom, ...proof });
    const answer = await at.answer(channel);
    return answer.say === "refused" ? answer.why : answer.say;
  };
  const asks = (channel: number, other = to) => ({ channel, by: "asks", other }) as const;
  const ofGood = prove(good, secretOf(at), asks(3));
  assert.match(
    await ask(3, good.name, { ...ofGood, signature: prove(bad, secretOf(at), asks(3)).signature }),
    /does not show/,
  );
  assert.match(await ask(5, good.name, ofGood), /does not show/, "of another channel");
  assert.match(await ask(7, good.name, prove(good, secretOf(elsewhere), asks(7))), /does not show/, "of another link");
  assert.match(await ask(9, good.name, prove(good, secretOf(at), asks(9, bad.name))), /does not show/, "for another");
  const answers = prove(good, secretOf(at), { channel: 11, by: "answers", other: to });
  assert.match(await ask(11, good.name, answers), /does not show/, "an answer");
  const named = { ...good, name: bad.name };
  assert.match(
    await ask(13, bad.name, prove(named, secretOf(at), asks(13))),
    /"controller.good", not "controller.bad"/,
  );
  assert.match(await ask(15, good.name, prove(good, secretOf(at), asks(15, good.name)), good.name), /not here/);
  assert.deepEqual(names(served), [bad.name, bad.name], "nobody was let in");
  assert.ok(served.logs.some((line) => /^transport\/refused it does not show/.test(line)));

  assert.equal(await ask(17, good.name, prove(good, secretOf(at), asks(17))), "opened", "with a proof it is");
  assert.deepEqual(names(served), [bad.name, bad.name, good.name]);
  at.piece(17, frameOf("news") as unknown as Json);
  await eventually("it is heard", () => served.heard(good.name).length === 1);
});

const countOf = ({ transport }: End, reason: string): number =>
  transport
    .measure()
    .flatMap(({ samples }) => samples)
    .find(({ labels }) => labels.reason === reason)?.value ?? 0;

test("what makes no sense on a link ends it", async () => {
  const served = await serve(createLinks(transportLimits), "storage-manager");
  const { configuration } = await installation.configure(peerName("controller.odd"));
  const proof = { certificate: "AA==", signature: "AA==" };
  const open = { say: "open", from: "controller.odd", to: "storage-manager", ...proof };
  const nonsense: readonly Json[] = [
    [],
    ["open"],
    { say: "what", channel: 3 },
    { say: "closed" },
    { say: "closed", channel: 1.5 },

    { say: "serves", services: [{ name: "a", port: 0 }] },
    { say: "serves", services: Array(65).fill({ name: "a", port: 1 }) },

    { ...open, channel: 1 },
    { ...open, channel: 4 },
    { ...open, channel: 3, from: "" },
    { ...open, channel: 3, certificate: "A".repeat(20_000) },
  ];
  const refused = (): number => countOf(served, "no frame");
  for (const [index, value] of nonsense.entries()) {
    const at = await stranger(configuration, served.transport.port);
    at.piece(0, value);
    await eventually(`${JSON.stringify(value).slice(0, 60)} ends it`, () => at.socket.closed);
    // Silence ends it as well.
    assert.equal(refused(), index + 1, JSON.stringify(value).slice(0, 60));
  }
  // Who proves nothing over and over is put out.
  const at = await stranger(configuration, served.transport.port);
  for (let channel = 3; channel < 200 && !at.socket.closed; channel += 2) at.piece(0, { ...open, channel });
  await eventually("it is put out", () => at.socket.closed);
  assert.equal(refused(), nonsense.length + 1);
  await eventually("nobody is left", () => served.peers().size === 0);
});

/** Asks for a channel, with a proof that holds. */
const asking = (at: Stranger, by: ProcessConfiguration, to: PeerName) => (channel: number) =>
  at.piece(0, {
    say: "open",
    channel,
    from: by.name,
    to,
    ...prove(by, sessionSecret(at.socket), { channel, by: "asks", other: to }),
  });

test("who has a key may be refused as often as it likes, and its neighbours keep their link", async () => {
  const served = await serve(createLinks(transportLimits), "address-manager");
  const { configuration } = await installation.configure(peerName("controller.often"));
  const at = await stranger(configuration, served.transport.port);
  const ask = asking(at, configuration, peerName("controller.away"));
  for (let channel = 3; channel < 203; channel += 2) ask(channel);
  assert.equal((await at.answer(201)).say, "refused");
  assert.deepEqual([at.socket.closed, names(served)], [false, [configuration.name]]);
});

test("who asks and never reads the answers is put out", async () => {
  const served = await serve(createLinks(transportLimits), "dns-manager");
  const { configuration } = await installation.configure(peerName("controller.deaf"));
  const at = await stranger(configuration, served.transport.port);
  const ask = asking(at, configuration, served.name);
  at.socket.pause();
  const nobody = { say: "open", from: "n".repeat(250), to: "n".repeat(250), certificate: "AA==", signature: "AA==" };
  const isOut = (): boolean => countOf(served, "no frame") > 0;
  // Its kernel and the other one take some megabytes.
  for (let channel = 3; channel < 400_000 && !isOut(); channel += 2) {
    // A proof that holds now and then: it is not put out for the others.
    if (channel % 51 === 0) ask(channel);
    else at.piece(0, { ...nobody, channel });
    if (channel % 999 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await eventually("it is put out", isOut);
  assert.ok(served.logs.some((line) => /has not read/.test(line)));
});

/** A service, and a stranger who holds a channel for "controller.silent" and says nothing on it. */
const withSilent = async (name: string, limits: typeof transportLimits) => {
  const served = await serve(createLinks(limits), name, limits);
  const [{ configuration: says }, { configuration: silent }] = (await Promise.all(
    ["controller.says", "controller.silent"].map((each) => installation.configure(peerName(each))),
  )) as [Configured, Configured];
  const at = await stranger(says, served.transport.port);
  const alive = setInterval(() => at.socket.write(Buffer.alloc(8)), limits.aliveEveryMs);
  closing.push(() => clearInterval(alive));
  asking(at, silent, served.name)(3);
  assert.equal((await at.answer(3)).say, "opened");
  return { served, at, says: says.name, silent: silent.name };
};

test("a channel on which nothing comes ends, and the others of its link do not", async () => {
  const limits = { ...transportLimits, handshakeMs: 500, aliveEveryMs: 100 };
  const { served, at, says } = await withSilent("cell-manager", limits);
  await eventually("it is closed", () => at.heard.some((one) => one.say === "closed" && one.channel === 3));
  assert.deepEqual([countOf(served, "no first frame"), names(served)], [1, [says]]);
});

test("a channel has the time of a handshake for its first frame, and not that of silence", async () => {
  const limits = { ...transportLimits, silenceMs: 1500, aliveEveryMs: 100 };
  const { served, says, silent } = await withSilent("cell-manager.2", limits);
  await new Promise((resolve) => setTimeout(resolve, 2 * limits.silenceMs));
  assert.deepEqual([countOf(served, "no first frame"), names(served)], [0, [says, silent]]);
});

test("a link rests as long as no channel of it is of two whose silence says something", async () => {
  const limits = { ...transportLimits, aliveEveryMs: 100, restEveryMs: 3_600_000 };
  const served = await serve(createLinks(limits), "storage-manager.9", limits);
  const [{ configuration: first }, { configuration: counted }] = (await Promise.all(
    ["controller.rests", "agent.counted"].map((name) => installation.configure(peerName(name))),
  )) as [Configured, Configured];
  const at = await stranger(first, served.transport.port);
  let alive = 0;
  const reader = createPieceReader();
  at.socket.on("data", (chunk: Buffer) => {
    const before = reader.cut;
    const frames = reader.read(chunk).length;
    alive += reader.cut - before - frames;
  });
  const rests = async (why: string): Promise<void> => {
    at.socket.write(Buffer.alloc(8));
    // Ten are said in a second on a link that does not rest.
    for (let tries = 0; tries < 20; tries += 1) {
      const before = alive;
      await sleep(1000);
      assert.equal(at.socket.closed, false, why);
      if (alive === before) return;
    }
    assert.fail(why);
  };
  await rests("with its first channel");
  asking(at, counted, served.name)(3);
  assert.equal((await at.answer(3)).say, "opened");
  at.piece(3, { frame: "goodbye" });
  const before = alive;
  await eventually("signs of life come", () => alive >= before + 10);
  at.piece(0, { say: "closed", channel: 3 });
  await rests("after its channel has ended");
});

test("a service that cannot prove its key refuses, keeps no place, and answers when it can again", async () => {
  const served = await serve(createLinks(transportLimits), "directory");
  const { configuration } = await installation.configure(peerName("controller.asks"));
  const at = await stranger(configuration, served.transport.port);
  const ask = asking(at, configuration, served.name);
  const { keyFile } = served.configuration.certificate;
  const key = readFileSync(keyFile);
  rmSync(keyFile);
  for (let channel = 3; channel < 3 + 2 * transportLimits.connectionsOfPeer; channel += 2) ask(channel);
  const answer = await at.answer(1 + 2 * transportLimits.connectionsOfPeer);
  assert.match(answer.say === "refused" ? answer.why : answer.say, /certificate of "directory" cannot be used/);
  assert.deepEqual(names(served), [configuration.name], "the first one did not give way");
  writeFileSync(keyFile, key);
  ask(101);
  assert.equal((await at.answer(101)).say, "opened");
});

test("an end that knows no links has its one connection as before", async () => {
  const { configuration } = await installation.configure(peerName("host.old"));
  const sockets: TLSSocket[] = [];
  const heard: Json[] = [];
  const reader = createFrameReader();
  const old = createServer({ ...readCredentials(configuration), requestCert: true }, (socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => heard.push(...reader.read(chunk)));
    socket.write(Buffer.concat([aliveFrame, encodeFrame(frameOf("from an old one")) ?? assert.fail()]));
  });
  const port = configuration.distributionPort ?? assert.fail();
  await new Promise((resolve) => old.listen(port, "127.0.0.1", () => resolve(null)));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    old.close();
  });
  const links = createLinks(transportLimits);
  const [one, two] = [await serve(links, "controller.new1"), await serve(links, "controller.new2")];
  for (const each of [one, two]) {
    each.transport.connect(configuration.name);
    await eventually("it is connected", () => each.heard(configuration.name).length === 1);
    each.say(configuration.name, each.name);
    await eventually("it hears", () => heard.length > 0);
    assert.deepEqual(heard.splice(0), [frameOf(each.name)]);
  }
  assert.deepEqual([sockets.length, links.count()], [2, 0]);
});

test("a peer that is alive and never says who is there is given up, and taken when it says so", async () => {
  const { configuration } = await installation.configure(peerName("host.mute"));
  const sockets: TLSSocket[] = [];
  const port = configuration.distributionPort ?? assert.fail();
  const said = Buffer.from(JSON.stringify({ say: "serves", services: [{ name: configuration.name, port }] }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(said.length);
  let isMute = true;
  const options = { ...readCredentials(configuration), requestCert: true, ALPNProtocols: [linkProtocol] };
  const server = createServer(options, (socket) => {
    sockets.push(socket.on("error", () => undefined).resume());
    const alive = setInterval(() => socket.write(Buffer.alloc(8)), 100);
    socket.on("close", () => clearInterval(alive));
    const first = encodeFrame(frameOf("first")) ?? assert.fail();
    if (!isMute) socket.write(Buffer.concat([channelHead(0), length, said, channelHead(1), first]));
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(null)));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const limits = { ...transportLimits, handshakeMs: 2000, retryMs: { first: 10, last: 20 } };
  const asks = await serve(createLinks(limits), "controller.patient", limits);
  asks.transport.connect(configuration.name);
  await eventually("it is given up", () => sockets[0]?.closed === true);
  assert.ok(asks.logs.includes("transport/unreachable it did not say which services are there within 2000 ms"));
  assert.ok(asks.inputs.some((input) => input.kind === "unreachable" && input.peer === configuration.name));
  assert.equal(asks.peers().size, 0);
  isMute = false;
  await eventually("it is taken", () => asks.peers().size === 1);
  const [number] = [...asks.peers().keys()];
  await new Promise((resolve) => setTimeout(resolve, limits.handshakeMs + 500));
  assert.deepEqual([...asks.peers().keys()], [number], "who has said it is given no time for it any more");
});

test("pieces come out as they went in, however the stream was cut", () => {
  const pieces = fc.array(fc.tuple(fc.nat(2 ** 32 - 1), fc.record({ value: fc.jsonValue() })));
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(40)), (said, cuts) => {
      const bytes = said.flatMap(([channel, value]) => [
        channelHead(channel),
        encodeFrame(value as unknown as Frame) ?? assert.fail(),
      ]);
      const stream = Buffer.concat([...bytes, Buffer.alloc(8)]);
      const reader = createPieceReader();
      const found: Json[] = [];
      let at = 0;
      for (const cut of [...cuts, stream.length]) {
        found.push(...reader.read(stream.subarray(at, at + cut)).map(({ channel, frame }) => [channel, frame]));
        at += cut;
      }
      assert.equal(JSON.stringify(found), JSON.stringify(said));
      assert.deepEqual([reader.cut, reader.waiting], [said.length + 1, 0]);
    }),
  );
});
