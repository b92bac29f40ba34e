import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Testbed, withTestbed } from "../harness.ts";
import * as lab from "../lab.testing.ts";
import { drainsAndResumes } from "./losses/drain.testing.ts";
import { reportOf, setLink, setRoutes, storageLosses } from "./losses/losses.testing.ts";
import { eventsSince, untilEvent } from "./presence.testing.ts";

/**
 * A host is lost, and nobody says anything of it: its machines are fenced, and start elsewhere by themselves. The power is cut of
 * everything of the host at once; its machine wrote numbered lines, each durable before it was called so.
 */
const [one, two] = lab.machines;
const servers = ["s1", "s2"] as const;

/** A Host Manager that is away is no lost host: the machine answers its neighbours, and its VM is left alone. */
const managerIsAway = async (t: Testbed, host: string): Promise<void> => {
  const since = Date.now();
  await t.stop(host);
  await untilEvent(
    t,
    since,
    `${host} is declared dead`,
    ({ event, fields }) => event === "presence/declared" && fields.host === host,
  );
  const said = await lab.until(
    "a neighbour has an answer",
    () => lab.cells(t, "ha", "why", one),
    (text) => /neighbours: Running, .* answers h\d on the network/.test(text),
  );
  assert.match(said, /Investigating since/);
  await t.start(host);
  await lab.until(
    "its item is cancelled",
    () => reportOf(t),
    ({ items }) => items.length > 0 && items.every(({ step }) => step === "Cancelled"),
  );
  assert.equal((await lab.untilReady(t, one))?.incarnation, 1);
};

/** Other hosts, services and controllers; the storage servers are not among them. */
const elsewhereThanStorage = ["10.0.0.0/24", "10.0.1.0/24", "10.0.3.0/24"] as const;
/** A host that lost its way to all others but the storage servers says to these that it is there: its VM is left alone, and runs on. */
const hostIsIsolated = async (t: Testbed, host: string): Promise<void> => {
  const since = Date.now();
  await setRoutes(t, host, "add", elsewhereThanStorage);
  await untilEvent(
    t,
    since,
    `${host} is declared dead`,
    ({ event, fields }) => event === "presence/declared" && fields.host === host,
  );
  const said = await lab.until(
    "a storage server hears it",
    () => lab.cells(t, "ha", "why", one),
    (text) => /Investigating since/.test(text) && /heartbeat: Running/.test(text),
  );
  assert.match(said, new RegExp(`heartbeat: Running, ${host} says to s\\d that it is there`));
  await setRoutes(t, host, "del", elsewhereThanStorage);
  await lab.until(
    "its item is cancelled",
    () => reportOf(t),
    ({ items }) => items.length > 0 && items.every(({ step }) => step === "Cancelled"),
  );
  assert.equal((await lab.untilReady(t, one))?.incarnation, 1);
};

/**
 * A host loses its network, and its machines run on. Nobody hears it: it ends what writes itself, before anybody can tell it. That is
 * no fence, so the VM is fenced; and it is held, since this is its second host that is lost soon after it came.
 */
const hostIsCutOff = async (t: Testbed, context: TestContext, host: string): Promise<void> => {
  const [since, from] = [Date.now(), performance.now()];
  const least = await lab.durable(t, one);
  await setLink(t, host, "down");
  await lab.until(
    `${host} has ended what writes`,
    () => lab.inventory(t, [host], []),
    (found) => (found[`${host} machines`] ?? []).length === 0,
  );
  context.diagnostic(
    `${host} has ended its machines ${Math.round(performance.now() - from)} ms after its network was cut`,
  );
  await untilEvent(
    t,
    since,
    "its VM is held",
    ({ event, fields }) => event === "ha/held" && /both lost soon after it came/.test(String(fields.reason)),
  );
  await lab.cells(t, "ha", "release", one);
  const again = await lab.untilReady(t, one, 3);
  assert.notEqual(again?.host, host);
  await lab.writesOn(t, one, least);
  await setLink(t, host, "up");
};

const hostIsLost = async (t: Testbed, context: TestContext): Promise<void> => {
  await lab.applyLab(t);
  for (const vm of lab.machines) await lab.untilReady(t, vm);
  await lab.startWriting(t, one);
  await lab.until(
    "both machines are looked after",
    () => reportOf(t),
    ({ protected: count }) => count === 2,
  );
  assert.match(await lab.cells(t, "ha"), /2 running VMs are looked after/);
  const before = await lab.stateOf(t, one);
  const host = before?.host ?? "";
  const elsewhere = (await lab.stateOf(t, two))?.host;
  await managerIsAway(t, host);
  await hostIsIsolated(t, host);
  const least = await lab.durable(t, one);
  const since = Date.now();
  const from = performance.now();
  await lab.cutPowerOf(t, host);
  await setLink(t, host, "down");
  const declared = await untilEvent(
    t,
    since,
    `${host} is declared dead`,
    ({ event, fields }) => event === "presence/declared" && fields.host === host,
  );
  const again = await lab.untilReady(t, one, 2);
  const ms = Math.round(performance.now() - from);
  context.diagnostic(`${one} answers at ${again?.host} ${ms} ms after the power of ${host} was cut`);
  assert.notEqual(again?.host, host);
  assert.deepEqual([again?.incarnation, again?.uid, again?.lastEnd?.how], [2, before?.uid, "host died"]);
  // Fenced first, by the storage's own word, and only then started.
  const events = await eventsSince(t, since);
  const at = (name: string): number => {
    const found = events.find(({ event, fields }) => event === name && (fields.vm ?? fields.uid) === before?.uid);
    return found === undefined ? Number.NaN : Date.parse(found.time);
  };
  const isFenced = events.some(
    ({ event, fields }) => event === "ha/over" && fields.vm === before?.uid && fields.by === "storage",
  );
  assert.ok(isFenced, "the storage has fenced it");
  assert.ok(Date.parse(declared.time) <= at("ha/over") && at("ha/fenced") <= at("ha/over"));
  const why = await lab.cells(t, "ha", "why", one);
  assert.match(why, /host-manager: Unknown/);
  assert.match(why, /storage: its leases of 1 volume have ended/);
  // Every line that was called durable is there, once and in order, and it goes on.
  await lab.writesOn(t, one, least);
  if (elsewhere !== host) assert.equal((await lab.stateOf(t, two))?.incarnation, 1, "the other one was left alone");
  await setLink(t, host, "up");
  await t.start(host);
  await lab.until(
    `nothing of it runs at ${host} any more`,
    () => lab.inventory(t, [host], servers),
    (found) => (found[`${host} machines`] ?? []).length === 0,
  );
  await lab.assertWritten(t, one, least);
  await hostIsCutOff(t, context, again?.host ?? "");
  await drainsAndResumes(t, context);
  await storageLosses(t, context);
};

test(
  "a host is lost: its machine starts elsewhere by itself, with every line that it had written",
  {
    timeout: 1_200_000,
  },
  (context) => withTestbed({ hosts: 3, servers: servers.length, ha: true }, (t) => hostIsLost(t, context)),
);
