import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { type Ipv4, ipv4, peerName, uid } from "../../model/cell/identifiers.ts";
import {
  type ClientMessage,
  channels,
  inputWindowBytes,
  type SessionMessage,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import type { Json } from "../../model/json/json.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { encodeCapability, type HostCapability, hostCapabilityHeader } from "../../runtime/http/session-capability.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import type { HypervisorDriver, MachineEnd } from "../drivers/hypervisor/driver.ts";
import type { ConsoleViewer, MachineConsole } from "../drivers/hypervisor/guest/console.ts";
import type { GuestCommand, GuestOutput, GuestSignal } from "../drivers/hypervisor/guest/guest-command.ts";
import type { HostRequest } from "../host-requests.ts";
import { createHostSessions, type HostSessions, type SessionLimits } from "./sessions.ts";

/** The host's end of sessions over real mutual TLS; console and guest are the test's. */
const vm = uid("c1-1");
const incarnation = 3;
const [shop, other] = [peerName("controller.shop"), peerName("controller.other")];
const clients: WebSocket[] = [];
const configurations = new Map<string, ProcessConfiguration>();
let installation: TestInstallation;
let server: PeerServer;
let sessions: HostSessions;

class FakeConsole implements MachineConsole {
  readonly watching = new Set<ConsoleViewer>();
  typed = "";
  /** Keeps what is typed from being taken. */
  stuck = false;
  get viewers(): number {
    return this.watching.size;
  }
  say(bytes: Buffer): void {
    for (const viewer of this.watching) viewer.output(bytes);
  }
  attach(viewer: ConsoleViewer): ReturnType<MachineConsole["attach"]> {
    this.watching.add(viewer);
    const tell = (): void => {
      for (const each of this.watching) each.viewers(this.watching.size);
    };
    tell();
    return {
      past: Buffer.from("recorded\n"),
      write: async (bytes) => {
        if (this.stuck) await new Promise(() => undefined);
        this.typed += bytes.toString("utf8");
      },
      detach: () => {
        if (this.watching.delete(viewer)) tell();
      },
    };
  }
  close(): void {}
}
let console: FakeConsole;
let end: (end: MachineEnd) => void = () => undefined;
interface FakeRun {
  readonly command: GuestCommand;
  readonly output: GuestOutput;
  readonly signals: GuestSignal[];
  exit(code: number): void;
}
let runs: FakeRun[] = [];
let logged: string[] = [];

let life = "";
/** Of a machine with a screen: where its VNC server would listen. */
let screen: string | null = null;
const hypervisor: Pick<HypervisorDriver, "onEnd" | "console" | "kept" | "run" | "display"> = {
  kept: async (of) => (of.cell === "shop" && of.incarnation === 2 ? Buffer.from("panic\n") : null),
  display: () => (screen === null ? null : { incarnation, connect: () => connect(screen ?? "") }),
  onEnd: (listener) => {
    end = listener;
  },
  console: (asked) => (asked === vm ? { incarnation, console } : null),
  run: (_vm, command, output) => {
    let exit: (code: number) => void = () => undefined;
    const exitCode = new Promise<number>((resolve) => {
      exit = resolve;
    });
    const signals: GuestSignal[] = [];
    runs.push({ command, output, signals, exit: (code) => exit(code) });
    return { exitCode, signal: (name) => void signals.push(name) };
  },
};
/** Then the other cell has a VM here, too. */
let isOfBoth = false;
/** As the Host Manager's service answers. */
const answer = async (json: Json): Promise<Json> => {
  const asked = json as unknown as Extract<HostRequest, { kind: "exec-target" }>;
  if (asked.vm !== vm || (asked.client !== shop && !isOfBoth))
    return { refused: `no VM "${asked.vm}" of this cell runs on this host` };
  if (asked.incarnation !== incarnation)
    return { refused: `incarnation ${incarnation} runs here, not ${asked.incarnation}` };
  return address === null ? { vm } : { vm, address };
};
/** Of the machine; null: it has no interface. */
let address: Ipv4 | null = null;

before(async () => {
  installation = await createTestInstallation("sessions");
  for (const name of ["host.h1", shop, other, "placer"])
    configurations.set(name, (await installation.configure(peerName(name))).configuration);
});
after(() => installation.remove());
const configurationOf = (name: string): ProcessConfiguration => {
  const found = configurations.get(name);
  assert.ok(found);
  return found;
};
const start = async (limits: Partial<SessionLimits> = {}): Promise<void> => {
  console = new FakeConsole();
  runs = [];
  logged = [];
  const log = (event: string, fields: Json): void => void logged.push(JSON.stringify([event, fields]));
  const lives = async () => () => life;
  const options = { hypervisor: hypervisor as HypervisorDriver, request: answer, log, limits, lives };
  sessions = createHostSessions(options);
  server = await servePeers(configurationOf("host.h1"), (_request, response) => void response.end(), sessions.upgrade);
};
const stop = async (): Promise<void> => {
  for (const client of clients.splice(0)) client.terminate();
  await server.stop();
};
afterEach(() => stop());
let nonces = 0;
const capability = (change: Partial<HostCapability> = {}): HostCapability => {
  nonces += 1;
  const nonce = `nonce-${String(nonces).padStart(20, "0")}`;
  return { vm, incarnation, verb: "console", expiresMs: Date.now() + 60_000, nonce, ...change };
};

interface Client {
  readonly socket: WebSocket;
  readonly messages: SessionMessage[];
  readonly received: { output: string; error: string; bytes: number };
  send(message: ClientMessage): void;
  of<K extends SessionMessage["kind"]>(kind: K): Promise<Extract<SessionMessage, { kind: K }>>;
}
/** Resolves with a client, or with the status and the sentence of a refusal. */
const open = async (text: string, peer: string = shop): Promise<Client | { status: number; why: string }> => {
  const { certFile, keyFile, caFile } = configurationOf(peer).certificate;
  const { address, httpPort } = configurationOf("host.h1");
  const socket = new WebSocket(`wss://${address}:${httpPort}/session`, sessionProtocol, {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ca: readFileSync(caFile),
    checkServerIdentity: () => false,
    headers: { [hostCapabilityHeader]: text },
  });
  clients.push(socket);
  const messages: SessionMessage[] = [];
  const received = { output: "", error: "", bytes: 0 };
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      received.bytes += data.length - 1;
      const stream = data[0] === channels.error ? "error" : "output";
      received[stream] = (received[stream] + data.subarray(1).toString("latin1")).slice(-100);
    } else messages.push(JSON.parse(String(data)) as SessionMessage);
  });
  const refusal = await new Promise<{ status: number; why: string } | null>((resolve) => {
    socket.once("open", () => resolve(null));
    socket.once("unexpected-response", async (_request, response) => {
      let body = "";
      for await (const chunk of response) body += String(chunk);
      resolve({ status: response.statusCode ?? 0, why: JSON.parse(body).error.message });
    });
  });
  socket.on("error", () => undefined);
  if (refusal !== null) return refusal;
  const of = async <K extends SessionMessage["kind"]>(kind: K): Promise<Extract<SessionMessage, { kind: K }>> => {
    const found = (): SessionMessage | undefined => messages.findLast((message) => message.kind === kind);
    await eventually(`a message "${kind}"`, () => found() !== undefined);
    return found() as Extract<SessionMessage, { kind: K }>;
  };
  return { socket, messages, received, send: (message) => socket.send(JSON.stringify(message)), of };
};
const opened = async (change: Partial<HostCapability> = {}): Promise<Client> => {
  const client = await open(encodeCapability(capability(change)));
  assert.ok("socket" in client, JSON.stringify(client));
  return client;
};
const refused = async (text: string, peer?: string): Promise<{ status: number; why: string }> => {
  const client = await open(text, peer);
  assert.ok("why" in client, "it was let in");
  return client;
};

test("only a fresh capability of this VM's controller, for this incarnation, opens a session", async () => {
  await start();
  const good = encodeCapability(capability());
  const wrong: readonly (readonly [string, string, number, RegExp])[] = [
    [good, "placer", 403, /placer may open no session: only the controller/],
    [good, other, 409, /no VM "c1-1" of this cell runs on this host/],
    ["", shop, 400, /needs a capability/],
    ["!".repeat(2000), shop, 400, /needs a capability/],
    [encodeCapability(capability({ verb: "format" as "exec" })), shop, 400, /needs a capability/],
    [encodeCapability(capability({ incarnation: 2 })), shop, 409, /incarnation 3 runs here, not 2/],
    [encodeCapability(capability({ vm: "c1-9" })), shop, 409, /no VM "c1-9"/],
    [encodeCapability(capability({ expiresMs: Date.now() - 60_000 })), shop, 403, /has expired/],
    [encodeCapability(capability({ expiresMs: Date.now() + 600_000 })), shop, 403, /valid for too long/],
  ];
  for (const [text, peer, status, why] of wrong) {
    const refusal = await refused(text, peer);
    assert.equal(refusal.status, status, refusal.why);
    assert.match(refusal.why, why);
  }
  const client = await open(good);
  assert.ok("socket" in client, "what others tried in vain still opens for its own controller");
  assert.match((await refused(good)).why, /was used before/);
  const line = '["session/opened",{"vm":"c1-1","incarnation":3,"verb":"console","peer":"controller.shop"}]';
  assert.deepEqual(logged, [line], "one line for the one that was opened, and nothing secret in it");
});

test("what an incarnation said before it ended is shown to its own cell, and to no later one of that name", async () => {
  await start();
  const past = { former: true, incarnation: 2 } as const;
  const client = await opened(past);
  assert.equal((await client.of("opened")).pastBytes, 6);
  assert.deepEqual([(await client.of("ended")).cause, client.received.output], ["machine-ended", "panic\n"]);
  assert.match((await refused(encodeCapability(capability({ ...past, incarnation: 1 })))).why, /keeps nothing of/);
  assert.equal((await refused(encodeCapability(capability(past)), other)).status, 404);
  life = "c2";
  assert.equal((await refused(encodeCapability(capability(past)))).status, 404);
  life = "";
});

test("all at a console see the same, all may type, and each is told of the others", async () => {
  await start();
  const one = await opened();
  assert.deepEqual(await one.of("opened"), { kind: "opened", incarnation, host: "", viewers: 1, pastBytes: 9 });
  const two = await opened();
  assert.equal((await two.of("opened")).viewers, 2);
  assert.equal((await one.of("viewers")).count, 2);
  console.say(Buffer.from("login: "));
  for (const client of [one, two])
    await eventually("both see it", () => client.received.output === "recorded\nlogin: ");
  one.socket.send(Buffer.from("root\n"));
  await eventually("it is typed", () => console.typed === "root\n");
  two.socket.send(Buffer.from("id\n"));
  await eventually("and by the other", () => console.typed === "root\nid\n");
  assert.equal((await two.of("taken")).bytes, 3);
  two.socket.close();
  await eventually(
    "the first hears that it is alone",
    () => one.messages.at(-1)?.kind === "viewers" && console.viewers === 1,
  );
});

test("a viewer that does not read misses output and is told how much; nobody else does, and nothing piles up", async () => {
  await start();
  const slow = await opened();
  const quick = await opened();
  await slow.of("opened");
  slow.socket.pause();
  const line = Buffer.alloc(64 * 1024, "x");
  const memory = process.memoryUsage().arrayBuffers;
  let said = 0;
  for (let count = 0; count < 320; count += 1) {
    console.say(line);
    said += line.length;
    for (let look = 0; quick.received.bytes < said + 9; look += 1) {
      assert.ok(look < 60_000, "the quick one has it");
      await sleep(1);
    }
  }
  assert.ok(process.memoryUsage().arrayBuffers - memory < 64 * 1024 * 1024, "unsent output is bounded");
  assert.equal(
    quick.messages.some(({ kind }) => kind === "lost"),
    false,
  );
  slow.socket.resume();
  const { bytes } = await slow.of("lost");
  await eventually("what was not lost arrives", () => slow.received.bytes === 9 + said - bytes);
  console.say(Buffer.from("here again"));
  await eventually("and it goes on", () => slow.received.output.endsWith("here again"));
});

test("input that the guest does not read is bounded", async () => {
  await start();
  console.stuck = true;
  const client = await opened();
  for (let count = 0; count < 5; count += 1) client.socket.send(Buffer.alloc(16 * 1024));
  const { cause, sentence } = await client.of("ended");
  assert.equal(cause, "protocol");
  assert.match(sentence, /more than 65536 bytes that the guest had not read yet/);
});

test("sessions end with their incarnation, with idleness, and with the service, each with a sentence", async () => {
  await start({ idleMs: 300 });
  const idle = await opened();
  assert.match((await idle.of("ended")).sentence, /nothing was typed and nothing arrived for 1 minute/);
  await stop();

  await start();
  const dying = await opened();
  end({ vm: uid("c1-7"), incarnation, ended: "stopped", detail: "another one" });
  end({ vm, incarnation, ended: "exited", detail: "the guest powered itself off" });
  assert.deepEqual(await dying.of("ended"), {
    kind: "ended",
    cause: "machine-ended",
    sentence: "incarnation 3 of this VM has ended: the guest powered itself off",
  });
  const last = await opened();
  const closed = once(last.socket, "close");
  await sessions.close();
  assert.match((await last.of("ended")).sentence, /the Host Manager of its host restarts; the VM goes on/);
  assert.equal((await closed)[0], 1012);
  assert.match((await refused(encodeCapability(capability()))).why, /about to restart/);
});

test("a VM and a host have only so many sessions, and a place that is left is free again", async () => {
  await start({ perMachine: 2 });
  const first = await opened();
  await opened({ verb: "exec" });
  const refusal = await refused(encodeCapability(capability()));
  assert.deepEqual(
    [refusal.status, refusal.why],
    [429, "2 sessions into this VM are open, and that is the limit; close one first"],
  );
  first.socket.close();
  await eventually("it is free again", async () => "socket" in (await open(encodeCapability(capability()))));
  await stop();
  await start({ perHost: 1 });
  await opened();
  assert.match(
    (await refused(encodeCapability(capability()))).why,
    /1 sessions are open at its host, and that is the limit/,
  );
});

test("the sessions of one cell leave as many to others", async (t) => {
  await start({ perHost: 4 });
  isOfBoth = true;
  t.after(() => {
    isOfBoth = false;
  });
  await opened();
  await opened();
  assert.match(
    (await refused(encodeCapability(capability()))).why,
    /2 sessions of this cell are open at its host, and the rest is for others/,
  );
  assert.ok("socket" in (await open(encodeCapability(capability()), other)));
});

test("a command gets its input, gives its output as it comes, and its exit code", async () => {
  await start();
  const client = await opened({ verb: "exec" });
  client.send({ kind: "run", command: ["cat"], input: true, timeoutMs: 5000 });
  await eventually("it runs", () => runs.length === 1);
  const [run] = runs;
  assert.ok(run);
  const { input, ...rest } = run.command;
  assert.deepEqual(rest, { command: ["cat"], timeoutMs: 5000 });
  const pieces = input?.[Symbol.asyncIterator]();
  assert.ok(pieces);
  const taken = (): number =>
    client.messages.reduce((sum, message) => sum + (message.kind === "taken" ? message.bytes : 0), 0);
  for (const part of ["in ", "", "put"]) client.socket.send(Buffer.from(part));
  let read = "";
  while (read !== "in put") read += String((await pieces.next()).value);
  const large = randomBytes(inputWindowBytes.exec - 6);
  const sent = (async () => {
    for (let at = 0; at < large.length; at += 60_000) client.socket.send(large.subarray(at, at + 60_000));
  })();
  const got: Buffer[] = [];
  for (let length = 0; length < large.length; length += got.at(-1)?.length ?? 0) {
    const { value } = await pieces.next();
    assert.ok(Buffer.isBuffer(value) && value.length <= 256 * 1024);
    got.push(value);
  }
  await sent;
  assert.ok(Buffer.concat(got).equals(large));
  client.send({ kind: "input-end" });
  assert.equal((await pieces.next()).done, true);
  await eventually("each byte is acknowledged once the guest has it", () => taken() === large.length + 6);
  await run.output.output("stdout", Buffer.from("out"));
  await run.output.output("stderr", Buffer.from("err"));
  await eventually("both streams come", () => client.received.output === "out" && client.received.error === "err");
  client.send({ kind: "signal", signal: "INT" });
  await eventually("it is interrupted", () => run.signals.includes("INT"));
  const closed = once(client.socket, "close");
  run.exit(130);
  assert.equal((await client.of("exited")).exitCode, 130);
  assert.equal((await closed)[0], 1000);
  assert.deepEqual(run.signals, ["INT"], "what has ended gets no signal");
});

test("a command waits for a client that does not read, and ends with one that is gone", async () => {
  await start();
  const client = await opened({ verb: "exec" });
  client.send({ kind: "run", command: ["yes"], input: false, timeoutMs: null });
  await eventually("it runs", () => runs.length === 1);
  const [run] = runs;
  assert.ok(run);
  client.socket.pause();
  const chunk = Buffer.alloc(256 * 1024);
  let given = 0;
  let waits = false;
  while (!waits && given < 256 * 1024 * 1024) {
    waits = await Promise.race([run.output.output("stdout", chunk).then(() => false), sleep(1000, true)]);
    given += chunk.length;
  }
  assert.ok(waits, "everything was taken though nobody read it");
  client.socket.terminate();
  await eventually("it is told that nobody is there", () => run.signals.includes("HUP"));
  await eventually("and killed when it does not mind", () => run.signals.includes("KILL"));
  run.exit(137);
});

test("what no session has ends it with a sentence", async () => {
  await start();
  const wrong: readonly (readonly ["console" | "exec", string | Buffer, RegExp])[] = [
    ["console", "{", /a message that no session has/],
    [
      "console",
      JSON.stringify({ kind: "run", command: ["ls"], input: false, timeoutMs: null }),
      /a console knows no message "run"/,
    ],
    [
      "exec",
      JSON.stringify({ kind: "run", command: [], input: false, timeoutMs: null }),
      /a message that no session has/,
    ],
    ["exec", JSON.stringify({ kind: "input-end" }), /came where none was announced/],
  ];
  for (const [verb, message, why] of wrong) {
    const client = await opened({ verb });
    client.socket.send(message, { binary: false });
    assert.match((await client.of("ended")).sentence, why);
  }
  const large = await opened({ verb: "exec" });
  for (let sent = 0; sent <= inputWindowBytes.exec; sent += 64 * 1024) large.socket.send(Buffer.alloc(64 * 1024));
  assert.match((await large.of("ended")).sentence, /more than 524288 bytes that the guest had not read yet/);
  const huge = await opened();
  const closed = once(huge.socket, "close");
  huge.socket.send(Buffer.alloc(1024 * 1024));
  assert.equal((await closed)[0], 1009, "a message that is too long is not even read");
});

test("a port is reached by a connection to the guest's own address, and nothing that the client says is run", async () => {
  await start();
  address = null;
  const none = await refused(encodeCapability(capability({ verb: "forward", port: 80 })));
  assert.deepEqual([none.status, /has no interface/.test(none.why)], [409, true]);
  address = ipv4("10.64.0.2");
  const client = await opened({ verb: "forward", port: 80 });
  await client.of("opened");
  for (let n = 0; n < 250 && runs.length === 0; n += 1) await sleep(20);
  const [run = assert.fail()] = runs;
  assert.deepEqual(run.command.command.slice(-2), ["10.64.0.2", "80"]);
  assert.equal(run.command.timeoutMs, null);
  client.socket.send(Buffer.from("GET /"));
  const sent = await (run.command.input as AsyncIterable<Buffer>)[Symbol.asyncIterator]().next();
  assert.equal(String(sent.value), "GET /");
  await run.output.output("stdout", Buffer.from("200"));
  await eventually("it is answered", () => client.received.output === "200");
  run.exit(0);
  assert.equal((await client.of("exited")).exitCode, 0);

  const liar = await opened({ verb: "forward", port: 80 });
  liar.send({ kind: "run", command: ["reboot"], input: false, timeoutMs: null });
  assert.equal((await liar.of("ended")).cause, "protocol");
  assert.ok(runs.every(({ command }) => command.command[0] === "sh" && !command.command.includes("reboot")));
  assert.ok(logged.some((line) => line.includes('"verb":"forward"') && line.includes('"port":80')));
});

test("a display is bytes in both directions, bounded in number and in time, and ends with its incarnation", async (t) => {
  await start({ displaysPerMachine: 2, displayMs: 60_000 });
  screen = null;
  const none = await refused(encodeCapability(capability({ verb: "display" })));
  assert.deepEqual([none.status, /was started without a display/.test(none.why)], [409, true]);
  const place = mkdtempSync(join(tmpdir(), "cells-display-"));
  const heard: string[] = [];
  const vnc = createServer((socket) => {
    socket.write("RFB 003.008\n");
    socket.on("data", (bytes) => void heard.push(String(bytes)));
  });
  t.after(() => {
    vnc.close();
    screen = null;
    rmSync(place, { recursive: true, force: true });
  });
  screen = join(place, "vnc");
  await new Promise<void>((resolve) => vnc.listen(screen, resolve));
  const one = await opened({ verb: "display" });
  const two = await opened({ verb: "display" });
  for (const each of [one, two]) await eventually("it is greeted", () => each.received.output === "RFB 003.008\n");
  const full = await refused(encodeCapability(capability({ verb: "display" })));
  assert.deepEqual([full.status, /2 are at the display of this VM/.test(full.why)], [429, true]);
  one.socket.send(Buffer.from("hello"));
  assert.equal((await one.of("taken")).bytes, 5);
  await eventually("it is heard", () => heard.join("") === "hello");
  two.send({ kind: "run", command: ["reboot"], input: false, timeoutMs: null });
  assert.equal((await two.of("ended")).cause, "protocol");
  end({ vm, incarnation, ended: "crashed", detail: "QEMU is gone" });
  assert.match((await one.of("ended")).sentence, /has ended: QEMU is gone/);
  await stop();
  await start({ displayMs: 200 });
  const long = await opened({ verb: "display" });
  assert.deepEqual((await long.of("ended")).cause, "timeout");
});
