import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HaReport } from "../../model/api.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import * as lab from "../lab.testing.ts";
import { eventsSince, untilEvent } from "./presence.testing.ts";

/**
 * A host is lost, and nobody says anything of it: its machines are fenced, and start elsewhere by themselves. The power is cut of
 * everything of the host at once; its machine wrote numbered lines, each durable before it was called so.
 */
const [one, two] = lab.machines;
const servers = ["s1", "s2"] as const;

const reportOf = async (t: Testbed): Promise<HaReport> =>
  JSON.parse(await lab.cells(t, "ha", "--output", "json")) as HaReport;

/** The machine's own part of the power: its namespace stays, so its kernel would answer on. */
const setLink = async (t: Testbed, host: string, to: "up" | "down"): Promise<void> => {
  const { code, stderr } = await t.exec(host, ["ip", "link", "set", "eth0", to]);
  assert.equal(code, 0, stderr);
};

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
  await lab.untilInGuest(t, one, "tail -n 1 /root/log", /^\d+\n$/);
  await lab.startWriting(t, one);
  await lab.assertWritten(t, one, least);
  if (elsewhere !== host) assert.equal((await lab.stateOf(t, two))?.incarnation, 1, "the other one was left alone");
  await setLink(t, host, "up");
  await t.start(host);
  await lab.until(
    `nothing of it runs at ${host} any more`,
    () => lab.inventory(t, [host], servers),
    (found) => (found[`${host} machines`] ?? []).length === 0,
  );
  await lab.assertWritten(t, one, least);
};

test(
  "a host is lost: its machine starts elsewhere by itself, with every line that it had written",
  {
    timeout: 600_000,
  },
  (context) => withTestbed({ hosts: 3, servers: servers.length, ha: true }, (t) => hostIsLost(t, context)),
);
