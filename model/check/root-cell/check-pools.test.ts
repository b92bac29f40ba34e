import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cidr, cidr, hostName, ipv4 } from "../../cell/identifiers.ts";
import { planChange } from "../../plan/plan.ts";
import { planFaults } from "../../plan/plan-check.ts";
import { readSpecification } from "../../specification/specification.ts";
import { type Supply, unknownSupply } from "../check-supply.ts";
import type { AddressOffer } from "../network/check-addresses.ts";
import type { KnownPools } from "./check-pools.ts";

const ten = ["10.64.0.0/10"];
const addresses: AddressOffer = {
  internal: { pool: "10.64.0.0/10", largest: 2 ** 22, fixed: ten },
  external: { pool: "198.18.0.0/15", largest: 2 ** 17, fixed: ["198.18.0.0/15"] },
  reserved: ["10.0.0.0/16"],
  shortestPrefix: 8,
  longestPrefix: 29,
};
const nothing: KnownPools = { otherwise: cidr("198.18.0.0/15"), used: [], inside: [], routers: [] };
const read = (pools: string, supply: Supply = unknownSupply, name = "root") => {
  const text = `${name} extends Cell {\n  ${pools}\n}\n`;
  return readSpecification({ main: "root.sf", files: { "root.sf": text } }, supply);
};
/** Each fault with where it stands. */
const said = (pools: string, supply?: Supply, name?: string): string => {
  const result = read(pools, supply, name);
  if (result.ok) return "";
  return result.error
    .map(({ code, message, hint = "", position }) => `${position?.line ?? "-"} ${code}: ${message} | ${hint}`)
    .join("\n");
};
const list = (...pools: readonly string[]): string => `x.pools.external [${pools.map((each) => `"${each}"`).join()}];`;
const within = (known: Partial<KnownPools>, before?: readonly Cidr[]): Supply => {
  const cell = read(before === undefined ? "" : list(...before));
  if (!cell.ok) throw new Error("that is a cell");
  return { ...unknownSupply, addresses, pools: { ...nothing, ...known }, present: cell.value };
};

test("the root cell declares pools of external addresses, in their order; without them there is that of the installation", () => {
  const result = read(list("203.0.113.0/24", "192.0.2.0/26"), within({}));
  assert.deepEqual(result.ok && result.value.externalPools, ["203.0.113.0/24", "192.0.2.0/26"]);
  const without = read("", within({}));
  assert.equal(without.ok && without.value.externalPools, undefined);
});

test("pools that cannot be are refused where they stand, with what would be right", () => {
  for (const [pools, told] of [
    [list(), /^2 cell\/pools: .* has 0 networks \| Name from one to 8/],
    [list("internet"), /has internet, which is no network in CIDR notation \| Write it as in \["203/],
    [list("203.0.113.4/24"), /203\.0\.113\.(4|0)\/24/],
    [list("203.0.113.0/30"), /has 203\.0\.113\.0\/30, a \/30 \| A pool is between \/8 and \/29/],
    [list("203.0.113.0/24", "203.0.113.128/25"), /which overlaps 203\.0\.113\.0\/24 before it.* \| Leave out one/],
    [list("239.0.0.0/8"), /and no machine has an address of 224\.0\.0\.0\/4/],
    [list("0.0.0.0/0"), /and no machine has an address of 0\.0\.0\.0\/8/],
    [list(...Array.from({ length: 9 }, (_, at) => `203.0.${at}.0/24`)), /has 9 networks/],
  ] as const)
    assert.match(said(pools), told, pools);
  const ofShop = said(list("203.0.113.0/24"), unknownSupply, "shop");
  assert.match(ofShop, /^2 cell\/pools: .* for `shop`, which is the root cell's alone \| .* the root cell's spec/);
});

test("what machines have of former pools is forwarded by nobody else", () => {
  const card =
    'i extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.forwards ["203.0.113.0/24"]; }';
  const text = `vm extends VM { x.memory 128; } net extends Subnet { x.size 8; } ${card}`;
  const supply = (kept: readonly string[]): Supply => ({ ...unknownSupply, addresses: { ...addresses, kept } });
  assert.equal(said(text, supply([]), "shop"), "");
  const told = said(text, supply(["203.0.113.8/29"]), "shop");
  assert.match(
    told,
    /^2 cell\/forwards: .* contains 203\.0\.113\.8\/29, addresses of the installation itself \| Whoever/,
  );
});

test("pools that overlap what the installation has beside them are refused", () => {
  assert.match(said(list("10.80.0.0/16"), within({})), /overlaps 10\.64\.0\.0\/10, .* outside 10\.64\.0\.0\/10, 10\.0/);
  assert.match(said(list("10.0.4.0/24"), within({})), /^2 .*overlaps 10\.0\.0\.0\/16/);
  const inside = [cidr("192.168.4.0/26")];
  assert.match(said(list("192.168.4.0/24"), within({ inside })), /and 192\.168\.4\.0\/26 is an internal subnet's/);
  assert.equal(said(list("192.168.5.0/24"), within({ inside })), "");
  const routers = [{ host: hostName("h2"), address: ipv4("203.0.113.1") }];
  const router = said(list("203.0.113.0/24"), within({ routers }));
  assert.match(router, /203\.0\.113\.1 is the upstream router of h2: a VM could be given its address \| Leave/);
  const own = [{ host: hostName("h2"), address: ipv4("203.0.113.9"), isOwn: true as const }];
  const host = said(list("203.0.113.0/24"), within({ routers: own }));
  assert.match(host, /203\.0\.113\.9 is h2's own on the way outside: .* \| Leave the host out/);
  assert.equal(said(list("203.0.113.128/25"), within({ routers: own })), "");
  assert.equal(said(list("203.0.113.128/25"), within({ routers })), "");
});

test("a pool of which subnets have addresses is not taken away, whatever else changes", () => {
  const used = [cidr("198.18.0.0/28")];
  const left = said(list("203.0.113.0/24"), within({ used }));
  assert.match(left, /leaves out 198\.18\.0\.0\/28, where subnets have addresses \| Keep a network that holds 198/);
  assert.equal(said(list("203.0.113.0/24", "198.18.0.0/15"), within({ used })), "");
  assert.equal(said(list("203.0.113.0/24", "198.18.0.0/24"), within({ used })), "", "as much as is used");
  const before = [cidr("203.0.113.0/24")];
  const gone = said("", within({ used: [cidr("203.0.113.0/29")] }, before));
  assert.match(gone, /leaves out 203\.0\.113\.0\/29/);
  assert.equal(said("", within({}, before)), "");
  // What is there already is not looked at again.
  assert.equal(said(list("203.0.113.0/24"), within({ used, inside: before }, before)), "");
});

test("a plan names the pools before and after", () => {
  const [before, after] = [read(list("203.0.113.0/24")), read(list("192.0.2.0/24", "203.0.113.0/24"))];
  assert.ok(before.ok && after.ok);
  const plan = planChange(before.value, after.value);
  assert.match(
    JSON.stringify(plan),
    /"x\.pools\.external".*"203\.0\.113\.0\/24".*"192\.0\.2\.0\/24 203\.0\.113\.0\/24"/,
  );
  assert.deepEqual(planFaults(before.value, after.value, plan), []);
});
