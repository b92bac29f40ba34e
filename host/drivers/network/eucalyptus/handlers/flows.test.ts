import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { changedAddresses, FlowHandler, forgotten, translationsOf } from "./flows.ts";

const [elastic, other, inside, second, client] = ["198.18.0.1", "198.18.0.2", "10.9.0.10", "10.9.0.11", "192.0.2.7"];
const [first = 0, last = 0] = [parseIpv4("198.18.0.0"), parseIpv4("198.18.0.255")].map((each) => each ?? 0);
const managed = [{ device: "em1", ranges: [{ first, last }] }];
/** As `conntrack -L` prints it. */
const flow = (from: string, to: string, answersFrom: string, answersTo: string): string =>
  `udp      17 28 src=${from} dst=${to} sport=5000 dport=53 src=${answersFrom} dst=${answersTo} sport=53 dport=5000 mark=0 use=1\n`;
const nobodys = new Set<string>();

test("what is translated otherwise by now is forgotten, and what is translated as it should be lives on", () => {
  const translations = new Map([[elastic, inside]]);
  const lawful =
    flow(client, elastic, inside, client) +
    flow(inside, client, client, elastic) +
    flow(second, client, client, second) +
    flow(client, "203.0.113.1", "203.0.113.1", client);
  assert.deepEqual(forgotten(lawful, managed, translations, nobodys), []);
  for (const [listed, lines] of [
    // Begun while it was nobody's, or another's.
    [flow(client, elastic, elastic, client), [`-D -d ${elastic} -r ${elastic}`]],
    [flow(client, elastic, second, client), [`-D -d ${elastic} -r ${second}`]],
    // It is nobody's any more.
    [flow(client, other, inside, client), [`-D -d ${other} -r ${inside}`]],
    [flow(second, client, client, elastic), [`-D -s ${second} -q ${elastic}`]],
    [flow(inside, client, client, other), [`-D -s ${inside} -q ${other}`]],
  ] as const)
    assert.deepEqual(forgotten(lawful + listed + listed, managed, translations, nobodys), lines);
});

test("metadata, which is translated by a rule of its own, lives on", () => {
  const metadata = parseIpv4("169.254.169.254") ?? 0;
  const ranges = [...managed, { device: "em1", ranges: [{ first: metadata, last: metadata }] }];
  const asked = flow(inside, "169.254.169.254", "10.111.0.9", inside);
  assert.deepEqual(forgotten(asked, ranges, new Map(), nobodys), []);
});

test("of a changed address all that there is is forgotten, in either direction, and of one that nothing is kept of nothing is said", () => {
  const listed = flow(client, inside, inside, client) + flow(second, client, client, second);
  assert.deepEqual(forgotten(listed, managed, null, new Set([inside, elastic])), [
    `-D -s ${inside}`,
    `-D -d ${inside}`,
    `-D -r ${inside}`,
    `-D -q ${inside}`,
  ]);
  // Translations are not written yet: those of before are no fault.
  assert.deepEqual(forgotten(flow(client, elastic, inside, client), managed, null, nobodys), []);
});

test("an address changes with its tap, with who is counted, and with what it is translated to", () => {
  const guard = (tap: string, address: string): string =>
    `-A EUCA_EBT_NAT_PRE -p IPv4 -i ${tap} --ip-src ! ${address} -j DROP`;
  const counted = (address: string): string => `-A EUCA_COUNTERS_IN -d ${address}/32`;
  const led = (to: string): string => `-A EUCA_NAT_PRE -d ${elastic}/32 -j DNAT --to-destination ${to}`;
  const same = [guard("vn_i-1", inside), counted("10.9.0.12"), led(inside)];
  assert.deepEqual(changedAddresses(same, same), []);
  assert.deepEqual(changedAddresses(same, [guard("vn_i-2", inside), counted("10.9.0.12"), led(inside)]), [inside]);
  assert.deepEqual(changedAddresses(same, [guard("vn_i-1", inside), led(inside)]), ["10.9.0.12"]);
  assert.deepEqual(changedAddresses(same, [...same.slice(0, 2), led(second)]), [elastic]);
  assert.deepEqual(changedAddresses(same, [...same, guard("vn_i-3", second)]), [second]);
  // The mode has just come to this machine, and connections of before live on.
  assert.deepEqual(changedAddresses([], same), [elastic]);
});

test("what could not be forgotten is tried again, and nothing is listed where nothing has changed", async () => {
  const calls: string[] = [];
  let fails = false;
  const handler = new FlowHandler(async (program, args) => {
    calls.push([program, args[0]].join(" "));
    if (fails) throw new Error("out of memory");
    return flow(client, inside, inside, client);
  }, "/nowhere");
  const tables = [{ name: "nat", chains: [] }];
  assert.deepEqual([...translationsOf(tables)], []);
  await handler.apply({ managed }, tables);
  await handler.apply({ managed }, tables);
  assert.deepEqual(calls, ["conntrack -L"], "once as it begins");
  const rule = `-A EUCA_COUNTERS_IN -d ${second}/32`;
  handler.note([{ name: "filter", chains: [] }], new Map([["filter EUCA_COUNTERS_IN", [rule]]]));
  fails = true;
  await assert.rejects(() => handler.apply({ managed }, null), /out of memory/);
  fails = false;
  await handler.apply({ managed }, null);
  await handler.apply({ managed }, null);
  assert.equal(calls.length, 3);
});
