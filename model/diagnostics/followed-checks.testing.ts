import type { Bundle } from "../cell/cell.ts";
import { type Supply, unknownSupply } from "../check/check-supply.ts";

/** A specification, and what is known of the installation where that matters. */
export interface Submitted {
  readonly text: string | Bundle;
  readonly supply: Supply;
}
/** One that gets the hint, and what becomes of it in each way that the hint names. */
export type Followed = readonly [wrong: Submitted, ...ways: readonly Submitted[]];

export const asIs = (wrong: string | Bundle, ...ways: readonly (string | Bundle)[]): Followed => [
  { text: wrong, supply: unknownSupply },
  ...ways.map((text) => ({ text, supply: unknownSupply })),
];
export const cellOf = (inside: string): string => `shop extends Cell { ${inside} }`;
export const within = (wrong: string, ...ways: readonly string[]): Followed => asIs(cellOf(wrong), ...ways.map(cellOf));

const vm = "vm extends VM { x.memory 64; }";
const vmWith = (more: string): string => `vm extends VM { x.memory 64; ${more} }`;
const net = 'net extends Subnet { x.cidr "10.64.0.0/24"; }';
const card = (more: string, name = "card"): string =>
  `${name} extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; ${more} }`;
const disk = "disk extends Volume { x.size 64; }";
const grant = (more: string): string =>
  `${disk} grant extends VolumeGrant { x.volume "<ref:../disk>"; x.grant "copy"; ${more} }`;
const connection = (name: string): string =>
  `${name} extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../disk>"; }`;
const rule = (more: string): string => `${vm} rule extends NetworkRule { x.protocol "tcp"; ${more} }`;
const toVm = 'x.address1 "<ref:../vm>"; x.address2 "10.1.0.0/16";';
const tier = "Tier extends { vm extends VM { x.memory 128; } }\n";
const tenants = (inside: string): string => `root extends Cell { tenants extends { ${inside} } }`;
const role = (rules: string): string => `ops extends Role { x.rules ${rules}; }`;
const management = 'net extends Subnet { x.addressRange "management"; }';

/** What attributes are given. */
const values: Readonly<Record<string, Followed>> = {
  "Write `<ref://bank.example.com/>`": within(
    grant('x.cell "<ref://bank.example.com/bank/db>";'),
    grant('x.cell "<ref://bank.example.com/>";'),
  ),
  "Name an account by its path, as": within(grant('x.account "acme/dev";'), grant('x.account "ROOT/acme/dev";')),
  "Name a domain by its path, as": within(
    grant('x.domain "acme";'),
    ...['x.domain "ROOT/acme";', 'x.domain "ROOT";'].map(grant),
  ),
  "Write the UID of the account or the domain as it is shown": within(
    grant('x.account "ROOT/acme/dev"; x.holder "of dev";'),
    ...['x.account "ROOT/acme/dev"; x.holder "u-1";', 'x.account "ROOT/acme/dev";'].map(grant),
  ),
  'Give it `x.grant "copy"`, and as `x.cell`': within(
    grant('x.account "ROOT/acme/dev"; x.hold "primary/kept/a1";'),
    grant('x.cell "<ref://bank.example.com/>"; x.hold "bank/kept/a1";'),
    grant('x.account "ROOT/acme/dev";'),
  ),
  "Another cell is named by its domain": within(
    `${vm} ${grant('x.cell "<ref:../vm>";')}`,
    `${vm} ${grant('x.cell "<ref://bank.example.com/>";')}`,
  ),
  "Leave out `LAZY`, or write": asIs(
    `m 64;\n${cellOf("vm extends VM { x.memory LAZY ROOT:m; }")}`,
    `m 64;\n${cellOf("vm extends VM { x.memory ROOT:m; }")}`,
    `m 64;\n${cellOf('vm extends VM { x.memory "<ref:/m>"; }')}`,
  ),
  "Write it without quotes, from": within('vm extends VM { x.memory "64"; }', vm),
  "Write it without a fraction, from": within("vm extends VM { x.memory 64.5; }", vm),
  "Write true, without quotes": within(vmWith('x.restartOnFailure "true";'), vmWith("x.restartOnFailure true;")),
  'Write 80, "80" or "8000-8080"': within(
    rule(`${toVm} x.port2 "http";`),
    ...["80", '"80"', '"8000-8080"'].map((port) => rule(`${toVm} x.port2 ${port};`)),
  ),
  'Write "<ref:/path>", which starts at the document': within(
    `${vm} ${net} card extends VirtualInterface { x.vm "vm"; x.subnet "<ref:../net>"; }`,
    `${vm} ${net} card extends VirtualInterface { x.vm "<ref:/shop/vm>"; x.subnet "<ref:../net>"; }`,
    `${vm} ${net} ${card("")}`,
  ),
  'Write "<ref://other.cells.example.com/>"': within(
    grant('x.cell "bank";'),
    grant('x.cell "<ref://other.cells.example.com/>";'),
  ),
  'Write ["192.168.0.0/16"].': within(
    `${vm} ${net} ${card('x.forwards "192.168.0.0/16";')}`,
    `${vm} ${net} ${card('x.forwards ["192.168.0.0/16"];')}`,
  ),
  'Write ["ROOT/acme/dev"].': within(
    'racks extends Pool { x.authorised "ROOT/acme/dev"; }',
    'racks extends Pool { x.authorised ["ROOT/acme/dev"]; }',
  ),
  'Write it from the root of all domains: "ROOT/acme/dev"': within(
    'racks extends Pool { x.authorised ["acme/dev"]; }',
    'racks extends Pool { x.authorised ["ROOT/acme/dev"]; }',
  ),
  'Write ["239.255.0.1"].': within(
    `${vm} ${net} ${card('x.groups "239.255.0.1";')}`,
    `${vm} ${net} ${card('x.groups ["239.255.0.1"];')}`,
  ),
  "Give the affinity group a name that does not begin with `DedicatedGrp-`": within(
    'DedicatedGrp-dev extends AffinityGroup { x.kind "host affinity"; }',
    'dev extends AffinityGroup { x.kind "host affinity"; }',
  ),
  'Write `x.placement.spread "web";` as well': within(
    vmWith('x.placement.spreadOver "zone";'),
    vmWith('x.placement.spreadOver "zone"; x.placement.spread "web";'),
  ),
  "Write more than `x.memory 64`, or leave the wish out": within(
    vmWith("x.placement.nice extends DATA { roomy extends DATA { memory 64; } }"),
    vmWith("x.placement.nice extends DATA { roomy extends DATA { memory 65; } }"),
    vmWith(""),
  ),
  'Leave the wish, or `x.start "resume"`, out': within(
    vmWith('x.start "resume"; x.placement.nice extends DATA { many extends DATA { cpus 2; } }'),
    vmWith('x.start "resume";'),
    vmWith("x.placement.nice extends DATA { many extends DATA { cpus 2; } }"),
  ),
  'Write it as `x.placement.tags ["ssd"];`': within(
    vmWith("x.placement.tags [1];"),
    vmWith('x.placement.tags ["ssd"];'),
  ),
  'Write a name, as in `x.placement.zone "z1";`': within(
    vmWith("x.placement.zone 1;"),
    vmWith('x.placement.zone "z1";'),
  ),
  'Write a name, as in `x.placement.offering "small";`': within(
    vmWith("x.placement.offering 1;"),
    vmWith('x.placement.offering "small";'),
  ),
  'Write ["debian"].': within(
    'racks extends Pool { x.images "debian"; }',
    'racks extends Pool { x.images ["debian"]; }',
  ),
  "Write the name of an image, or a volume of another cell as //shop.cells.internal/debian": within(
    'racks extends Pool { x.images ["/debian"]; }',
    'racks extends Pool { x.images ["debian"]; }',
    'racks extends Pool { x.images ["//shop.cells.internal/debian"]; }',
  ),
  'Write it as `x.placement.groups ["DedicatedGrp-dev"];`': within(
    vmWith("x.placement.groups [1];"),
    vmWith('x.placement.groups ["DedicatedGrp-dev"];'),
  ),
  'Write ["ssd"].': within('h1 extends Host { x.tags "ssd"; }', 'h1 extends Host { x.tags ["ssd"]; }'),
  "A word has lower-case letters": within(
    'h1 extends Host { x.tags ["SSD"]; }',
    `h1 extends Host { x.tags ["s", "9-a", "${"s".repeat(63)}"]; }`,
  ),
  'Write ["10.0.0.9"].': within('x.policy.resolvers "10.0.0.9";', 'x.policy.resolvers ["10.0.0.9"];'),
  "Write it like 10.0.0.9.": within('x.policy.resolvers ["10.0.0.256"];', 'x.policy.resolvers ["10.0.0.9"];'),
  "Leave out one of the two": within(
    `${vm} ${net} ${card('x.groups ["239.255.0.1", "239.255.0.1"];')}`,
    `${vm} ${net} ${card('x.groups ["239.255.0.1"];')}`,
  ),
  "Refer to an attribute, as in `<ref:/params/network>`": within(
    `${vm} ${net} ${card('x.forwards ["<ref:../net>"];')}`,
    `site "192.168.0.0/16"; ${vm} ${net} ${card('x.forwards ["<ref:/shop/site>"];')}`,
  ),
  'Write it like 192.168.0.0/16; all addresses outside of the installation are "internet"': within(
    `${vm} ${net} ${card('x.forwards ["everywhere"];')}`,
    `${vm} ${net} ${card('x.forwards ["192.168.0.0/16"];')}`,
    `${vm} ${net} ${card('x.forwards ["internet"];')}`,
  ),
  "Groups are the addresses from 224.0.0.0 to 239.255.255.255": within(
    `${vm} ${net} ${card('x.groups ["10.1.2.3"];')}`,
    `${vm} ${net} ${card('x.groups ["224.0.0.251", "239.1.2.3"];')}`,
  ),
  "Write it in double quotes.": within(
    "golden extends Volume { x.size 64; x.import 5; }",
    'golden extends Volume { x.size 64; x.import "5"; }',
  ),
  "letters, digits and `-`, with no `-` at either end": within(
    `${vm} ${net} ${card('x.vifName "web_1";')}`,
    `${vm} ${net} ${card('x.vifName "web-1";')}`,
  ),
  "Write it like 10.64.0.5": within(
    `${vm} ${net} ${card('x.address "10.64.0";')}`,
    `${vm} ${net} ${card('x.address "10.64.0.5";')}`,
  ),
  "Write it like 10.64.0.0/24": within('net extends Subnet { x.cidr "10.64"; }', net),
  'An element is written "<ref:../vm>"': within(
    rule('x.address1 "vm"; x.address2 "internet";'),
    rule('x.address1 "<ref:../vm>"; x.address2 "internet";'),
  ),
  'The network is written "10.64.0.0/24"': within('net extends Subnet { x.cidr "10.64.0.7/24"; }', net),
  "Write it like 02:00:0a:40:00:05": within(
    `${vm} ${net} ${card('x.mac "5";')}`,
    `${vm} ${net} ${card('x.mac "02:00:0a:40:00:05";')}`,
  ),
  "Make its first byte even": within(
    `${vm} ${net} ${card('x.mac "03:00:0a:40:00:05";')}`,
    `${vm} ${net} ${card('x.mac "02:00:0a:40:00:05";')}`,
  ),
  "`..` is the parent of the component": within(
    `${vm} ${net} card extends VirtualInterface { x.vm "<ref:../../../../vm>"; x.subnet "<ref:../net>"; }`,
    `${vm} ${net} ${card("")}`,
  ),
};

/** What elements are beside one another. */
const elements: Readonly<Record<string, Followed>> = {
  "as large as the image `tiny`": within(
    'golden extends Volume { x.import "tiny"; }',
    'golden extends Volume { x.size 64; x.import "tiny"; }',
  ),
  "A child cell is made by a `CellController`": within(
    `inner extends Cell { ${vm} }`,
    `child extends CellController { x.cell extends { inner extends Cell { ${vm} } } }`,
  ),
  "To keep it, write `vm extends Tier:vm { x.cpus 2; }`": asIs(
    `${tier}${cellOf("a extends Tier { vm extends VM { x.cpus 2; } }")}`,
    `${tier}${cellOf("a extends Tier { vm extends Tier:vm { x.cpus 2; } }")}`,
  ),
  "Give the guest what it needs to start": within(
    vmWith(`x.data extends { a "${"é".repeat(200_000)}"; }`),
    vmWith('x.data extends { a "é"; }'),
  ),
  "as in `x.liveness.port 7000;`": within(
    vmWith('x.liveness.protocol "udp";'),
    vmWith('x.liveness.protocol "udp"; x.liveness.port 7000;'),
  ),
  "Remove one of the two connections": within(
    `${vm} ${disk} ${connection("one")} ${connection("two")}`,
    `${vm} ${disk} ${connection("one")}`,
    `${vm} ${disk} ${connection("two")}`,
  ),
  "as in `x.size 8;`": within("net extends Subnet;", "net extends Subnet { x.size 8; }"),
  "Use a prefix of at most 30": within(
    'net extends Subnet { x.cidr "10.64.0.0/31"; }',
    'net extends Subnet { x.cidr "10.64.0.0/30"; }',
  ),
  "Give the subnet an `x.cidr`, or leave out `x.address`": within(
    `${vm} net extends Subnet { x.size 256; } ${card('x.address "10.64.0.5";')}`,
    `${vm} ${net} ${card('x.address "10.64.0.5";')}`,
    `${vm} net extends Subnet { x.size 256; } ${card("")}`,
  ),
  "VMs get the addresses after the first two and before the last": within(
    `${vm} ${net} ${card('x.address "10.64.0.1";')}`,
    `${vm} ${net} ${card('x.address "10.64.0.2";')}`,
    `${vm} ${net} ${card('x.address "10.64.0.254";')}`,
  ),
  "Let one end refer to a subnet, a VM or an interface": within(
    `${net} ${rule('x.address1 "internet"; x.address2 "10.1.0.0/16";')} ${card("")}`,
    ...["net", "vm", "card"].map(
      (end) => `${net} ${rule(`x.address1 "<ref:../${end}>"; x.address2 "10.1.0.0/16";`)} ${card("")}`,
    ),
  ),
  "`cells management key FILE` makes a key": asIs(
    'root extends Cell { x.backup.publicKey "mine"; }',
    `root extends Cell { x.backup.publicKey "${"a".repeat(43)}"; }`,
  ),
  "Leave `x.zone` out here": within('x.zone.name "cloud.example.org";', vm),
  "Write it in small letters with a dot": asIs(
    'root extends Cell { x.zone.name "Cloud"; x.zone.servers "ns1.example.org"; x.zone.secondaries ["10.0.0.9"]; }',
    'root extends Cell { x.zone.name "cloud.example.org"; x.zone.servers "ns1.example.org"; x.zone.secondaries ["10.0.0.9"]; }',
  ),
  "Name from one to eight, as in": asIs(
    'root extends Cell { x.zone.name "cloud.example.org"; x.zone.secondaries ["10.0.0.9"]; }',
    'root extends Cell { x.zone.name "cloud.example.org"; x.zone.servers "ns1.example.org ns2.example.org"; x.zone.secondaries ["10.0.0.9"]; }',
  ),
  "Name the addresses of its name servers": asIs(
    'root extends Cell { x.zone.name "cloud.example.org"; x.zone.servers "ns1.example.org"; }',
    'root extends Cell { x.zone.name "cloud.example.org"; x.zone.servers "ns1.example.org"; x.zone.secondaries ["10.0.0.9"]; }',
  ),
  "Write it in small letters as a name of a host": asIs(
    'root extends Cell { x.zone.name "cloud.example.org"; x.zone.servers "ns1.example.org"; x.zone.secondaries ["10.0.0.9"]; x.zone.key "the key"; }',
    'root extends Cell { x.zone.name "cloud.example.org"; x.zone.servers "ns1.example.org"; x.zone.secondaries ["10.0.0.9"]; x.zone.key "transfer"; }',
  ),
  'Write ["allow cell.read"]': asIs(tenants(role("[]")), tenants(role('["allow cell.read"]'))),
  "Leave `x.display` out": within(
    vmWith('x.start "resume"; x.display "vga";'),
    vmWith('x.start "resume";'),
    vmWith('x.start "boot"; x.display "vga";'),
  ),
  'Write ["deny vm.console", "allow vm.*"]': asIs(
    tenants(role('"allow vm.*"')),
    tenants(role('["deny vm.console", "allow vm.*"]')),
  ),
  'write "allow cell.*"': asIs(tenants(role('["allow ALL"]')), tenants(role('["allow cell.*"]'))),
  "Write it as `tenants extends": asIs(
    "root extends Cell { acme extends Domain { } }",
    "root extends Cell { tenants extends { acme extends Domain { } } }",
  ),
  "this is another one": asIs(
    tenants('acme extends Domain { x.movedFrom "root/tenants/former"; }'),
    tenants("acme extends Domain { }"),
  ),
  "Use at most 63 small letters": asIs(tenants("Acme extends Domain { }"), tenants("acme extends Domain { }")),
  "Domains are at most 15 within one another": asIs(
    tenants(`${"a extends Domain { ".repeat(17)} ${"}".repeat(17)}`),
    tenants(`${"a extends Domain { ".repeat(16)} ${"}".repeat(16)}`),
  ),
  "or make that a Domain": asIs(
    tenants("dev extends Account { lab extends Account { } }"),
    tenants("dev extends Account { } lab extends Account { }"),
    tenants("dev extends Domain { lab extends Account { } }"),
  ),
  "the operator's way in is there": asIs(tenants("operator extends Account { }"), tenants("")),
  "Give it another name than root-admin": asIs(
    tenants('reader extends Role { x.rules ["allow cell.read"]; }'),
    tenants('readers extends Role { x.rules ["allow cell.read"]; }'),
  ),
  "Leave `x.ha` out here": within("x.ha.maxRetries 3;", vm),
  "Leave `x.ha.investigators` out for all of them": asIs(
    "root extends Cell { x.ha.investigators []; }",
    "root extends Cell { }",
  ),
  "or `x.ha.timeBetweenFailures 3600` or less": asIs(
    "root extends Cell { x.ha.timeBetweenFailures 7200; x.ha.timeBetweenCleanup 3600; }",
    "root extends Cell { x.ha.timeBetweenFailures 7200; x.ha.timeBetweenCleanup 7200; }",
    "root extends Cell { x.ha.timeBetweenFailures 3600; x.ha.timeBetweenCleanup 3600; }",
  ),
  "Leave the rule out": within(
    `${management} ${card('x.address "10.0.0.9";')} ${rule('x.address1 "<ref:../vm>"; x.address2 "10.1.0.0/16";')}`,
    `${management} ${card('x.address "10.0.0.9";')} ${vm}`,
  ),
  "Give it an `x.address` that no host": within(
    `${vm} ${management} ${card("")}`,
    `${vm} ${management} ${card('x.address "10.0.0.9";')}`,
  ),
  "less in it, or raise `x.limits.vms` of `shop` to 3": within(
    childWith("x.limits.vms 2;", "x.limits.vms 3;"),
    childWith("x.limits.vms 2;", "x.limits.vms 2;"),
    childWith("x.limits.vms 3;", "x.limits.vms 3;"),
  ),
  "Let it ask for 64 or less": within(
    `x.limits.memory 64; ${childWith("", "").replace("64;", "128;")}`,
    `x.limits.memory 64; ${childWith("", "")}`,
    `x.limits.memory 128; ${childWith("", "").replace("64;", "128;")}`,
  ),
  "Leave it out, or raise": within(
    `x.limits.vms 1; ${vm} ${childWith("", "")}`,
    `x.limits.vms 1; ${vm}`,
    `x.limits.vms 2; ${vm} ${childWith("", "")}`,
  ),
};
function childWith(own: string, its: string): string {
  return `${own} child extends CellController { x.cell extends { kid extends Cell { ${its} vm extends VM { x.memory 64; } } } }`;
}

const pool = { pool: "10.64.0.0/24", largest: 128, fixed: ["10.64.0.0/12"] };
const storage = {
  totalMiB: 4096,
  freeMiB: 4096,
  largestFreeMiB: 2048,
  largestMiB: 2048,
  largestCopyMiB: 4096,
  promisableMiB: 4096,
};
const addresses = {
  internal: pool,
  external: pool,
  reserved: ["10.65.0.0/16"],
  shortestPrefix: 16,
  longestPrefix: 29,
};
const hosts = [
  { host: "h1", memoryMiB: 4096, cpus: 2, cpuSpeedMHz: 2400 },
  { host: "h2", memoryMiB: 1024, cpus: 8, cpuSpeedMHz: 2400 },
];
const small = { name: "small", memoryMiB: 1024, cpus: 2 };
const installation: Supply = { hosts, storage, addresses };
/** By what an installation says, the same for all of it. */
const asked = (supply: Supply, wrong: string, ...ways: readonly string[]): Followed => [
  { text: cellOf(wrong), supply },
  ...ways.map((way) => ({ text: cellOf(way), supply })),
];
/** The same text, by what two installations say. */
const grown = (inside: string, before: Partial<Supply>, after: Partial<Supply>): Followed => [
  { text: cellOf(inside), supply: { ...unknownSupply, ...before } },
  { text: cellOf(inside), supply: { ...unknownSupply, ...after } },
];
const all = (more: string): string => `x.policy.deploy "all-or-none"; ${more}`;
const some = (more: string): string => `x.policy.deploy "as-possible"; ${more}`;
const large = (count: number, of: (number: number) => string): string =>
  Array.from({ length: count }, (_, at) => of(at)).join(" ");
const machines = (count: number): string => large(count, (at) => `v${at} extends VM { x.memory 1024; }`);
const volumes = (count: number): string => large(count, (at) => `d${at} extends Volume { x.size 1024; }`);
const subnets = (count: number): string => large(count, (at) => `n${at} extends Subnet { x.size 128; }`);
const fixed = (cidr: string): string => `net extends Subnet { x.cidr "${cidr}"; }`;

/** Ways outside, and packets to many. */
const routed = (range: string): string =>
  `${vm} ${net} ${card('x.forwards ["internet"];')} far extends Subnet { x.size 8; x.router "<ref:../card>"; ${range} }`;
const outer = 'net extends Subnet { x.size 8; x.addressRange "external"; }';
const toNet = (end: string, protocol: string): string =>
  `${vm} ${net} rule extends NetworkRule { x.address1 "<ref:../vm>"; x.address2 "${end}"; x.protocol "${protocol}"; }`;
const fromPorts = (ranges: readonly string[]): string =>
  `${vm} ${ranges.map((ports, at) => `r${at} extends NetworkRule { ${toVm} x.protocol "tcp"; x.port2 80; x.direction "1to2"; ${ports} }`).join(" ")}`;
const nine = Array.from({ length: 9 }, (_, at) => `x.port1 "${1000 + 10 * at}-${1005 + 10 * at}";`);
const ways: Readonly<Record<string, Followed>> = {
  "Join some of their `x.port1`": within(
    fromPorts(nine),
    fromPorts(['x.port1 "1000-1015";', ...nine.slice(2)]),
    fromPorts(["", ...nine.slice(1)]),
  ),
  "Leave out `x.router`, or make the subnet an internal one": within(
    routed('x.addressRange "external";'),
    routed(""),
    `${vm} ${net} ${card("")} far extends Subnet { x.size 8; x.addressRange "external"; }`,
  ),
  "or the networks outside that it leads to": within(
    `${vm} ${net} ${card("")} far extends Subnet { x.size 8; x.router "<ref:../card>"; }`,
    `${vm} ${net} ${card('x.forwards ["internet"];')} far extends Subnet { x.size 8; x.router "<ref:../card>"; }`,
    `${vm} ${net} ${card('x.forwards ["192.168.0.0/16"];')} far extends Subnet { x.size 8; x.router "<ref:../card>"; }`,
  ),
  "Give `x.forwards` to the VM's interface on an internal subnet": within(
    `${vm} ${outer} ${card('x.forwards ["internet"];')}`,
    `${vm} ${outer} ${card("")} inner extends Subnet { x.size 8; } i extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../inner>"; x.forwards ["internet"]; }`,
  ),
  "name the members' subnets, VMs or interfaces": within(
    toNet("239.255.0.1", "udp"),
    toNet("<ref:../net>", "udp"),
    toNet("<ref:../vm>", "udp"),
  ),
  'name the subnet, with "udp" or "any"': within(
    toNet("10.64.0.255", "icmp"),
    toNet("<ref:../net>", "udp"),
    toNet("<ref:../net>", "any"),
  ),
  "Whoever has such an address speaks for himself": asked(
    installation,
    `${vm} ${net} ${card('x.forwards ["10.0.0.0/8"];')}`,
    `${vm} ${net} ${card('x.forwards ["192.168.0.0/16"];')}`,
    `${vm} ${net} ${card('x.forwards ["internet"];')}`,
  ),
};

/** What the installation can give. */
const supplied: Readonly<Record<string, Followed>> = {
  "At most 256 can be had": asked(installation, all(subnets(3)), all(subnets(2)), some(subnets(3))),
  "Choose one between /16 and /29": asked(
    installation,
    fixed("10.64.0.0/30"),
    fixed("10.64.0.0/29"),
    "net extends Subnet { x.size 8; }",
  ),
  "Choose one in 10.64.0.0/12": asked(
    installation,
    fixed("192.168.0.0/24"),
    fixed("10.66.0.0/24"),
    "net extends Subnet { x.size 8; }",
  ),
  "Choose one outside 10.65.0.0/16": asked(
    installation,
    fixed("10.65.1.0/24"),
    fixed("10.66.0.0/24"),
    "net extends Subnet { x.size 8; }",
  ),
  "At most 5120 MiB can be had": asked(installation, all(machines(6)), all(machines(5)), some(machines(6))),
  "The operator has said none of any host: leave it out": asked(
    { ...installation, marks: { places: [], tags: [], properties: [] } },
    vmWith('x.placement.tags ["ssd"];'),
    vmWith(""),
  ),
  "Did you mean `z1/p1`? There are z1/p1": asked(
    { ...installation, marks: { places: ["z1/p1/c1"], tags: ["ssd"], properties: ["sriov"] } },
    vmWith('x.placement.pod "z1/p2";'),
    vmWith('x.placement.pod "z1/p1";'),
    vmWith('x.placement.zone "z1"; x.placement.tags "ssd"; x.placement.properties extends DATA { sriov 4; };'),
  ),
  "The operator offers none: leave it out": asked(
    { ...installation, offerings: [] },
    vmWith('x.placement.offering "small";'),
    vmWith(""),
  ),
  "Did you mean `small`? There are large, small": asked(
    { ...installation, offerings: [{ name: "large", memoryMiB: 4096, cpus: 8 }, small] },
    vmWith('x.placement.offering "smal";'),
    vmWith('x.placement.offering "small";'),
    vmWith('x.placement.offering "large";'),
  ),
  "or less, or name another offering": asked(
    { ...installation, offerings: [{ name: "large", memoryMiB: 4096, cpus: 8 }, small] },
    vmWith('x.cpus 4; x.placement.offering "small";'),
    vmWith('x.cpus 2; x.placement.offering "small";'),
    vmWith('x.cpus 4; x.placement.offering "large";'),
  ),
  "Leave that wish out, or have it name": asked(
    { ...installation, offerings: [{ name: "large", memoryMiB: 4096, cpus: 8 }, small] },
    vmWith('x.placement.offering "small"; x.placement.nice extends DATA { roomy extends DATA { memory 2048; } }'),
    vmWith('x.placement.offering "small";'),
    vmWith('x.placement.offering "small"; x.placement.nice extends DATA { roomy extends DATA { memory 1024; } }'),
    vmWith('x.placement.offering "large"; x.placement.nice extends DATA { roomy extends DATA { memory 2048; } }'),
  ),
  "Name one that is there: h1, h2": asked(
    installation,
    vmWith('x.placement.host "h7";'),
    vmWith('x.placement.host "h1";'),
    vmWith('x.placement.host "h2";'),
  ),
  "At most 2048 MiB can be had (2048": asked(
    installation,
    "disk extends Volume { x.size 3000; }",
    "disk extends Volume { x.size 2048; }",
  ),
  "Ask for less: h1 has 4096 MiB, 2 processors": asked(
    installation,
    "vm extends VM { x.memory 2048; x.cpus 4; }",
    "vm extends VM { x.memory 2048; x.cpus 2; }",
    "vm extends VM { x.memory 1024; x.cpus 4; }",
  ),
  "A host must join first": grown(vm, { hosts: [] }, { hosts }),
  "At most 4096 MiB can be had": asked(installation, all(volumes(5)), all(volumes(4)), some(volumes(5))),
  "A storage server must join first": grown(
    disk,
    { storage: { ...storage, largestMiB: 0, largestCopyMiB: 0, promisableMiB: 0 } },
    { storage },
  ),
  "delete what rests on them": [
    { text: cellOf("x.limits.storage 100; disk extends Volume { x.size 61; }"), supply: kept(40) },
    { text: cellOf("x.limits.storage 100; disk extends Volume { x.size 60; }"), supply: kept(40) },
    { text: cellOf("x.limits.storage 100; disk extends Volume { x.size 61; }"), supply: kept(0) },
    { text: cellOf("x.limits.storage 101; disk extends Volume { x.size 61; }"), supply: kept(40) },
  ],
};
function kept(keptMiB: number): Supply {
  return { ...unknownSupply, keptMiB };
}

export const followedChecks: Readonly<Record<string, Followed>> = { ...values, ...elements, ...ways, ...supplied };
