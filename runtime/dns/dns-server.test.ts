import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type DecodedPacket, decode, encode } from "dns-packet";
import { createDnsManager } from "../../core/dns/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { serveNames } from "../controller/names/name-server.ts";
import { askByTcp } from "./by-tcp.ts";
import { followCells, serveDns } from "./dns-server.ts";
import { notifySecondaries } from "./notify.ts";
import { signed, type TsigKey } from "./tsig.ts";

/** The real service behind the edge, stepped directly. */
function manager(
  names: Readonly<Record<string, string>>,
  shown: readonly string[] = [],
  secondary = "",
  key: string | null = null,
) {
  const service = createDnsManager({ self: peerName("dns-manager"), externalPools: ["198.18.0.0/15"] });
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const now = { ms: 0, wallMs: 0 };
  const waiting = new Map<number, (response: Json) => void>();
  let [uid, id] = [0, 0];
  const input = (what: Parameters<typeof service.step>[1]): void => {
    const step = service.step(state, what, now);
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "reply") waiting.get(effect.id)?.(effect.response);
      else if (effect.kind === "timer") setTimeout(() => input({ kind: "timer", name: effect.name }), 1);
    }
  };
  const say = (name: string, address: string, isShown = true): void => {
    uid += 1;
    const value = { uid: `s-${uid}`, name, address, ...(isShown ? { public: true } : {}) };
    const key = `name/s-${uid}`;
    input({ kind: "desired", from: peerName("controller.shop"), key, value });
  };
  for (const [name, address] of Object.entries(names)) say(name, address, shown.includes(name));
  if (secondary !== "") {
    const entrance = { cell: "primary", address: "10.0.0.40" };
    const value = { zone: "cloud.example.org", servers: ["ns1.example.org"], secondaries: [secondary], entrance };
    const zone = key === null ? value : { ...value, key };
    input({ kind: "desired", from: peerName("controller.root"), key: "zone", value: zone });
  }
  input({ kind: "start" });
  return {
    say,
    /** What stands at the way in. */
    opens: (...roles: readonly string[]): void => {
      const value = { address: "10.0.0.40", roles: ["gateway", ...roles] };
      input({ kind: "desired", from: peerName("controller.primary"), key: "doors", value });
    },
    request: (request: Json): Promise<Json> =>
      new Promise((resolve) => {
        id += 1;
        waiting.set(id, resolve);
        input({ kind: "request", id, request });
      }),
  };
}

const query = (name: string, type: "A" | "PTR" | "AAAA") =>
  encode({ type: "query", id: 77, flags: 0x0100, questions: [{ name, type }] });

const dataOf = ({ answers = [] }: DecodedPacket): unknown => {
  const [answer] = answers;
  return answer !== undefined && "data" in answer ? answer.data : null;
};

async function askUdp(port: number, packet: Buffer): Promise<DecodedPacket> {
  const socket = createSocket("udp4");
  try {
    socket.send(packet, port, "127.0.0.1");
    const [answer] = (await once(socket, "message")) as [Buffer];
    return decode(answer);
  } finally {
    socket.close();
  }
}

const askTcp = async (port: number, packet: Buffer, to = "127.0.0.1"): Promise<DecodedPacket | null> => {
  const place = { address: to, port, from: "127.0.0.1", timeoutMs: 5_000, largest: 65_535 };
  const answer = await askByTcp(place, packet);
  return answer === null ? null : decode(answer);
};

test("UDP and TCP on one port, malformed packets dropped and counted, long answers truncated", async () => {
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`alias-number-${index}.shop.cells.internal`, "10.64.0.9"]),
  );
  const running = manager({ "web1.shop.cells.internal": "10.64.0.2", ...many });
  const server = await serveDns({ address: "127.0.0.1" }, running, 0, () => "shop");
  try {
    const forward = await askUdp(server.port, query("web1.shop.cells.internal", "A"));
    assert.equal(forward.id, 77);
    assert.ok(forward.flag_aa && forward.flag_rd && !forward.flag_ra);
    assert.equal(dataOf(forward), "10.64.0.2");
    const reverse = await askUdp(server.port, query("2.0.64.10.in-addr.arpa", "PTR"));
    assert.equal(dataOf(reverse), "web1.shop.cells.internal");
    const rcode = async (name: string) => ((await askUdp(server.port, query(name, "A"))) as { rcode?: string }).rcode;
    assert.equal(await rcode("nobody.shop.cells.internal"), "NXDOMAIN");
    assert.equal(await rcode("example.org"), "REFUSED");

    const stray = createSocket("udp4");
    for (const packet of [Buffer.from("nonsense"), encode({ type: "response", id: 1 })]) {
      await new Promise((resolve) => stray.send(packet, server.port, "127.0.0.1", resolve));
    }
    stray.close();
    const long = await askUdp(server.port, query("9.0.64.10.in-addr.arpa", "PTR"));
    assert.ok(long.flag_tc && long.answers?.length === 0);
    assert.equal(server.counts.malformed, 2);

    assert.equal((await askTcp(server.port, query("9.0.64.10.in-addr.arpa", "PTR")))?.answers?.length, 40);
  } finally {
    await server.stop();
  }
});

test("a cell's name server is known by its address, and a VM sees what its cell may see", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-dns-"));
  const peersFile = join(directory, "peers.json");
  const book = async (peers: Readonly<Record<string, string>>): Promise<void> => {
    await writeFile(`${peersFile}.new`, JSON.stringify({ version: 1, peers }));
    await rename(`${peersFile}.new`, peersFile);
  };
  const [shop, bank] = ["127.3.9.1", "127.3.9.2"];
  const here = { "controller.shop": shop, "controller.bank": bank, "dns-manager": "127.0.0.1" };
  await book(here);
  const cells = await followCells({ peersFile });
  const shown = ["web.shop.cells.internal"];
  const running = manager({ "web.shop.cells.internal": "10.64.0.2", "db.shop.cells.internal": "10.64.0.3" }, shown);
  const server = await serveDns({ address: "127.0.0.1" }, running, 0, cells.cellAt);
  const upstream = () => ({ address: "127.0.0.1", port: server.port });
  const names = await Promise.all(
    [shop, bank].map((address) => serveNames({ listen: { address, port: 0 }, upstream })),
  );
  const asked = async (address: string, name: string): Promise<unknown> => {
    const socket = createSocket("udp4");
    try {
      socket.send(query(name, "A"), names[address === shop ? 0 : 1]?.port ?? 0, address);
      const [answer] = (await once(socket, "message")) as [Buffer];
      const packet = decode(answer);
      return dataOf(packet) ?? (packet as { rcode?: string }).rcode;
    } finally {
      socket.close();
    }
  };
  try {
    const both = async (name: string) => [await asked(shop, name), await asked(bank, name)];
    assert.deepEqual(await both("web.shop.cells.internal"), ["10.64.0.2", "10.64.0.2"]);
    assert.deepEqual(await both("db.shop.cells.internal"), ["10.64.0.3", "NXDOMAIN"]);
    assert.deepEqual(await both("none.shop.cells.internal"), ["NXDOMAIN", "NXDOMAIN"]);
    // Two controllers at one address are nobody in particular.
    await book({ ...here, "controller.bank": shop });
    while (cells.cellAt(shop) !== null) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(await both("db.shop.cells.internal"), ["NXDOMAIN", "NXDOMAIN"]);
    assert.deepEqual(await both("web.shop.cells.internal"), ["10.64.0.2", "10.64.0.2"]);
  } finally {
    cells.stop();
    for (const each of names) await each.close();
    await server.stop();
    await rm(directory, { recursive: true });
  }
});

test("a VM asks its name server by TCP for what does not fit, and gets it whole from the DNS Manager", async () => {
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`alias-number-${index}.shop.cells.internal`, "10.64.0.9"]),
  );
  const own = "127.3.9.3";
  const server = await serveDns({ address: "127.0.0.1" }, manager(many), 0, (from) => (from === own ? "shop" : null));
  const upstream = () => ({ address: "127.0.0.1", port: server.port });
  const names = await serveNames({ listen: { address: own, port: 0 }, upstream, perSecond: 5 });
  const reverse = query("9.0.64.10.in-addr.arpa", "PTR");
  try {
    const socket = createSocket("udp4");
    socket.send(reverse, names.port, own);
    const [short] = (await once(socket, "message")) as [Buffer];
    socket.close();
    assert.ok(decode(short).flag_tc);
    assert.equal((await askTcp(names.port, reverse, own))?.answers?.length, 40);
    const response = Buffer.from(reverse);
    response[2] = 0x80;
    assert.equal(await askTcp(names.port, response, own), null, "that is no query");
    // Ten at once and five a second of one asker, whichever way he asks.
    const answers = await Promise.all(Array.from({ length: 4 }, () => askTcp(names.port, reverse, own)));
    assert.equal(answers.filter((each) => each !== null).length, 4);
    for (let count = 0; count < 6; count += 1) await askTcp(names.port, reverse, own);
    assert.equal(await askTcp(names.port, reverse, own), null);
  } finally {
    await names.close();
    await server.stop();
  }
});

test("a name server has 16 questions by TCP under way at the DNS Manager, which its machines cannot fill", async () => {
  const [own, silent] = ["127.3.9.4", "127.3.9.5"];
  const sockets: Socket[] = [];
  const manager = createServer((socket) => sockets.push(socket.on("error", () => {})));
  manager.listen(0, silent);
  await once(manager, "listening");
  const { port } = manager.address() as AddressInfo;
  const upstream = () => ({ address: silent, port });
  const names = await serveNames({ listen: { address: own, port: 0 }, upstream, timeoutMs: 1_000 });
  try {
    const asks = (from: string): Promise<Buffer | null> =>
      askByTcp(
        { address: own, port: names.port, from, timeoutMs: 5_000, largest: 65_535 },
        query("db.shop.cells.internal", "A"),
      );
    const askers = Array.from({ length: 24 }, (_, index) => `127.3.10.${1 + (index % 6)}`);
    const answers = await Promise.all(askers.map(asks));
    assert.deepEqual([sockets.length, answers.filter((each) => each !== null).length], [16, 0]);
    assert.equal(new Set(sockets.map(({ remotePort }) => remotePort)).size, 16);
    await asks("127.3.10.1");
    assert.equal(sockets.length, 17, "whose time is over have left");
  } finally {
    for (const socket of sockets) socket.destroy();
    manager.close();
    await names.close();
  }
});

/** What of it the operator's guide has for `nsd`, which signs by this key. */
const guideKey = "transfer";
interface Secondary {
  readonly running: ReturnType<typeof manager>;
  readonly server: Awaited<ReturnType<typeof serveDns>>;
  readonly own: string;
  readonly secondary: string;
  readonly asked: (name: string) => Promise<unknown>;
  readonly until: (name: string, wanted: string | null) => Promise<void>;
}
/** @param theirs secret that it has; null: neither side has a key */
async function withSecondary(theirs: Buffer | null, work: (at: Secondary) => Promise<void>): Promise<void> {
  const guide = await readFile(join(import.meta.dirname, "../../docs/operator.md"), "utf8");
  const directory = await mkdtemp(join(tmpdir(), "cells-zone-"));
  const key = theirs === null ? null : { name: guideKey, secret: ourSecret };
  const zoneKeys = { current: async () => key };
  const [own, secondary, port] = ["127.3.9.6", "127.3.9.7", 5_400 + (process.pid % 400)];
  const many = Object.fromEntries(
    Array.from({ length: 450 }, (_, index) => [
      `n${index}.shop.cells.internal`,
      `198.18.${1 + (index >> 8)}.${index & 255}`,
    ]),
  );
  const names = { "db.shop.cells.internal": "10.64.0.2", ...many };
  const running = manager(names, Object.keys(many), secondary, key?.name ?? null);
  const server = await serveDns({ address: own }, running, 0, undefined, zoneKeys);
  const file = join(directory, "nsd.conf");
  // As the operator's guide has it.
  const written = /```text\n(key:[^`]+)```/.exec(guide)?.[1] ?? "";
  const keyed =
    theirs === null
      ? written.slice(written.indexOf("zone:")).replaceAll(` ${guideKey}\n`, " NOKEY\n")
      : written.replace(/secret: "[^"]*"/, `secret: "${theirs.toString("base64")}"`);
  const zones = keyed
    .replaceAll("AXFR 10.0.0.32", `AXFR ${own}@${server.port}`)
    .replaceAll("allow-notify: 10.0.0.32", `outgoing-interface: ${secondary}\n  allow-notify: ${own}`);
  await writeFile(
    file,
    `server:
  ip-address: ${secondary}@${port}
  username: ""
  zonesdir: "${directory}"
  zonelistfile: "${directory}/zones"
  xfrdfile: "${directory}/xfrd"
  xfrdir: "${directory}"
  database: ""
  pidfile: "${directory}/pid"
  xfrd-reload-timeout: 0
remote-control:
  control-enable: no
${zones}`,
  );
  const daemon = spawn("nsd", ["-d", "-c", file], { stdio: "ignore" });
  const ended = once(daemon, "exit");
  const notify = notifySecondaries({ address: own, request: running.request, port, againMs: 100, zoneKeys });
  const asked = async (name: string): Promise<unknown> => {
    const packet = query(name, name.endsWith(".arpa") ? "PTR" : "A");
    const place = { address: secondary, port, from: "127.0.0.1", timeoutMs: 1_000, largest: 65_535 };
    const answer = await askByTcp(place, packet);
    return answer === null ? null : dataOf(decode(answer));
  };
  const until = async (name: string, wanted: string | null): Promise<void> => {
    for (let tries = 0; (await asked(name)) !== wanted; tries += 1) {
      assert.ok(tries < 200, `${name} is ${await asked(name)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  try {
    await work({ running, server, own, secondary, asked, until });
  } finally {
    notify.stop();
    daemon.kill();
    await ended;
    await server.stop();
    await rm(directory, { recursive: true });
  }
}
const ourSecret = Buffer.alloc(32, 7);
const skip = existsSync("/usr/sbin/nsd") ? false : "nsd is not here";
const transferOf = (zone: string): Buffer =>
  encode({ type: "query", id: 9, questions: [{ name: zone, type: "AXFR" as "A" }] });

test("a real name server fetches the zone, and what is new in it; who is not declared gets nothing", { skip }, () =>
  withSecondary(null, async ({ running, server, own, secondary, asked, until }) => {
    await until("n0.shop.cloud.example.org", "198.18.1.0");
    // In more than two messages. Each zone that has come has nsd start its server anew, which answers nobody for a moment.
    await until("n449.shop.cloud.example.org", "198.18.2.193");
    assert.equal(await asked("db.shop.cloud.example.org"), null);
    running.say("new.shop.cells.internal", "198.18.9.9");
    await until("new.shop.cloud.example.org", "198.18.9.9");
    await until("9.9.18.198.in-addr.arpa", "new.shop.cloud.example.org");
    running.opens("personality.caas");
    await until("caas.cloud.example.org", "10.0.0.40");
    assert.equal(await asked("gateway.cloud.example.org"), "10.0.0.40");
    running.opens();
    await until("caas.cloud.example.org", null);
    await until("gateway.cloud.example.org", "10.0.0.40");
    assert.equal(await asked("caas.cloud.example.org"), null, "it went with its line");
    const transfer = transferOf("cloud.example.org");
    const place = { address: own, port: server.port, timeoutMs: 5_000, largest: 65_535 };
    const whole = await askByTcp({ ...place, from: secondary }, transfer);
    assert.equal(decode(whole ?? Buffer.alloc(12)).answers?.length, 200);
    const refused = decode((await askByTcp({ ...place, from: "127.3.9.8" }, transfer)) ?? Buffer.alloc(12));
    assert.deepEqual([(refused as { rcode?: string }).rcode, refused.answers?.length], ["REFUSED", 0]);
    const socket = createSocket("udp4");
    socket.bind(0, secondary);
    await once(socket, "listening");
    socket.send(transfer, server.port, own);
    const [byUdp] = (await once(socket, "message")) as [Buffer];
    socket.close();
    assert.equal((decode(byUdp) as { rcode?: string }).rcode, "REFUSED", "not by UDP");
  }),
);

test("a real name server with the key fetches the zone and believes who tells it of news; without it nobody does", {
  skip,
}, async () => {
  await withSecondary(ourSecret, async ({ running, server, own, secondary, until }) => {
    await until("n0.shop.cloud.example.org", "198.18.1.0");
    // In more than two messages. Each zone that has come has nsd start its server anew, which answers nobody for a moment.
    await until("n449.shop.cloud.example.org", "198.18.2.193");
    running.say("new.shop.cells.internal", "198.18.9.9");
    await until("new.shop.cloud.example.org", "198.18.9.9");
    await until("9.9.18.198.in-addr.arpa", "new.shop.cloud.example.org");
    const place = { address: own, port: server.port, from: secondary, timeoutMs: 5_000, largest: 65_535 };
    const said = async (packet: Buffer): Promise<unknown> => {
      const answer = decode((await askByTcp(place, packet)) ?? Buffer.alloc(12)) as { rcode?: string };
      return answer.rcode;
    };
    const transfer = transferOf("cloud.example.org");
    const now = Math.floor(Date.now() / 1_000);
    const by = (key: TsigKey, atS = now): Buffer => signed(key, null, [transfer], atS)[0] as Buffer;
    assert.equal(await said(by({ name: guideKey, secret: ourSecret })), "NOERROR");
    assert.equal(await said(transfer), "REFUSED", "the address alone");
    assert.equal(await said(by({ name: guideKey, secret: Buffer.alloc(32, 8) })), "NOTAUTH", "another secret");
    assert.equal(await said(by({ name: "other", secret: ourSecret })), "NOTAUTH", "another key");
    assert.equal(
      await said(by({ name: guideKey, secret: ourSecret }, now - 900)),
      "NOTAUTH",
      "of a quarter of an hour ago",
    );
  });
  await withSecondary(Buffer.alloc(32, 8), async ({ server, asked }) => {
    for (let tries = 0; server.counts.answered < 2; tries += 1) {
      assert.ok(tries < 500, "it has asked");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(await asked("n0.shop.cloud.example.org"), null, "its secret is another one");
  });
});

test("secondaries are told of a new number until they answer, three times at most, and not of one that is as it was", async () => {
  const [own, deaf, quick, port] = ["127.3.9.8", "127.3.9.9", "127.3.9.10", 5_400 + (process.pid % 400)];
  let asked = 0;
  let say = (_: Json): void => {};
  const request = (): Promise<Json> => {
    asked += 1;
    return asked === 1 ? Promise.reject(new Error("it starts")) : new Promise((resolve) => (say = resolve));
  };
  const told: Record<string, number> = { [deaf]: 0, [quick]: 0 };
  const sockets = await Promise.all(
    [deaf, quick].map(async (address) => {
      const socket = createSocket("udp4");
      socket.on("message", (packet, from) => {
        const { opcode, questions } = decode(packet) as DecodedPacket & { readonly opcode?: string };
        assert.deepEqual([opcode, questions?.[0]?.name, questions?.[0]?.type], ["NOTIFY", "cloud.example.org", "SOA"]);
        told[address] = (told[address] ?? 0) + 1;
        packet[2] = (packet[2] ?? 0) | 0x80;
        // Another's answer counts for nobody.
        if (address === quick) socket.send(packet, from.port, from.address);
      });
      socket.bind(port, address);
      await once(socket, "listening");
      return socket;
    }),
  );
  let key: TsigKey | "missing" | null = null;
  const zoneKeys = { current: async () => key };
  const notify = notifySecondaries({ address: own, request, port, againMs: 10, zoneKeys });
  const rests = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 400));
  try {
    await rests();
    assert.deepEqual(told, { [deaf]: 0, [quick]: 0 }, "no zone is declared");
    const now = { zones: ["cloud.example.org"], serial: 7, secondaries: [deaf, quick] };
    say(now);
    await rests();
    assert.deepEqual(told, { [deaf]: 3, [quick]: 1 });
    say({ ...now, serial: 8 });
    await rests();
    assert.deepEqual(told, { [deaf]: 6, [quick]: 2 });
    key = "missing";
    say({ ...now, serial: 9 });
    await rests();
    assert.deepEqual(told, { [deaf]: 6, [quick]: 2 }, "nobody could fetch it");
    assert.equal(asked, 5, "the service says when there is something, and is not asked meanwhile");
  } finally {
    notify.stop();
    for (const socket of sockets) socket.close();
  }
});
