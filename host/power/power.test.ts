import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Input } from "../../core/env.ts";
import { createHaManager } from "../../core/ha/manager.ts";
import { createPresence } from "../../core/presence/group/group.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { followOrders, openPowerSeal, powerRegistrations } from "../../runtime/ha/power.ts";
import { peerRequest, servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { hostEnds } from "../../runtime/presence/host-end.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { createHostEdge } from "../edge.ts";
import { type IpmiSim, startIpmiSim } from "./ipmi-sim.testing.ts";
import { createPowerHand } from "./power-hand.ts";
import { type RedfishSim, startRedfishSim } from "./redfish-sim.testing.ts";

/*
 * From the operator's word to a power that is off: an HA Manager, the edges of real hosts, mutual TLS between them, and a management
 * controller as OpenIPMI simulates it, or one that speaks Redfish. All waiting is the manager's own.
 */
let installation: TestInstallation;
let gateway: ProcessConfiguration;
let own: ProcessConfiguration;
let ipmi: IpmiSim;
let redfish: RedfishSim;
const closers: (() => Promise<void> | void)[] = [];
const [presence, self] = [peerName("presence.1"), peerName("ha-manager")];
const hosts = ["h1", "h2", "h3"].map((host) => peerName(`host.${host}`));
const manager = createHaManager({
  self,
  presence: [presence],
  storageManagers: [peerName("storage-manager")],
  hosts,
});
let state = manager.restore({ records: new Map(), desiredAt: new Map() });
const records = new Map<string, Json>();
const logged: Json[] = [];
const give = (input: Input) => {
  const stepped = manager.step(state, input, { ms: performance.now(), wallMs: Date.now() });
  state = stepped.state;
  for (const effect of stepped.effects) {
    if (effect.kind === "write" && effect.value !== null) records.set(effect.key, effect.value);
    if (effect.kind === "log") logged.push({ event: effect.event, ...(effect.fields as object) } as Json);
  }
  return stepped.effects;
};
/** The only member of the Presence group. It hears h3 alone, which reports both others. */
const group = createPresence({ self: presence, members: [presence], hosts });
let groupState = group.restore({ records: new Map(), desiredAt: new Map() });
const ends = new Map<string, Json>();
const giveGroup = (input: Input) => {
  const stepped = group.step(groupState, input, { ms: performance.now(), wallMs: Date.now() });
  groupState = stepped.state;
  for (const effect of stepped.effects)
    if (effect.kind === "publish" && effect.key.startsWith("dead/") && effect.value !== null)
      ends.set(effect.key, effect.value);
  return stepped.effects;
};
const serveGroup = async (): Promise<void> => {
  giveGroup({ kind: "start" });
  for (const host of ["h1", "h2", "h3"]) {
    const from = peerName(`host.${host}`);
    const value = { host, generation: 1, incarnation: 0, answers: true, boot: 7 };
    giveGroup({ kind: "actual", from, key: "presence/self", value });
    giveGroup({ kind: "reachable", peer: from, reachable: true });
  }
  const { configuration } = await installation.configure(presence);
  const service = {
    request: async (request: Json): Promise<Json> => {
      const reply = giveGroup({ kind: "request", id: 1, request }).find((effect) => effect.kind === "reply");
      return reply?.kind === "reply" ? reply.response : null;
    },
  };
  closers.push((await servePeers(configuration, hostEnds.handler({ service } as never))).stop);
};
const ipmiUuid = "efcdab89-6745-23a1-efcd-ab89674523a1";

before(async () => {
  installation = await createTestInstallation("power");
  ipmi = await startIpmiSim(await freePort());
  redfish = await startRedfishSim();
  closers.push(ipmi.stop, redfish.stop);
  for (const [name, uuid] of [
    ["h1", ipmiUuid],
    ["h2", redfish.uuid],
    ["h3", ""],
  ] as const) {
    const { configuration } = await installation.configure(peerName(`host.${name}`));
    const directory = join(installation.directory, `of-${name}`);
    await mkdir(directory);
    await writeFile(join(directory, "system-uuid"), `${uuid}\n`);
    const power = createPowerHand(directory);
    closers.push((await servePeers(configuration, createHostEdge({ power } as never))).stop);
  }
  ({ configuration: own } = await installation.configure(self));
  const asked = {
    service: {
      request: async (request: Json): Promise<Json> => {
        const reply = give({ kind: "request", id: 1, request }).find((effect) => effect.kind === "reply");
        return reply?.kind === "reply" ? reply.response : null;
      },
    },
  } as never;
  await serveGroup();
  const seal = await openPowerSeal(own.directory);
  closers.push((await servePeers(own, powerRegistrations(own, seal).handler(asked))).stop);
  closers.push(followOrders(own, asked, seal));
  ({ configuration: gateway } = await installation.configure(peerName("gateway")));
  give({ kind: "start" });
  for (const peer of hosts.slice(1)) give({ kind: "reachable", peer, reachable: true });
});
after(async () => {
  for (const close of closers.reverse()) await close();
  await installation.remove();
});

const ask = async (
  method: string,
  host: string,
  body?: object,
  from = gateway,
  to: PeerName = self,
  path = `/power/${host}`,
): Promise<{ readonly status: number; readonly text: string }> => {
  const answer = await peerRequest(from, to, {
    method,
    path,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  return { status: answer.status, text: await answer.text() };
};

test("a controller is registered once another host has read there that this one is on, by its own UUID; nothing is switched", async () => {
  const registered = await ask("PUT", "h1", ipmi.controller);
  assert.equal(registered.status, 200, registered.text);
  assert.match(registered.text, new RegExp(`"uuid":"${ipmiUuid}","power":"on"`));
  assert.equal((await ask("PUT", "h2", redfish.controller)).status, 200);
  assert.deepEqual([await ipmi.power(), redfish.power], ["on", "On"]);
});

test("another machine's controller, one that reads off, a wrong password, a host without UUID: refused with why", async () => {
  const refusals: readonly (readonly [string, object, RegExp])[] = [
    ["h2", ipmi.controller, /is another machine's: it shows the UUID efcdab89.*and h2 has 00112233/],
    ["h1", { ...ipmi.controller, password: "other" }, /does not take this user and password/],
    ["h3", ipmi.controller, /h3 does not say which machine it is/],
    ["h2", { ...redfish.controller, fingerprint: "ab".repeat(32) }, /another certificate/],
  ];
  for (const [host, controller, why] of refusals) {
    const { status, text } = await ask("PUT", host, controller);
    assert.equal(status, 409, text);
    assert.match(text, why);
  }
  redfish.power = "Off";
  assert.match((await ask("PUT", "h2", redfish.controller)).text, /reads off while h2 is up/);
  redfish.power = "On";
  for (const body of [{}, { ...ipmi.controller, kind: "telnet" }, { ...redfish.controller, fingerprint: "x" }])
    assert.equal((await ask("PUT", "h1", body)).status, 400);
  assert.match((await ask("PUT", "h9", ipmi.controller)).text, /there is no host h9; the hosts are h1, h2, h3/);
});

test("an agent that reads twice that a host is on is registered for it alone, and cuts and reads as one is told to", async () => {
  const other = await startIpmiSim(await freePort());
  closers.push(other.stop);
  const agent = {
    ...other.controller,

    kind: "agent",
    agent: "fence_ipmilan",
    options: { lanplus: "1", cipher: "3", power_wait: "0" },
    suite: undefined,
  };
  const registered = await ask("PUT", "h3", agent);
  assert.equal(registered.status, 200, registered.text);
  assert.match(registered.text, /"kind":"agent".*"uuid":"","power":"on"/);
  assert.equal(await other.power(), "on");
  const refusals: readonly (readonly [string, object, number, RegExp])[] = [
    ["h2", agent, 409, /fence_ipmilan .* is registered for h3: one machine's power cannot be that of two/],
    ["h3", { ...agent, password: "other" }, 409, /does not say that the power is on or off/],
    ["h3", { ...agent, agent: "fence_apc" }, 409, /say --plug/],
    ["h3", { ...agent, agent: "fence_none" }, 409, /fence_none is not installed/],
    ["h3", { ...agent, agent: undefined }, 400, /of an agent with agent/],
    ["h3", { ...agent, kind: "ipmi" }, 400, /of an agent with agent/],
    ["h3", { ...agent, options: { cipher: "3 -f /etc/passwd" } }, 400, /bad-request/],
    ["h3", { ...agent, agent: "../fence_ipmilan" }, 400, /bad-request/],
  ];
  for (const [host, controller, code, why] of refusals) {
    const { status, text } = await ask("PUT", host, controller);
    assert.equal(status, code, text);
    assert.match(text, why);
  }
  const [, h2 = self] = hosts;
  const { text } = await ask("POST", "", { action: "off", controller: agent }, own, h2, "/power");
  assert.deepEqual([JSON.parse(text), await other.power()], [{ power: "off", uuid: null, reason: null }, "off"]);
  assert.match((await ask("PUT", "h3", agent)).text, /fence_ipmilan at .* reads off while h3 is up/);
  assert.equal((await ask("DELETE", "h3")).status, 200);
});

test("only the gateway registers, only the HA Manager has a host switch another one, and no word of it is an option", async () => {
  const { configuration: shop } = await installation.configure(peerName("controller.shop"));
  assert.equal((await ask("PUT", "h1", ipmi.controller, shop)).status, 403);
  const [h3 = self] = hosts.slice(2);
  const order = { action: "off", controller: ipmi.controller };
  for (const from of [shop, gateway])
    assert.equal((await ask("POST", "", order, from, h3, "/power")).status, 403, from.name);
  for (const wrong of [
    { ...order, action: "cycle" },
    { ...order, controller: { ...ipmi.controller, address: "-o" } },
    { ...order, controller: { ...ipmi.controller, user: "-P" } },
    { ...order, controller: { ...ipmi.controller, password: "a\nb" } },
    { ...order, controller: { ...ipmi.controller, address: "a".repeat(300) } },
    { ...order, controller: { ...ipmi.controller, fingerprint: "ab" } },
    { action: "off" },
  ])
    assert.equal((await ask("POST", "", wrong, own, h3, "/power")).status, 400, JSON.stringify(wrong));
  assert.equal(await ipmi.power(), "on");
});

test("hosts are lost whose storage does not answer: their power is cut by another host, read as off, and their VMs are over", async () => {
  for (const [vm, host] of [
    ["a-1", "h1"],
    ["a-2", "h2"],
  ] as const) {
    const document = {
      vm,
      cell: "shop",
      path: `shop/${vm}`,
      incarnation: 1,
      host,
      boot: 7,
      lost: "restart",
      priority: 0,
    };
    const value = { ...document, isolated: "keep", storageManager: "storage-manager" };
    give({ kind: "desired", from: peerName("controller.shop"), key: `protected/${vm}`, value });
    // No boot is believed that the host has not said itself.
    const said = { host, boot: 7, machines: [] };
    give({ kind: "actual", from: peerName(`host.${host}`), key: "machines", value: said });
  }
  give({ kind: "reachable", peer: hosts[1] as PeerName, reachable: false });
  const from = performance.now();
  for (const host of ["h1", "h2"]) {
    const value = { host, generation: 1, incarnation: 0, declaredAt: Date.now(), reporters: 1 };
    give({ kind: "actual", from: presence, key: `dead/${host}`, value });
  }
  while (state.over.size < 2 && performance.now() - from < 25_000) await new Promise((done) => setTimeout(done, 100));
  assert.deepEqual([...state.over.keys()].sort(), ["a-1", "a-2"], JSON.stringify([...state.active.values()]));
  assert.deepEqual([await ipmi.power(), redfish.power], ["off", "Off"]);
  const by = [...state.active.values()].map(({ fencedBy }) => fencedBy);
  assert.deepEqual(by, ["power", "power"]);
});

test("the Presence group is told, by mutual TLS, and takes it once it does not hear the hosts any more itself", async () => {
  await new Promise((done) => setTimeout(done, 3000));
  assert.deepEqual([...ends], [], "it hears them still");
  for (const host of ["h1", "h2"]) {
    const value = { host, generation: 1, incarnation: 0 };
    giveGroup({ kind: "actual", from: hosts[2] as PeerName, key: `presence/failed/${host}`, value });
    giveGroup({ kind: "reachable", peer: peerName(`host.${host}`), reachable: false });
  }
  const isEnded = (host: string): boolean => (ends.get(`dead/${host}`) as { ended?: number } | undefined)?.ended === 7;
  const from = performance.now();
  while (!(isEnded("h1") && isEnded("h2")) && performance.now() - from < 15_000)
    await new Promise((done) => setTimeout(done, 100));
  assert.deepEqual([isEnded("h1"), isEnded("h2")], [true, true], JSON.stringify([...ends]));
  while ([...state.power.offs.values()].some(({ told }) => told !== true) && performance.now() - from < 20_000)
    await new Promise((done) => setTimeout(done, 100));
  assert.deepEqual([...state.power.offs.values()].map(({ host, told }) => `${host} ${told}`).sort(), [
    "h1 true",
    "h2 true",
  ]);
  const refused = await ask("PUT", "h3", { generation: 1, boot: 7 }, gateway, presence, "/hosts/h3/end");
  assert.equal(refused.status, 403, "nobody else may say it");
});

test("no record, no event and no file has a password, and the key to what is sealed is for its owner alone", async () => {
  const { password } = ipmi.controller;
  assert.ok([...records.keys()].includes("power/h1"), "a positive control");
  assert.ok(!JSON.stringify([...records]).includes(password));
  assert.ok(logged.length > 0 && !JSON.stringify(logged).includes(password));
  for (const file of await readdir(own.directory, { recursive: true })) {
    const bytes = await readFile(join(own.directory, file)).catch(() => Buffer.alloc(0));
    assert.ok(!bytes.includes(password), file);
  }
  const seal = await openPowerSeal(own.directory);
  assert.equal(seal.open(seal.seal("x")), "x", "the key stays");
  assert.equal(
    (await openPowerSeal(installation.directory)).open(seal.seal("x")),
    null,
    "and another one opens nothing",
  );
});
