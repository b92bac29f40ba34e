import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { type Judged, judge, type Packet } from "./judge.ts";

const address = (text: string): number => parseIpv4(text) ?? assert.fail(text);
const packet: Packet = {
  source: address("10.0.0.5"),
  destination: address("10.0.0.6"),
  asked: address("10.0.0.6"),
  protocol: "tcp",
  port: 22,
  mark: 0,
  from: "vn_i-00000001",
  to: null,
  mac: null,
};
const judged = (...rules: readonly string[]): Judged => {
  const printed = new Map([
    ["filter FORWARD", [":FORWARD ACCEPT", ...rules.map((rule) => `-A FORWARD ${rule}`)]],
    ["filter site", [":site -", "-A site -j DROP"]],
  ]);
  return judge({ printed, sets: new Map() }, "filter", "FORWARD", packet);
};

test("a comment changes nothing of what a rule does, whatever stands in it", () => {
  for (const rule of [
    "-s 10.0.0.0/24 -m comment --comment guests -j DROP",
    '-m comment --comment "no -j ACCEPT here: \\"guests\\" -g x" -j DROP',
    '-p tcp -m comment --comment "a" -m tcp --dport 22 -m comment --comment "-b" -g site',
  ]) {
    const { verdict, doubts } = judged(rule);
    assert.deepEqual([verdict, doubts], ["DROP", []], rule);
  }
  const { by } = judged('-m comment --comment "guests" -j DROP');
  assert.equal(by?.rule, '-m comment --comment "guests" -j DROP', "it is said as it is printed");
  assert.equal(judged('-d 10.0.0.7/32 -m comment --comment "another" -j DROP').verdict, "ACCEPT");
});

test("what is established already is no packet that opens a connection, by either name of that match", () => {
  for (const match of ["conntrack --ctstate", "state --state"]) {
    const { verdict, doubts } = judged(`-m ${match} RELATED,ESTABLISHED -j DROP`);
    assert.deepEqual([verdict, doubts], ["ACCEPT", []], match);
    assert.equal(judged(`-m ${match} NEW,RELATED -j DROP`).verdict, "DROP", match);
  }
});
