import assert from "node:assert/strict";
import { dirname } from "node:path";
import type { TestContext } from "node:test";
import type { ElementState } from "../../../model/api.ts";
import type { HaItem, HaReport } from "../../../model/contract/operator/ha.ts";
import type { Testbed } from "../../harness.ts";
import * as lab from "../../lab.testing.ts";
import { eventsSince, untilEvent } from "../presence.testing.ts";

/**
 * Losses in which the storage has a part. Each begins with a machine that writes numbered lines and ends with it writing on; every line
 * that was called durable is there then, in order, and nothing but its newest incarnation runs.
 */
const hosts = ["h1", "h2", "h3"] as const;

export const reportOf = async (t: Testbed): Promise<HaReport> =>
  JSON.parse(await lab.cells(t, "ha", "--output", "json")) as HaReport;
/** The machine's own part of the power, or of the network: its namespace stays, so its kernel would answer on. */
export const setLink = async (t: Testbed, member: string, to: "up" | "down"): Promise<void> => {
  const { code, stderr } = await t.exec(member, ["ip", "link", "set", "eth0", to]);
  assert.equal(code, 0, stderr);
};
export const setRoutes = async (
  t: Testbed,
  host: string,
  verb: "add" | "del",
  networks: readonly string[],
): Promise<void> => {
  for (const network of networks) {
    const { code, stderr } = await t.exec(host, ["ip", "route", verb, "blackhole", network]);
    assert.equal(code, 0, stderr);
  }
};
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A machine that writes, as it is before something is lost. */
export interface Writer {
  readonly vm: lab.Machine;
  readonly uid: string;
  readonly host: string;
  readonly incarnation: number;
  /** Where its disk lies, and which it is. */
  readonly server: string;
  readonly volume: string;
  /** Lines that were called durable. */
  readonly least: number;
  readonly sinceMs: number;
}
export const writerOf = async (t: Testbed, vm: lab.Machine): Promise<Writer> => {
  const { uid = "", host, incarnation = 0 } = (await lab.untilReady(t, vm)) ?? {};
  const disk = await lab.stateOf(t, `${dirname(vm)}/bootvol`);
  assert.ok(host && disk?.server, `${vm} runs at ${host}, with a disk at ${disk?.server}`);
  await lab.startWriting(t, vm);
  const least = await lab.durable(t, vm);
  return { vm, uid, host, incarnation, server: disk.server, volume: disk.uid, least, sinceMs: Date.now() };
};

/** Hosts at which a machine of the VM is there. */
export const runsAt = async (t: Testbed, { uid }: Pick<Writer, "uid">): Promise<readonly string[]> => {
  const found = await lab.inventory(t, hosts, []);
  return hosts.filter((host) => found[`${host} machines`]?.some((name) => name.includes(uid)));
};
const itemOf = async (t: Testbed, { uid }: Writer): Promise<HaItem | undefined> =>
  (await reportOf(t)).items.find(({ vm, outcome }) => vm === uid && outcome === null);
/** A VM two of whose hosts were lost soon after it came is held: the operator says that it goes on. */
const release = async (t: Testbed, writer: Writer): Promise<HaItem | undefined> => {
  const item = await itemOf(t, writer);
  if (item !== undefined && item.held !== null) await t.cells(["ha", "release", writer.vm]);
  return item;
};
export const untilDeclared = (t: Testbed, { host, sinceMs }: Writer): Promise<unknown> =>
  untilEvent(
    t,
    sinceMs,
    `${host} is declared dead`,
    ({ event, fields }) => event === "presence/declared" && fields.host === host,
  );
/** Until its fence has begun, and a fencer says what matches. */
export const untilFencing = async (t: Testbed, writer: Writer, by: string, says: RegExp): Promise<void> => {
  await lab.until(
    `${writer.vm} is to be fenced, and ${by} says ${says}`,
    () => release(t, writer),
    (item) => item?.step === "Fencing" && item.fencers.some((each) => each.by === by && says.test(each.sentence)),
  );
};
/** It starts at another host, and writes on; at no host there is another machine of it. */
export const untilElsewhere = async (t: Testbed, writer: Writer): Promise<ElementState | null> => {
  const { vm, host, incarnation, uid } = writer;
  const again = await lab.until(
    `${vm} is ready elsewhere`,
    async () => {
      await release(t, writer);
      return lab.stateOf(t, vm);
    },
    (state) => state?.phase === "ready" && state.reason === null && (state.incarnation ?? 0) > incarnation,
  );
  assert.notEqual(again?.host, host);
  assert.deepEqual([again?.incarnation, again?.uid], [incarnation + 1, uid], "it was started once");
  await lab.writesOn(t, vm, writer.least);
  return again;
};
/** Whose power was cut, or whose network: it is back, with nothing of what was lost. */
export const untilBack = async (t: Testbed, writer: Writer): Promise<void> => {
  const { host, uid, sinceMs } = writer;
  await setLink(t, host, "up");
  await t.start(host);
  await untilEvent(
    t,
    sinceMs,
    `${host} is back`,
    ({ event, fields }) => event === "presence/returned" && fields.host === host,
  );
  await lab.until(
    `nothing of it runs at ${host} any more`,
    () => runsAt(t, { uid }),
    (at) => at.length === 1 && at[0] !== host,
  );
};

const storageNetwork = ["10.0.2.0/24"] as const;
/** Longer than a host waits until it ends what writes, and than its watchdog. */
const unheardMs = 14_000;

/**
 * A host loses its way to the storage servers alone. Nobody hears its beats; most hosts hear it, so it ends nothing, and nothing of it is
 * fenced: its machine stands still, and writes on as soon as the way is there again.
 */
const serversAreCutOff = async (t: Testbed, vm: lab.Machine): Promise<void> => {
  const writer = await writerOf(t, vm);
  const { host, server, sinceMs } = writer;
  const reaches = async (): Promise<number> =>
    (await t.exec(host, ["ping", "-c", "1", "-W", "1", `10.0.2.${server.slice(1)}`])).code;
  assert.equal(await reaches(), 0);
  await setRoutes(t, host, "add", storageNetwork);
  assert.notEqual(await reaches(), 0, `${host} does not reach ${server}`);
  await pause(unheardMs);
  const happened = (await eventsSince(t, sinceMs)).filter(
    ({ event, fields }) =>
      event === "ha/scheduled" || event === "ha/over" || (event === "presence/declared" && fields.host === host),
  );
  assert.deepEqual(happened, [], "nothing was ended, and nobody was taken for dead");
  assert.deepEqual(await runsAt(t, writer), [host]);
  await setRoutes(t, host, "del", storageNetwork);
  await lab.untilReady(t, vm);
  await lab.assertWritten(t, vm, writer.least);
  const after = await lab.stateOf(t, vm);
  assert.deepEqual([after?.host, after?.incarnation], [host, writer.incarnation]);
};

/**
 * The storage server's agent stands still, and what serves the disk does, with writes in its socket that land later. Its machine's host
 * loses its power: nobody can say that nothing more lands, so nothing starts. It does once the agent has seen the end of it.
 */
const fenceIsHeldBack = async (t: Testbed, context: TestContext, vm: lab.Machine): Promise<void> => {
  const writer = await writerOf(t, vm);
  const { host, server, volume, uid } = writer;
  await t.kill(server, "SIGSTOP");
  assert.equal(await lab.signalExports(t, server, "STOP", volume), 1);
  await pause(1000);
  await lab.cutPowerOf(t, host);
  await setLink(t, host, "down");
  await untilDeclared(t, writer);
  await untilFencing(t, writer, "storage", /has not answered|being fenced|not reachable/);
  await lab.signalExports(t, server, "CONT", volume);
  await pause(2000);
  assert.deepEqual(await runsAt(t, writer), [], "nothing starts before its fence, what lands late has landed or not");
  const fromMs = Date.now();
  await t.kill(server, "SIGCONT");
  await untilElsewhere(t, writer);
  context.diagnostic(`${vm} writes on ${Date.now() - fromMs} ms after its fence was let go`);
  const events = await eventsSince(t, writer.sinceMs);
  const at = (is: (typeof events)[number] | undefined): number => Date.parse(is?.time ?? "");
  const over = events.find(({ event, fields }) => event === "ha/over" && fields.vm === uid);
  const fenced = events.find(({ event, fields }) => event === "ha/fenced" && fields.vm === uid);
  assert.ok(fromMs <= at(fenced) && at(fenced) <= at(over), "its lease has ended before it was said to be over");
  await untilBack(t, writer);
};

/**
 * A machine that is host and storage server is gone whole, with the only copy of what its VM writes. That waits for the server, and says so;
 * as soon as it is there again the VM is fenced, and starts elsewhere.
 */
const serverGoesWithHost = async (t: Testbed, vm: lab.Machine): Promise<void> => {
  const writer = await writerOf(t, vm);
  const { host, server } = writer;
  await lab.cutPowerOf(t, host);
  await t.stop(server);
  assert.ok((await lab.signalExports(t, server, "KILL")) > 0);
  for (const member of [host, server]) await setLink(t, member, "down");
  await untilDeclared(t, writer);
  await untilFencing(t, writer, "storage", new RegExp(server));
  const said = await lab.untilSaid(t, vm, new RegExp(`${host} |${server}`));
  assert.notEqual(said?.phase, "ready");
  assert.deepEqual(await runsAt(t, writer), [], "what has no other copy waits for its server");
  await setLink(t, server, "up");
  await t.start(server);
  await untilElsewhere(t, writer);
  await untilBack(t, writer);
};

/** The second machine is at another host than the first: what that loses is none of the first one's. */
const standApart = async (t: Testbed): Promise<void> => {
  const [one, two] = lab.machines;
  const other = (await lab.untilReady(t, one))?.host;
  if ((await lab.untilReady(t, two))?.host !== other) return;
  await lab.cells(t, "move", two, "--to", hosts.find((host) => host !== other) ?? "");
  await lab.until(
    `${two} runs at another host than ${one}`,
    () => lab.stateOf(t, two),
    (state) => state?.phase === "ready" && state.reason === null && state.host !== other,
  );
};
/** One after the other. Begins and ends with both machines running, and the first one writing. */
export const storageLosses = async (t: Testbed, context: TestContext): Promise<void> => {
  const [one, two] = lab.machines;
  await lab.startWriting(t, one);
  const least = await lab.durable(t, one);
  await serversAreCutOff(t, one);
  await standApart(t);
  await fenceIsHeldBack(t, context, two);
  await standApart(t);
  await serverGoesWithHost(t, two);
  await lab.untilReady(t, one);
  await lab.assertWritten(t, one, least);
};
