import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import {
  changedAddresses,
  FlowHandler,
  isTranslatedOtherwise,
  keptOf,
  mistranslated,
  translationsOf,
} from "./flows.ts";

const [elastic, other, inside, second, client] = ["198.18.0.1", "198.18.0.2", "10.9.0.10", "10.9.0.11", "192.0.2.7"];
const [first = 0, last = 0] = [parseIpv4("198.18.0.0"), parseIpv4("198.18.0.255")].map((each) => each ?? 0);
const managed = [{ device: "em1", ranges: [{ first, last }] }];
/** As `conntrack -L` prints it. */
const flow = (from: string, to: string, answersFrom: string, answersTo: string): string =>
  `udp      17 28 src=${from} dst=${to} sport=5000 dport=53 src=${answersFrom} dst=${answersTo} sport=53 dport=5000 mark=0 use=1\n`;

test("what is translated otherwise by now is forgotten, and what is translated as it should be lives on", () => {
  const translations = new Map([[elastic, inside]]);
  const lawful =
    flow(client, elastic, inside, client) +
    flow(inside, client, client, elastic) +
    flow(second, client, client, second) +
    flow(client, "203.0.113.1", "203.0.113.1", client);
  assert.deepEqual(mistranslated(lawful, managed, translations), []);
  for (const [listed, lines] of [
    // Begun while it was nobody's, or another's.
    [flow(client, elastic, elastic, client), [`-D -d ${elastic} -r ${elastic}`]],
    [flow(client, elastic, second, client), [`-D -d ${elastic} -r ${second}`]],
    // It is nobody's any more.
    [flow(client, other, inside, client), [`-D -d ${other} -r ${inside}`]],
    [flow(second, client, client, elastic), [`-D -s ${second} -q ${elastic}`]],
    [flow(inside, client, client, other), [`-D -s ${inside} -q ${other}`]],
  ] as const)
    assert.deepEqual(mistranslated(lawful + listed + listed, managed, translations), lines);
});

test("metadata, which is translated by a rule of its own, lives on", () => {
  const metadata = parseIpv4("169.254.169.254") ?? 0;
  const ranges = [...managed, { device: "em1", ranges: [{ first: metadata, last: metadata }] }];
  const asked = flow(inside, "169.254.169.254", "10.111.0.9", inside);
  assert.deepEqual(mistranslated(asked, ranges, new Map()), []);
});

test("of a changed address all that there is is forgotten, in either direction, and of one that nothing is kept of nothing is said", () => {
  const listed = flow(client, inside, inside, client) + flow(second, client, client, second);
  assert.deepEqual(
    [...keptOf(listed, new Set([inside, elastic, second]))].map(([address, lines]) => [address, ...lines]),
    [
      [inside, `-D -d ${inside}`],
      [second, `-D -s ${second}`],
    ],
  );
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
  assert.deepEqual(changedAddresses(same, [...same.slice(0, 2), led(second)]), []);
  assert.deepEqual(changedAddresses(same, [...same, guard("vn_i-3", second)]), [second]);
  // The mode has just come to this machine, and connections of before live on.
  assert.deepEqual(changedAddresses([], same), []);
  assert.ok(isTranslatedOtherwise(same, [...same.slice(0, 2), led(second)]) && isTranslatedOtherwise([], same));
  assert.ok(!isTranslatedOtherwise(same, [...same, guard("vn_i-3", second)]));
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

test("where the kernel keeps much, some goes with each call, the rest is named, and what has gone is not taken again", async () => {
  const asked: string[][] = [];
  const directory = mkdtempSync(join(tmpdir(), "cells-flows-"));
  const addresses = Array.from({ length: 10 }, (_, index) => `10.9.1.${index + 1}`);
  const much = addresses
    .map((address) => flow(client, address, address, client))
    .join("")
    .repeat(50_000);
  try {
    const handler = new FlowHandler(async (_, [how = "", file = ""]) => {
      if (how === "-R") asked.push(readFileSync(file, "utf8").trim().split("\n"));
      return how === "-L" ? much : "";
    }, directory);
    const rules = addresses.map((address) => `-A EUCA_COUNTERS_IN -d ${address}/32`);
    handler.note([{ name: "filter", chains: [] }], new Map([["filter EUCA_COUNTERS_IN", rules]]));
    await assert.rejects(() => handler.apply({ managed }, null), /of 6 more addresses/);
    await assert.rejects(() => handler.apply({ managed }, null), /of 2 more addresses/);
    await handler.apply({ managed }, null);
    await handler.apply({ managed }, null);
    assert.deepEqual(
      asked.map((lines) => lines.length),
      [4, 4, 2],
    );
    assert.deepEqual(
      asked.flat(),
      addresses.map((address) => `-D -d ${address}`),
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});
