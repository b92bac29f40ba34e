import assert from "node:assert/strict";
import { test } from "node:test";
import { answeredAtMs } from "./pinging.ts";

test("an answer to a ping is told by its own line, and nothing else is one", () => {
  const line = "[1796000000.250125] 64 bytes from 198.18.0.1: icmp_seq=7 ttl=63 time=0.119 ms";
  assert.equal(answeredAtMs(line), 1796000000250.125);
  for (const other of [
    "PING 198.18.0.1 (198.18.0.1) 56(84) bytes of data.",
    "[1796000000.250125] From 10.111.0.1 icmp_seq=1 Destination Host Unreachable",
    "[1796000000.250125] no answer yet for icmp_seq=3",
    "",
  ])
    assert.equal(answeredAtMs(other), null, other);
});
