import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4 } from "../../../../../model/cell/identifiers.ts";
import {
  answers,
  askAgainMs,
  askAnywayMs,
  askedMac,
  hear,
  nextQuestionMs,
  preferred,
  strange,
} from "./router-watch.ts";

const [here, there] = [ipv4("192.0.2.1"), ipv4("192.0.2.2")];
const [first, second] = [0x020000000001n, 0x020000000002n];
const silent = (router: ReturnType<typeof strange>, times: number) =>
  Array.from({ length: times }).reduce<ReturnType<typeof strange>>((known) => hear(known, 0n), router);

test("everybody is asked for a router that is nowhere yet, and who answers is it", () => {
  const unknown = strange(here);
  assert.deepEqual([answers(unknown), askedMac(unknown)], [false, null]);
  const known = hear(unknown, first);
  assert.deepEqual([known.mac, answers(known), askedMac(known)], [first, true, first]);
});

test("a router that answers where it was stays there, whoever else answers for it", () => {
  const known = hear(strange(here), first);
  const doubted = hear(hear(known, second), second);
  assert.deepEqual([doubted.mac, answers(doubted), askedMac(doubted)], [first, true, first]);
  assert.equal(hear(doubted, first).missed, 0);
});

test("one that is silent keeps its place until another MAC answers for it", () => {
  const lost = silent(hear(strange(here), first), 5);
  assert.deepEqual([lost.mac, answers(lost), askedMac(lost)], [first, false, null]);
  assert.equal(hear(lost, second).mac, second);
});

test("packets go to the first that answers; to where they went before, if none does", () => {
  const [a, b] = [hear(strange(here), first), hear(strange(there), second)];
  assert.equal(preferred([a, b], second), first);
  assert.equal(preferred([silent(a, 3), b], first), second);
  assert.equal(preferred([silent(a, 3), silent(b, 3)], second), second);
  assert.equal(preferred([strange(here), strange(there)], first), 0n);
});

test("it is asked more often while an answer is missing", () => {
  const known = hear(strange(here), first);
  assert.equal(nextQuestionMs([known]), askAnywayMs);
  assert.equal(nextQuestionMs([known, strange(there)]), askAgainMs);
  assert.equal(nextQuestionMs([silent(known, 1)]), askAgainMs);
});
