import assert from "node:assert/strict";
import { test } from "node:test";
import { parseConnection } from "./connection.ts";

const web = { from: "shop/web/vm", to: "shop/app/vm", protocol: "tcp", port: 8080 };

test("a connection is read in every way it may be written", () => {
  for (const words of [
    ["shop/web/vm -> shop/app/vm:8080"],
    ["shop/web/vm->shop/app/vm:8080"],
    ["shop/web/vm", "->", "shop/app/vm:8080"],
    ["shop/web/vm", "to", "shop/app/vm:8080"],
    ["shop/web/vm", "shop/app/vm:8080"],
    ["shop/web/vm", "shop/app/vm", "8080"],
  ]) {
    assert.deepEqual(parseConnection(words, undefined), web, words.join(" "));
  }
  assert.deepEqual(parseConnection(["a", "b:53"], "udp"), { from: "a", to: "b", protocol: "udp", port: 53 });
  const names = { from: "a", to: "b", protocol: "udp", port: 53 };
  for (const words of [
    ["a -> b:53/udp"],
    ["a", "b:53/UDP"],
    ["a", "b", "53/udp"],
    ["a b 53 udp"],
    ["a", "b:53", "udp"],
  ])
    assert.deepEqual(parseConnection(words, undefined), names, words.join(" "));
  for (const words of [["a -> b icmp"], ["a", "b/icmp"], ["a", "to", "b", "icmp"]])
    assert.deepEqual(parseConnection(words, undefined), { ...names, protocol: "icmp", port: null }, words.join(" "));
  const foreign = { from: "shop/vm", to: "//bank.cells.internal/db", protocol: "tcp", port: 5432 };
  assert.deepEqual(parseConnection(["shop/vm -> //bank.cells.internal/db:5432"], undefined), foreign);
  assert.deepEqual(parseConnection(["a -> b"], undefined), { from: "a", to: "b", protocol: "icmp", port: null });
});

test("what is no connection is refused with what would be one", () => {
  const refused = (words: readonly string[], protocol: string | undefined, expected: RegExp): void =>
    assert.throws(() => parseConnection(words, protocol), expected, words.join(" "));
  refused(["a"], undefined, /two ends.*cells why/s);
  refused(["a", "-"], undefined, /redirection/);
  refused(["a", "b", "80", "c"], undefined, /two ends/);
  refused(["a", "b:80", "81"], undefined, /two ports, 80 and 81/);
  refused(["a", "b:80/udp", "tcp"], undefined, /two protocols, udp and tcp/);
  refused(["a", "b:80/icmp"], undefined, /no ports/);
  refused(["a", "b:80/sctp"], undefined, /no protocol/);
  refused(["a", "b udp"], undefined, /needs the port/);
  refused(["a", "b:99999"], undefined, /no port/);
  refused(["a", "b:http"], undefined, /no port/);
  refused(["a", "b:80"], "sctp", /no protocol/);
  refused(["a", "b:80"], "icmp", /no ports/);
  refused(["a", "b"], "tcp", /needs the port/);
  refused(["a", "--verbose"], undefined, /no option/);
});
