import assert from "node:assert/strict";
import { test } from "node:test";
import { cidr, elementPath, hostName, ipv4, uid } from "../../model/cell/identifiers.ts";
import type { ReachOpening } from "../documents/cells.ts";
import { agreementOf, type Side } from "./agreement.ts";

const anyPort = { from: 0, to: 65_535 };
const tcp = { direction: "out", protocol: "tcp", sourcePorts: anyPort, ports: { from: 80, to: 90 } } as const;
const own = "10.64.0.2";
const foreign = "10.64.1.2";
/** A rule of the own cell, which names `names` of the other; the other cell's is made of it by `mirrored`. */
const side = (
  openings: readonly ReachOpening[],
  places: readonly (readonly [string, string])[],
  names: string,
): Side => ({
  reach: {
    uid: uid("r-1"),
    other: { domain: "other.cells.internal", path: elementPath("other/vm") },
    networks: places.map(([address]) => cidr(`${address}/32`)),
    placed: places.map(([address, host]) => ({ address: ipv4(address), host: hostName(host) })),
    openings,
  },
  names: [`${names}/32`],
});
const agree = (one: Partial<ReachOpening>, two: Partial<ReachOpening>): boolean => {
  const mine = side([{ ...tcp, ...one }], [[own, "h1"]], foreign);
  const theirs = side([{ ...tcp, direction: "in", ...two }], [[foreign, "h2"]], own);
  const { agreed, hosts } = agreementOf(mine, [theirs]);
  assert.equal(hosts.length > 0, agreed, "places are told where it is agreed");
  assert.equal(agreementOf(theirs, [mine]).agreed, agreed, "both hear the same");
  return agreed;
};

test("two rules agree on one direction, one protocol, and a port of each end", () => {
  assert.ok(agree({}, {}));
  assert.ok(!agree({}, { direction: "out" }));
  for (const protocol of ["udp", "icmp"] as const) {
    assert.ok(!agree({}, { protocol }), `tcp and ${protocol}`);
    assert.ok(agree({ protocol }, { protocol }), `${protocol} twice`);
    // A rule for all protocols opens that of the other.
    assert.ok(agree({ protocol: "any" }, { protocol }) && agree({ protocol }, { protocol: "any" }));
  }
  assert.ok(!agree({ protocol: "udp" }, { protocol: "icmp" }));
  for (const end of ["ports", "sourcePorts"] as const) {
    const ports = (from: number, to: number): Partial<ReachOpening> => ({ [end]: { from, to } });
    for (const [a, b, isShared] of [
      [ports(80, 90), ports(90, 95), true],
      [ports(80, 90), ports(91, 95), false],
      [ports(80, 90), ports(70, 80), true],
      [ports(80, 90), ports(70, 79), false],
      [ports(80, 90), ports(84, 86), true],
      [ports(0, 65_535), ports(1, 1), true],
    ] as const)
      assert.equal(agree(a, b), isShared, `${end} ${JSON.stringify([a, b])}`);
  }
});

test("one opening of several is enough, and one rule of several", () => {
  const mine = side([{ ...tcp, protocol: "udp" }, tcp], [[own, "h1"]], foreign);
  const theirs = (openings: readonly ReachOpening[]): Side => side(openings, [[foreign, "h2"]], own);
  const udp = { ...tcp, protocol: "udp", direction: "in" } as const;
  const icmp = { ...tcp, protocol: "icmp", direction: "in" } as const;
  assert.ok(agreementOf(mine, [theirs([icmp]), theirs([icmp, udp])]).agreed);
  assert.ok(!agreementOf(mine, [theirs([icmp]), theirs([])]).agreed);
});

test("each names the other: who is named by one side alone agrees to nothing", () => {
  const mine = side([tcp], [[own, "h1"]], foreign);
  const elsewhere = "10.64.9.9";
  const opened = [{ ...tcp, direction: "in" }] as const;
  assert.deepEqual(agreementOf(mine, [side(opened, [[foreign, "h2"]], elsewhere)]), { agreed: false, hosts: [] });
  assert.deepEqual(agreementOf(mine, [side(opened, [[elsewhere, "h2"]], own)]), { agreed: false, hosts: [] });
});

test("only places of addresses that both name are told, each once and in their order", () => {
  const opened = [{ ...tcp, direction: "in" }] as const;
  const others = ["10.64.1.4", "10.64.1.3", "10.64.1.2"];
  const theirs = side(
    opened,
    [...others.map((address) => [address, `h-${address.at(-1)}`] as const), ["10.64.9.9", "h9"]],
    own,
  );
  const mine = {
    ...side(
      [tcp],
      [
        ["10.64.0.3", "h5"],
        [own, "h1"],
        ["10.64.0.9", "h6"],
      ],
      foreign,
    ),
    names: ["10.64.1.0/24"],
  };
  const both = { ...theirs, names: [`${own}/32`, "10.64.0.3/32"] };
  const hosts = ["h-2", "h-3", "h-4"];
  // Asked twice, as of two rules of the other cell.
  assert.deepEqual(agreementOf(mine, [both, both]), {
    agreed: true,
    hosts: [
      { address: own, hosts },
      { address: "10.64.0.3", hosts },
    ],
    there: [2, 3, 4].map((last) => ({ address: `10.64.1.${last}`, host: `h-${last}` })),
  });
});
