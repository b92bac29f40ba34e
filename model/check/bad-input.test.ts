import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { readSpecification } from "../specification/specification.ts";
import { unknownSupply } from "./check-supply.ts";
import { dataSize } from "./data-size.ts";

/** What careless authors write, and what they are told: each fault with its position, its cause and what would be right.
 * `^` marks where the first diagnostic must point to; everything before it is the text up to there. */
interface Mistake {
  readonly what: string;
  /** Inside a cell `shop`; the `^` is taken out. */
  readonly text: string;
  readonly code: string;
  readonly message: RegExp;
  /** What would be right, in the hint or, where the message says it already, there. */
  readonly right: RegExp;
}

const hosts = [
  { host: "h1", memoryMiB: 2048, cpus: 32, cpuSpeedMHz: 2400 },
  { host: "h2", memoryMiB: 4096, cpus: 16, cpuSpeedMHz: 2400 },
];
const addresses = {
  internal: { pool: "10.64.0.0/10", largest: 2 ** 22, fixed: ["10.64.0.0/10", "10.0.0.0/8"] },
  external: { pool: "198.18.0.0/15", largest: 2 ** 17, fixed: ["198.18.0.0/15"] },
  reserved: ["10.0.0.0/16"],
  shortestPrefix: 8,
  longestPrefix: 29,
};
const vm = "vm extends VM { x.memory 128; }";
const net = 'net extends Subnet { x.cidr "10.64.1.0/24"; }';

const card = 'i extends VirtualInterface { x.vm "<ref:/shop/vm>"; x.subnet "<ref:/shop/net>";';
const ruleTo = (end: string, more = ""): string =>
  `${vm} ${net} r extends NetworkRule { x.address1 "<ref:/shop/vm>"; x.address2 ^"${end}"; ${more}}`;

const mistakes: readonly Mistake[] = [
  {
    what: "a kind of dedication that does not exist",
    text: 'vm extends VM { x.memory 128; x.placement.dedication ^"Preffered"; }',
    code: "schema/value",
    message: /is "strict" or "preferred"/,
    right: /Did you mean "preferred"\?/,
  },
  {
    what: "an offering's mode that does not exist",
    text: 'o extends Offering { x.memory 512; x.planner "ImplicitDedicationPlanner"; x.mode ^"Preffered"; }',
    code: "schema/value",
    message: /`x.mode` must be "Strict" or "Preferred"/,
    right: /Did you mean `Preferred`\?/,
  },
  {
    what: "an offering's planner that does not exist",
    text: 'o extends Offering { x.memory 512; x.planner ^"ImplicitDedicatonPlanner"; }',
    code: "schema/value",
    message: /`x.planner` must be/,
    right: /Did you mean `ImplicitDedicationPlanner`\?/,
  },
  {
    what: "tags that are no words",
    text: "vm extends VM { x.memory 128; x.placement.tags ^[1]; }",
    code: "schema/value",
    message: /a list of tags of hosts/,
    right: /x\.placement\.tags \["ssd"\]/,
  },
  {
    what: "properties that are neither texts nor whole numbers",
    text: "vm extends VM { x.memory 128; x.placement.properties ^[1]; }",
    code: "schema/value",
    message: /texts and whole numbers by names/,
    right: /extends DATA \{ gpu "a100"; sriov 8; \}/,
  },
  {
    what: "a zone that is no name",
    text: "vm extends VM { x.memory 128; x.placement.zone ^1; }",
    code: "schema/value",
    message: /the name of a zone/,
    right: /as in `x\.placement\.zone "z1"/,
  },
  {
    what: "a group that is no name",
    text: "vm extends VM { x.memory 128; x.placement.groups ^[1]; }",
    code: "schema/value",
    message: /a list of names/,
    right: /x\.placement\.groups \["DedicatedGrp-dev"\]/,
  },
  {
    what: "an affinity group of no kind that there is",
    text: 'g extends AffinityGroup { x.kind ^"host anti-afinity"; }',
    code: "schema/value",
    message: /`x.kind` must be "host affinity"/,
    right: /Did you mean `host anti-affinity`\?/,
  },
  {
    what: "two affinity groups of one name",
    text: 'a extends { g extends AffinityGroup { x.kind "host affinity"; } } b extends { g extends AffinityGroup { x.kind ^"host affinity"; } }',
    code: "cell/duplicate",
    message: /`g` is already that of `shop\/a\/g`/,
    right: /./,
  },
  {
    what: "an affinity group that looks like one of a dedication",
    text: '^DedicatedGrp-dev extends AffinityGroup { x.kind "host affinity"; }',
    code: "cell/dedication",
    message: /a group that is made by a dedication/,
    right: /does not begin with `DedicatedGrp-`/,
  },
  {
    what: "a group outside 224.0.0.0/4",
    text: `${vm} ${net} ${card} x.groups ^["239.1.2.3", "10.1.2.3"]; }`,
    code: "schema/value",
    message: /"10.1.2.3", which is no multicast group/,
    right: /from 224.0.0.0 to 239.255.255.255/,
  },
  {
    what: "a group twice",
    text: `${vm} ${net} ${card} x.groups ^["239.1.2.3", "239.1.2.3"]; }`,
    code: "schema/value",
    message: /twice/,
    right: /one of the two/,
  },
  {
    what: "a rule to a group",
    text: ruleTo("239.1.2.3"),
    code: "cell/rule",
    message: /239.1.2.3\/32 is a multicast group/,
    right: /name the members' subnets/,
  },
  {
    what: "a directed broadcast with ICMP",
    text: ruleTo("10.64.1.255", 'x.protocol "icmp"; '),
    code: "cell/rule",
    message: /10.64.1.255 is a broadcast address, that of `shop\/net`; .* a ping to one never/,
    right: /with "udp" or "any", as in `"<ref:\/shop\/net>"`/,
  },
  {
    what: "a directed broadcast as an address",
    text: ruleTo("10.64.1.255"),
    code: "cell/rule",
    message: /is a broadcast address/,
    right: /"<ref:\/shop\/net>"/,
  },
  {
    what: "a rule to the limited broadcast",
    text: ruleTo("255.255.255.255"),
    code: "cell/rule",
    message: /the sender's own subnet/,
    right: /name the subnet/,
  },
  {
    what: "a router that may speak for nobody",
    text: `${vm} out extends Subnet { x.size 8; x.router ^"<ref:/shop/i>"; } ${net} ${card} }`,
    code: "cell/router",
    message: /may not answer for what is outside/,
    right: /Give `shop\/i` `x.forwards \["internet"\];`/,
  },
  {
    what: "a router of an external subnet",
    text: `${vm} out extends Subnet { x.size 8; x.addressRange "external"; x.router ^"<ref:/shop/i>"; } ${net} ${card} x.forwards ["internet"]; }`,
    code: "cell/router",
    message: /no use for a router/,
    right: /leaving out `x.addressRange`/,
  },
  {
    what: "a router that is no interface",
    text: `${vm} out extends Subnet { x.size 8; x.router ^"<ref:/shop/vm>"; }`,
    code: "reference/type",
    message: /must refer to a VirtualInterface/,
    right: /no such element/,
  },
  {
    what: "forwarding for addresses that nobody has",
    text: `${vm} ${net} ${card} x.forwards ^["192.168.0.0/16", "224.0.0.0/8"]; }`,
    code: "cell/forwards",
    message: /224.0.0.0\/8, and no machine sends/,
    right: /"internet"/,
  },
  {
    what: "forwarding on the outer side",
    text: `${vm} net extends Subnet { x.size 8; x.addressRange "external"; } ${card} x.forwards ^["internet"]; }`,
    code: "cell/forwards",
    message: /on the external subnet/,
    right: /internal subnet/,
  },
  {
    what: "forwarding for all addresses there are",
    text: `${vm} ${net} ${card} x.forwards ^["0.0.0.0/0"]; }`,
    code: "cell/forwards",
    message: /contains 10.64.0.0\/10, addresses of the installation itself/,
    right: /of which all together are "internet"/,
  },
  {
    what: "forwarding for a part of a pool",
    text: `${vm} ${net} ${card} x.forwards ^["198.18.7.0/24"]; }`,
    code: "cell/forwards",
    message: /is in 198.18.0.0\/15/,
    right: /speaks for himself/,
  },
  {
    what: "a network with host bits in a list",
    text: `${vm} ${net} ${card} x.forwards ^["192.168.1.1/16"]; }`,
    code: "schema/value",
    message: /bits set beyond its prefix/,
    right: /"192.168.0.0\/16"/,
  },
  {
    what: "a string without its end",
    text: 'vm extends VM { x.desiredState ^"on; }',
    code: "syntax/unclosed-string",
    message: /not closed/,
    right: /Close it with/,
  },
  {
    what: "an attribute without a value",
    text: "vm extends VM { x.memory ^= 128; }",
    code: "syntax/",
    message: /=/,
    right: /./,
  },
  {
    what: "a type nobody knows",
    text: "vm extends ^VMM { x.memory 128; }",
    code: "type/unknown",
    message: /no component `VMM`/,
    right: /mean `VM`/,
  },
  {
    what: "a type in lower case",
    text: "vm extends ^vm { x.memory 128; }",
    code: "type/cycle",
    message: /extends itself/,
    right: /mean the type `VM`/,
  },
  {
    what: "a misspelt attribute",
    text: "vm extends VM { ^x.memry 128; }",
    code: "schema/unknown-attribute",
    message: /`x.memry` is not an attribute of VM/,
    right: /mean `x.memory`/,
  },
  {
    what: "an attribute without its prefix",
    text: "^vm extends VM { memory 128; }",
    code: "schema/required",
    message: /has no `x.memory`/,
    right: /write `x.memory` instead of `memory`/,
  },
  {
    what: "a unit behind a number",
    text: 'vm extends VM { x.memory ^"2 GiB"; }',
    code: "schema/value",
    message: /whole number, not "2 GiB"/,
    right: /write 2048,/,
  },
  {
    what: "a unit that is too fine",
    text: 'vm extends VM { x.memory ^"100 KiB"; }',
    code: "schema/value",
    message: /whole number/,
    right: /counted in MiB/,
  },
  {
    what: "seconds where milliseconds are meant",
    text: 'vm extends VM { x.memory 128; x.liveness.protocol "icmp"; x.liveness.intervalMs ^"2 s"; }',
    code: "schema/value",
    message: /whole number/,
    right: /counted in ms: write 2000,/,
  },
  {
    what: "bytes where MiB are meant",
    text: "vm extends VM { x.memory ^134217728; }",
    code: "schema/range",
    message: /from 16 to 16777216 MiB/,
    right: /MiB/,
  },
  {
    what: "a truth value in quotes",
    text: 'vm extends VM { x.memory 128; x.restartOnFailure ^"yes"; }',
    code: "schema/value",
    message: /true or false/,
    right: /without quotes/,
  },
  {
    what: "a choice that is none",
    text: 'vm extends VM { x.memory 128; x.desiredState ^"running"; }',
    code: "schema/value",
    message: /"on" or "off", not "running"/,
    right: /"on" or "off"/,
  },
  {
    what: "a reference to nothing",
    text: `${vm} i extends VirtualInterface { x.vm ^"<ref:/shop/vn>"; x.subnet "<ref:/shop/net>"; } ${net}`,
    code: "reference/dangling",
    message: /there is no `vn` in `\/shop`/,
    right: /mean `vm`/,
  },
  {
    what: "a reference to the wrong kind",
    text: `${vm} ${net} i extends VirtualInterface { x.vm ^"<ref:/shop/net>"; x.subnet "<ref:/shop/net>"; }`,
    code: "reference/type",
    message: /must refer to a VM; `\/shop\/net` is a Subnet/,
    right: /a VM/,
  },
  {
    what: "two values that refer to each other",
    text: 'a extends VM { x.memory ^"<ref:/shop/b/x.memory>"; } b extends VM { x.memory "<ref:/shop/a/x.memory>"; }',
    code: "reference/circular",
    message: /leads back to itself/,
    right: /Give one attribute of the circle a value/,
  },
  {
    what: "a copy of itself",
    text: 'a extends VolumeCopy { x.image ^"<ref:../b>"; } b extends VolumeCopy { x.image "<ref:../a>"; }',
    code: "cell/copy-cycle",
    message: /a copy of itself, through shop\/a → shop\/b/,
    right: /Let one of them be a `Volume`/,
  },
  {
    what: "a volume that may be lost, with a copy over it",
    text: 'a extends Volume { x.size 1; x.recreatable ^true; } b extends VolumeCopy { x.image "<ref:../a>"; }',
    code: "cell/recreatable",
    message: /`shop\/a` cannot be made anew for one VM: `shop\/b` is a copy of it/,
    right: /Leave `x\.recreatable` out here/,
  },
  {
    what: "a volume that may be lost, of two machines",
    text: 'a extends Volume { x.size 1; x.recreatable ^true; } v extends VM { x.memory 64; } w extends VM { x.memory 64; } c extends VolumeConnection { x.vm "<ref:../v>"; x.volume "<ref:../a>"; } d extends VolumeConnection { x.vm "<ref:../w>"; x.volume "<ref:../a>"; }',
    code: "cell/recreatable",
    message: /`shop\/v` and `shop\/w` both have it/,
    right: /one VM alone writes/,
  },
  {
    what: "a volume that may be lost, and is lent",
    text: 'a extends Volume { x.size 1; x.recreatable ^true; } g extends VolumeGrant { x.volume "<ref:../a>"; x.grant "copy"; x.cell "<ref://other.cells.example.com/>"; }',
    code: "cell/recreatable",
    message: /`shop\/g` lets others have it/,
    right: /nothing rests on/,
  },
  {
    what: "a volume that nobody writes, and that may be lost",
    text: 'a extends Volume { x.size 1; x.access "ro"; x.recreatable ^true; }',
    code: "cell/recreatable",
    message: /nothing is ever written to it/,
    right: /one VM alone writes/,
  },
  {
    what: "a copy of a copy, and so on",
    text: `v0 extends Volume { x.size 1; } ${Array.from({ length: 18 }, (_, at) => `v${at + 1} extends VolumeCopy { x.image ${at === 15 ? "^" : ""}"<ref:../v${at}>"; }`).join(" ")}`,
    code: "cell/copy-depth",
    message: /`shop\/v16` is the 17th of volumes of which each is a copy of the one before, and 16 are allowed/,
    right: /Let it be a copy of one of the first of them, or of a `Volume`/,
  },
  {
    what: "data of too many attributes",
    text: `a extends VM { x.memory 128; x.data ^extends { list [${"1,".repeat(999)}1]; name "x"; } }`,
    code: "limit/data",
    message: /`x.data` of `shop\/a` has 1002 attributes and items, and 1000 are allowed/,
    right: /let it fetch the rest, or put that on a volume/,
  },
  {
    what: "data of too many bytes",
    text: `a extends VM { x.memory 128; x.data ^extends { text "${"ä".repeat(32 * 1024)}"; } }`,
    code: "limit/data",
    message: /`x.data` of `shop\/a` is 65547 bytes as JSON, and 65536 are allowed/,
    right: /let it fetch the rest/,
  },
  {
    what: "two fixed addresses alike",
    text: `${vm} b extends VM { x.memory 128; } ${net} i extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.address "10.64.1.9"; } j extends VirtualInterface { x.vm "<ref:../b>"; x.subnet "<ref:../net>"; x.address ^"10.64.1.9"; }`,
    code: "cell/duplicate",
    message: /`10.64.1.9` is already that of `shop\/i`/,
    right: /Give one of the two another value/,
  },
  {
    what: "a fixed address of another subnet",
    text: `${vm} ${net} i extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.address ^"10.64.2.9"; }`,
    code: "cell/address",
    message: /outside 10.64.1.0\/24/,
    right: /the range of `shop\/net`/,
  },
  {
    what: "the gateway's address",
    text: `${vm} ${net} i extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.address ^"10.64.1.1"; }`,
    code: "cell/address",
    message: /gateway/,
    right: /after the first two/,
  },
  {
    what: "two subnets that overlap",
    text: `${net} other extends Subnet { x.cidr ^"10.64.1.128/25"; }`,
    code: "cell/overlap",
    message: /`shop\/other` overlaps that of `shop\/net`/,
    right: /move or shrink/,
  },
  {
    what: "a subnet at the last address of another",
    text: `${net} other extends Subnet { x.cidr ^"10.64.1.255/32"; }`,
    code: "cell/overlap",
    message: /`shop\/other` overlaps that of `shop\/net`/,
    right: /move or shrink/,
  },
  {
    what: "a network with host bits",
    text: 'net extends Subnet { x.cidr ^"10.64.1.5/24"; }',
    code: "schema/value",
    message: /bits set beyond its prefix/,
    right: /10.64.1.0\/24/,
  },
  {
    what: "a port that is none",
    text: `${vm} r extends NetworkRule { x.address1 "<ref:../vm>"; x.address2 "10.0.0.0/8"; x.protocol "tcp"; x.port2 ^70000; }`,
    code: "schema/value",
    message: /1 to 65535, not 70000/,
    right: /Write 80/,
  },
  {
    what: "more memory than any host has",
    text: "vm extends VM { x.memory ^8192; }",
    code: "cell/no-host",
    message: /asks for 8192 MiB, more than any host can ever give/,
    right: /write `x.memory 4096` or less/,
  },
  {
    what: "more memory than any host has beside its screen",
    text: 'vm extends VM { x.memory ^4096; x.display "vga"; }',
    code: "cell/no-host",
    message: /asks for 4160 MiB with the 64 of its screen, more than any host/,
    right: /write `x.memory 4032` or less/,
  },
  {
    what: "more processors than any host has",
    text: "vm extends VM { x.memory 128; x.cpus ^64; }",
    code: "cell/no-host",
    message: /64 processors/,
    right: /`x.cpus 32`/,
  },
  {
    what: "what two hosts have only together",
    text: "vm extends VM { x.memory ^4096; x.cpus 32; }",
    code: "cell/no-host",
    message: /no host has all of it/,
    right: /h1 has 2048 MiB, 32 processors.*h2 has 4096 MiB, 16 processors/,
  },
  {
    what: "a host that is not there",
    text: 'vm extends VM { x.memory 128; x.placement.host ^"h9"; }',
    code: "cell/no-host",
    message: /no host `h9`/,
    right: /h1, h2/,
  },
  {
    what: "more than the host that it is pinned to has",
    text: 'vm extends VM { x.memory ^4000; x.placement.host "h1"; }',
    code: "cell/no-host",
    message: /the host `h1`, which `x.placement.host` asks for/,
    right: /`x.memory 2048`/,
  },
];

const faults = (text: string): readonly Diagnostic[] => {
  const result = readSpecification(
    { main: "shop.sf", files: { "shop.sf": text } },
    { ...unknownSupply, hosts, addresses },
  );
  return result.ok ? [] : result.error;
};

for (const { what, text, code, message, right } of mistakes) {
  test(`${what} is refused, with its place, its cause and what would be right`, () => {
    const marked = `shop extends Cell {\n${text}\n}\n`;
    const before = marked.slice(0, marked.indexOf("^")).split("\n");
    const [first] = faults(marked.replace("^", ""));
    assert.ok(first !== undefined, "it is refused");
    assert.ok(first.code.startsWith(code), `${first.code}: ${first.message}`);
    assert.match(first.message, message);
    assert.match(`${first.message} ${first.hint ?? ""}`, right);
    assert.deepEqual(
      { line: first.position?.line, column: first.position?.column },
      { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 },
    );
  });
}

test("the same texts without their mistakes are accepted", () => {
  const text = `shop extends Cell { ${vm} b extends VM { x.memory 4096; x.placement.host "h2"; x.cpus 16; } ${net}
    i extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.address "10.64.1.9"; }
    j extends VirtualInterface { x.vm "<ref:../b>"; x.subnet "<ref:../net>"; x.address "10.64.1.10"; }
    other extends Subnet { x.cidr "10.64.2.0/25"; } }`;
  assert.deepEqual(faults(text), []);
});

test("where the hosts are not known, no VM is refused for them", () => {
  const text = "shop extends Cell { vm extends VM { x.memory 8192; } }";
  assert.equal(readSpecification({ main: "a.sf", files: { "a.sf": text } }).ok, true);
});

test("several mistakes are told at once", () => {
  const text =
    'shop extends Cell {\n a extends VM { x.memry 1; }\n c extends VM { x.memory "x"; }\n d extends Subnet { }\n}';
  assert.deepEqual(
    faults(text).map(({ position }) => position?.line),
    [2, 3, 4],
  );
});

test("what a guest is given is as long as its JSON in UTF-8, whatever it is written in", () => {
  for (const text of [
    "plain",
    "\u007f\u0080",
    "\u07ff\u0800",
    "\ud7ff",
    "\ue000\uffff",
    "ä€漢字😀",
    "\u{10000}\u{10ffff}",
  ])
    assert.equal(dataSize({ text }).bytes, Buffer.byteLength(JSON.stringify({ text })), JSON.stringify(text));
});
