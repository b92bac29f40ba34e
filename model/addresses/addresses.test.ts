import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatIpv4, formatNetwork, parseIpv4, parseNetwork } from "./addresses.ts";

const octet = fc.integer({ min: 0, max: 255 });

test("an address is four numbers of at most 255 without leading zeros, and nothing else", () => {
  fc.assert(
    fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
      const text = octets.join(".");
      const number = parseIpv4(text);
      assert.ok(number !== null);
      assert.equal(formatIpv4(number), text);
    }),
  );
  const none = ["", ".", "1.2.3", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.4.", "1.2.3.4.5", "01.2.3.4", "1.2.3.00"];
  for (const text of [
    ...none,
    "1.2.3.256",
    "1.2.3.1000",
    "1.2.3.4 ",
    " 1.2.3.4",
    "1.2.3.a",
    "1.2.3.-4",
    "1.2.3.4/8",
    "٣.2.3.4",
  ])
    assert.equal(parseIpv4(text), null, text);
});

test("by any few characters of these, an address is what the expression of it says", () => {
  const expression = /^(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})$/;
  const piece = fc.constantFrom("0", "1", "2", "9", "25", "255", "256", ".", ".", ".", "/", " ", "a");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
      const text = pieces.join("");
      const isOne = expression.test(text) && text.split(".").every((part) => Number(part) <= 255);
      assert.equal(parseIpv4(text) !== null, isOne, text);
    }),
    { numRuns: 2000 },
  );
});

test("a network is an address with a prefix of 0 to 32, or an address alone", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 32 - 1), fc.integer({ min: 0, max: 32 }), (number, prefixLength) => {
      const network = parseNetwork(`${formatIpv4(number)}/${prefixLength}`);
      assert.ok(network !== null);
      assert.equal(network.prefixLength, prefixLength);
      assert.ok(network.first <= number && number <= network.last);
      assert.equal(network.last - network.first + 1, 2 ** (32 - prefixLength));
      assert.equal(network.first % (network.last - network.first + 1), 0);
      assert.equal(network.hostBits, network.first !== number);
      assert.equal(parseNetwork(formatNetwork(network))?.hostBits, false);
    }),
  );
  assert.deepEqual(parseNetwork("10.0.0.1"), parseNetwork("10.0.0.1/32"));
  const wrong = ["", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/40", "10.0.0.0/08", "10.0.0.0/00"];
  for (const text of [
    ...wrong,
    "10.0.0.0/1a",
    "10.0.0.0/-1",
    "10.0.0.0/8 ",
    "10.0.0.0/8/8",
    "10.0.0/8",
    "10.0.0.0/320",
  ])
    assert.equal(parseNetwork(text), null, text);
});
