import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { ServiceEvent } from "../../model/api.ts";
import { createAuthority } from "../../runtime/identity/certificates.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { certify } from "../identity.ts";
import { cells, stateOf, until, untilReady, untilSaid } from "../lab.testing.ts";
import { certainDeath } from "../management/certain-death.testing.ts";
import { serverMember } from "../supervisor/members.ts";
import { execIn } from "../tenants/questions.testing.ts";
import {
  compileLoss,
  eventsSince,
  figure,
  hosts,
  loseDatagrams,
  loseNothing,
  scrape,
  statusOf,
  untilEvent,
} from "./presence.testing.ts";

/**
 * Who is alive, and who says so, with real processes, links and packets (decision 25): the scenarios that the simulator
 * runs as host-killed, host-cut-off, host-paused, packets-lost and presence-member-killed, and strangers. One testbed of
 * four hosts and one guest. Times are measured and printed, and nothing is asserted of them.
 */
const specification = `lab extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  bootvol extends VolumeCopy { x.image "<ref:/lab/golden>"; }
  vm extends VM { x.memory 128; x.placement.host "h2"; x.restartOnFailure true; }
  disk extends VolumeConnection { x.vm "<ref:/lab/vm>"; x.volume "<ref:/lab/bootvol>"; x.bootOrder 0; }
}
`;
const vm = "lab/vm";

const members = ["presence.1", "presence.2", "presence.3"];
const isOf =
  (name: string, host: string) =>
  ({ event, fields }: ServiceEvent): boolean =>
    event === name && fields.host === host;
const declared = (host: string) => isOf("presence/declared", host);
const returned = (host: string) => isOf("presence/returned", host);
const seconds = (from: number, event: ServiceEvent): string => ((Date.parse(event.time) - from) / 1000).toFixed(1);

const presenceOf = async (t: Testbed, host: string): Promise<string | undefined> =>
  (await statusOf(t)).hosts.find((each) => each.host === host)?.presence?.state;
const untilUp = (t: Testbed): Promise<unknown> =>
  until(
    "every host is up, by the group",
    async () => (await statusOf(t)).hosts.map(({ presence }) => presence?.state),
    (states) => states.length === hosts.length && states.every((state) => state === "up"),
  );
const knows = async (t: Testbed, by: string, verdict: string): Promise<number> =>
  figure(await scrape(t), "cells_swim_members", { service: `host.${by}`, verdict });
const generationOf = async (t: Testbed, host: string): Promise<number> =>
  figure(await scrape(t), "cells_swim_generation", { service: `host.${host}`, of: "generation" });
const bootOf = async (t: Testbed): Promise<string> =>
  until(
    "the guest tells its boot's name",
    () => execIn(t, vm, ["cat", "/proc/sys/kernel/random/boot_id"]),
    ({ code, stdout }) => code === 0 && stdout.length > 30,
  ).then(({ stdout }) => stdout);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** No service heard of any death or vote since. */
const assertNobodyDied = async (t: Testbed, since: number): Promise<void> => {
  const bad = (await eventsSince(t, since)).filter(({ event }) => event === "presence/declared");
  assert.deepEqual(bad, []);
};

const pausedHost = async (t: Testbed, context: TestContext): Promise<void> => {
  const since = Date.now();
  const generation = await generationOf(t, "h3");
  await t.kill("h3", "SIGSTOP");
  // It does not answer: the others doubt it, each for itself.
  const doubted = await until(
    "somebody doubts h3",
    async () => {
      const metrics = await scrape(t);
      return ["h1", "h2", "h4"].map((by) => figure(metrics, "cells_swim_doubts", { service: `host.${by}` }));
    },
    (doubts) => doubts.some((count) => count > 0),
  );
  await pause(Math.max(0, since + 5000 - Date.now()));
  await t.kill("h3", "SIGCONT");
  await until(
    "nobody doubts anybody",
    async () => figure(await scrape(t), "cells_swim_doubts"),
    (doubts) => doubts === 0,
  );
  await untilUp(t);
  await assertNobodyDied(t, since);
  assert.equal(await generationOf(t, "h3"), generation, "and it need not begin again");
  context.diagnostic(
    `h3 stood still for 5 s: doubted by ${doubted.filter((count) => count > 0).length} hosts, then up`,
  );
};

const lostPackets = async (t: Testbed, context: TestContext): Promise<void> => {
  const object = compileLoss(t, 20);
  const since = Date.now();
  const before = await scrape(t);
  const lost = await Promise.all(hosts.map((host) => loseDatagrams(t, host, object)));
  await pause(15_000);
  const counts = await Promise.all(lost.map((count) => count()));
  const after = await scrape(t);
  for (const host of hosts) await loseNothing(t, host);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const grown = (direction: string): number =>
    figure(after, "cells_swim_datagrams_total", { direction }) -
    figure(before, "cells_swim_datagrams_total", { direction });
  const [sent, received] = [grown("sent"), grown("received")];
  assert.ok(
    counts.every((count) => count > 0),
    `every host lost some: ${counts}`,
  );
  assert.ok(sent > received, `${sent} sent, ${received} received`);
  await assertNobodyDied(t, since);
  await untilUp(t);
  const perHost = (sent / hosts.length / 15).toFixed(1);
  context.diagnostic(`${total} of ${sent} datagrams lost in 15 s (${perHost} sent per host and second): nobody died`);
};

const strangers = async (t: Testbed, context: TestContext): Promise<void> => {
  const since = Date.now();
  const foreign = join(dirname(t.configFile), "foreign");
  await createAuthority(join(foreign, "authority"));
  mkdirSync(join(foreign, "s1"), { recursive: true });
  await certify(join(foreign, "authority"), join(foreign, "s1"), serverMember(1));
  const own = join(t.at.directory, "members/s1/certificate");
  const fixture = fileURLToPath(new URL("stranger.testing.ts", import.meta.url));
  const play = async (as: string, what: string, directory = ""): Promise<void> => {
    const { code, stderr } = await t.exec(as, [process.execPath, fixture, what, "10.0.1.1", directory]);
    assert.equal(code, 0, `${what}: ${stderr}`);
  };
  const before = await scrape(t);
  await play("gateway", "datagrams");
  await play("h4", "datagrams");
  await play("s1", "long-frame", own);
  await play("s1", "version", own);
  await play("s1", "certificate", join(foreign, "s1"));
  await play("s1", "no-tls");
  const after = await scrape(t);
  const grown = (name: string, labels = {}): number => {
    const at = { service: "host.h1", ...labels };
    return figure(after, name, at) - figure(before, name, at);
  };
  assert.equal(grown("cells_swim_refused_total", { fault: "no host's address" }), 20);
  assert.equal(grown("cells_swim_refused_total"), 40, "those from a host's address are no packets");
  const refused = (reason: string): number => grown("cells_distribution_refused_total", { reason });
  assert.ok(refused("no frame") >= 20, "long frames");
  const unknown = refused("no certificate of this installation") + refused("handshake failed");
  assert.ok(unknown >= 40, "wrong certificates, and no TLS");
  assert.ok(refused("unsupported version") >= 20);
  const said = (await eventsSince(t, since)).filter(({ service }) => service === "host.h1");
  const lines = said.filter(({ event }) => event === "distribution/refused" || event === "transport/refused");
  const kinds = new Set(lines.map(({ event, fields }) => `${event} ${fields.peer ?? fields.from} ${fields.reason}`));
  assert.ok(kinds.size >= 5, [...kinds].join("\n"));
  assert.equal(lines.length, kinds.size, "each is said once, however often it comes");
  await assertNobodyDied(t, since);
  await untilUp(t);
  assert.equal((await stateOf(t, vm))?.phase, "ready");
  context.diagnostic(`140 attempts of strangers: all refused and counted, ${lines.length} lines of log`);
};

/** From the moment `since` on: declared by the group, known to the other hosts, and withdrawn where it was known. */
const followDeath = async (
  t: Testbed,
  since: number,
  host: string,
  context: TestContext,
  of: string,
): Promise<void> => {
  const first = await untilEvent(t, since, `${host} is declared dead`, declared(host));
  const left = await untilEvent(t, since, `the Placer has lost ${host}`, isOf("host/left", host));
  assert.equal(left.service, "placer");
  for (const by of hosts.filter((each) => each !== host))
    await until(
      `${by} knows that ${host} is dead`,
      () => knows(t, by, "dead"),
      (count) => count === 1,
    );
  assert.equal(await presenceOf(t, host), "dead");
  const status = await cells(t, "status");
  assert.match(status, new RegExp(`${host} .*declared dead`));
  const voted = (await eventsSince(t, since)).filter(isOf("presence/voted", host));
  context.diagnostic(
    `${of}: first vote after ${voted[0] === undefined ? "?" : seconds(since, voted[0])} s, declared after ` +
      `${seconds(since, first)} s, withdrawn at the Placer after ${seconds(since, left)} s`,
  );
};
const comesBack = async (t: Testbed, host: string, since: number, context: TestContext, of: string): Promise<void> => {
  const back = await untilEvent(t, since, `${host} is back`, returned(host));
  const joined = await untilEvent(t, since, `the Placer has ${host} again`, isOf("host/joined", host));
  await untilUp(t);
  context.diagnostic(`${of}: back after ${seconds(since, back)} s, at the Placer after ${seconds(since, joined)} s`);
};

const killedHost = async (t: Testbed, context: TestContext): Promise<void> => {
  const generation = await generationOf(t, "h4");
  const since = Date.now();
  await t.kill("h4");
  await t.stop("h4");
  await followDeath(t, since, "h4", context, "host killed");
  const start = Date.now();
  await t.start("h4");
  await comesBack(t, "h4", start, context, "host killed");
  assert.ok((await generationOf(t, "h4")) > generation);
};

/** One member of the group is gone meanwhile: that changes nothing. */
const hostCutOff = async (t: Testbed, context: TestContext): Promise<void> => {
  await t.kill("presence.3");
  await t.stop("presence.3");
  const [boot, generation] = [await bootOf(t), await generationOf(t, "h2")];
  const since = Date.now();
  assert.equal((await t.exec("h2", ["ip", "link", "set", "eth0", "down"])).code, 0);
  await followDeath(t, since, "h2", context, "host cut off, one member of the group gone");
  const reason = /host h2 was declared dead at 20\S+Z; its machines are not started elsewhere until it comes back/;
  const state = await untilSaid(t, vm, reason);
  assert.equal(state?.phase, "waiting");
  assert.match((await t.cells(["why", vm])).stdout, reason);
  const told = (await eventsSince(t, since)).find(({ path, fields }) => path === vm && reason.test(`${fields.reason}`));
  assert.ok(told !== undefined, "the cell's own time line tells it");
  context.diagnostic(`host cut off: its VM's state withdrawn and said so after ${seconds(since, told)} s`);
  const healed = Date.now();
  assert.equal((await t.exec("h2", ["ip", "link", "set", "eth0", "up"])).code, 0);
  await comesBack(t, "h2", healed, context, "host cut off");
  await untilReady(t, vm);
  assert.equal((await stateOf(t, vm))?.incarnation, 1, "it was never started again");
  assert.equal(await bootOf(t), boot, "nor did its guest boot again");
  assert.ok((await generationOf(t, "h2")) > generation, "its host is in a new life");
  assert.ok(
    (await eventsSince(t, healed)).some(
      ({ event, service }) => event === "distribution/reborn" && service === "host.h2",
    ),
  );
  await t.start("presence.3");
};

const groupWithoutMajority = async (t: Testbed, context: TestContext): Promise<void> => {
  await until(
    "the third member hears all hosts again",
    async () => figure(await scrape(t), "cells_presence_hosts_heard", { service: "presence.3" }),
    (count) => count === hosts.length,
  );
  const since = Date.now();
  for (const member of ["presence.2", "presence.3"]) {
    await t.kill(member);
    await t.stop(member);
  }
  const isAlone = ({ event, service }: ServiceEvent): boolean =>
    event === "presence/no-majority" && service === "presence.1";
  await untilEvent(t, since, "the last member says that it declares nothing", isAlone);
  await t.kill("h4");
  await t.stop("h4");
  // It has all the evidence, and waits for another that has it too.
  await untilEvent(t, since, "it votes", isOf("presence/voted", "h4"));
  await pause(3000);
  await assertNobodyDied(t, since);
  const started = Date.now();
  await t.start("presence.2");
  const first = await untilEvent(t, started, "two of three declare it", declared("h4"));
  context.diagnostic(
    `alone: voted, did not declare; declared ${seconds(started, first)} s after a second member's start`,
  );
  await t.start("presence.3");
  await t.start("h4");
  await untilUp(t);
};

const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

test("hosts die, are cut off, stand still and lose packets, and Presence says what is so", {
  skip,
}, async (context) => {
  await withTestbed({ hosts: hosts.length, servers: 1 }, async (t) => {
    const file = join(dirname(t.configFile), "lab.sf");
    writeFileSync(file, specification);
    await cells(t, "apply", file, "--yes");
    await untilReady(t, vm);
    const running = (await statusOf(t)).services;
    for (const member of members) assert.ok(running.find(({ name }) => name === member)?.running, member);
    await untilUp(t);
    const step = async (name: string, work: (t: Testbed, context: TestContext) => Promise<void>): Promise<void> => {
      // For one who looks into a single step.
      const only = process.env.CELLS_STEP;
      if (only === undefined || new RegExp(only).test(name)) await context.test(name, (own) => work(t, own));
    };
    await step("host-paused: one that stands still for 5 s is doubted and not declared", pausedHost);
    await step("packets-lost: a fifth of all datagrams lost, and nobody dies", lostPackets);
    await step("strangers are refused, counted and logged once, and harm nobody", strangers);
    await step("host-killed: declared, known and withdrawn everywhere, and back in a new life", killedHost);
    await step("host-cut-off: declared without one member of the group; its guest runs on and is adopted", hostCutOff);
    await step("certain-death: a host whose power is off, by its operator's word", certainDeath);
    await step("presence-member-killed: one of three alone declares nothing, and says so", groupWithoutMajority);
  });
});
