import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { NetworkView } from "./network-view.ts";
import { readView } from "./read-view.ts";
import { writeView } from "./write-view.ts";

const view: NetworkView = {
  version: "7",
  mode: "EDGE",
  publicIps: [{ first: 0x0a6f653a, last: 0x0a6f653e }],
  publicGateway: 0x0a6f6501,
  enabledClcIp: 0x0a6f051b,
  instanceDnsDomain: "eucalyptus.internal",
  instanceDnsServers: [0x0a6f051b, 0x08080808],
  subnets: [{ name: "192.168.0.0", subnet: 0xc0a80000, netmask: 0xffff0000, gateway: 0xc0a80001 }],
  clusters: [
    {
      name: "PARTI00",
      subnet: { name: "1.119.128.0", subnet: 0x01778000, netmask: 0xffffff00, gateway: 0x01778001 },
      enabledCcIp: 0x0a6f0524,
      macPrefix: "d0:0d",
      privateIps: [{ first: 0x01778003, last: 0x01778040 }],
      nodes: [
        { name: "10.111.5.43", instances: ["i-a7f05959"] },
        { name: "10.111.5.44", instances: [] },
      ],
    },
  ],
  instances: [
    {
      id: "i-a7f05959",
      owner: "061149015336",
      mac: "D0:0D:A7:F0:59:59",
      publicIp: 0x0a6f653c,
      privateIp: 0x01778023,
      securityGroups: ["sg-e33c6cf3"],
    },
  ],
  securityGroups: [
    {
      id: "sg-e33c6cf3",
      owner: "061149015336",
      egress: [],
      ingress: [
        { protocol: 6, fromPort: 22, toPort: 22, icmpType: 0, icmpCode: 0, cidr: "0.0.0.0/0" },
        { protocol: 1, fromPort: 0, toPort: 0, icmpType: -1, icmpCode: -1, cidr: "10.0.0.0/8" },
        {
          protocol: 47,
          fromPort: 0,
          toPort: 0,
          icmpType: 0,
          icmpCode: 0,
          group: "sg-e33c6cf3",
          groupOwner: "061149015336",
        },
      ],
    },
  ],
};
const good = writeView(view);

test("a view that is written is read as the same view", () => {
  const read = readView(good);
  assert.ok(read.ok);
  assert.deepEqual(read.value, { view, warnings: [] });
});

const refused = (text: string): string => {
  const read = readView(text);
  return read.ok ? "" : read.error.map(({ message }) => message).join("\n");
};
const replaced = (from: string | RegExp, to: string): string => {
  const text = good.replace(from, to);
  assert.notEqual(text, good, String(from));
  return text;
};
const value = (name: string): RegExp => new RegExp(`<property name="${name}">[\\s\\S]*?</property>`);

const wrong: readonly (readonly [string, RegExp])[] = [
  [replaced(value("mode"), ""), /the mode is missing/],
  [replaced("<value>EDGE</value>", "<value>FOO</value>"), /the mode "FOO" does not exist/],
  [replaced("<value>EDGE</value>", "<value>VPCMIDO</value>"), /VPCMIDO.* does not exist here/],
  [replaced(value("enabledCLCIp"), ""), /enabledCLCIp is missing/],
  [replaced(/(enabledCLCIp">\s*<value>)[^<]*/, "$10.0.0.0"), /enabledCLCIp is missing/],
  [replaced(value("instanceDNSDomain"), ""), /instanceDNSDomain is missing/],
  [replaced("eucalyptus.internal", 'a";}}\nhost x{'), /no domain name/],
  [replaced(value("instanceDNSServers"), ""), /instanceDNSServers is missing/],
  [replaced("8.8.8.8", "0.0.0.0"), /an address in a list is 0\.0\.0\.0/],
  [replaced("8.8.8.8", "8.8.8"), /"8\.8\.8" is no address/],
  [replaced("10.111.101.58-10.111.101.62", "0.0.0.0-0.0.0.4"), /0\.0\.0\.0/],
  [replaced("10.111.101.58-10.111.101.62", "$(reboot)"), /neither an address nor a range/],
  [replaced("10.111.101.58-10.111.101.62", "10.0.0.0-10.255.255.255"), /more than 65536 addresses/],
  [replaced("<value>192.168.0.1</value>", "<value>0.0.0.0</value>"), /lacks its address, netmask or gateway/],
  [replaced("255.255.255.0", "255.0.255.0"), /is no netmask/],
  [replaced(/<subnet name="1\.119\.128\.0">[\s\S]*?<\/subnet>/, ""), /has no subnet/],
  [replaced(value("privateIps"), ""), /has no private addresses/],
  [replaced(value("enabledCCIp"), ""), /lacks enabledCCIp/],
  [replaced(value("macPrefix"), ""), /no MAC prefix/],
  [replaced('cluster name="PARTI00"', 'cluster name="PARTI00; reboot"'), /no name of a cluster/],
  [replaced('node name="10.111.5.43"', 'node name="-j ACCEPT"'), /no name of a node/],
  [replaced('node name="10.111.5.44"', 'node name="10.111.5.43"'), /the node "10\.111\.5\.43" is there twice/],
  [replaced('instance name="i-a7f05959"', 'instance name="i-a7f05959 -j ACCEPT"'), /no identifier of an instance/],
  [replaced('instance name="i-a7f05959"', 'instance name="i-0123456789abcdef0"'), /too long for an instance/],
  [replaced('instance name="i-a7f05959"', "instance"), /no identifier of an instance/],
  [replaced("d0:0d:a7:f0:59:59", "d0:0d:a7:f0:59:5g"), /no MAC address/],
  [replaced("1.119.128.35", "1.119.128.35 -j ACCEPT"), /is no address/],
  [replaced('securityGroup name="sg-e33c6cf3"', 'securityGroup name="`id`"'), /no identifier of a security group/],
  [replaced(/sg-e33c6cf3/g, `sg-${"e".repeat(30)}`), /too long for a security group/],
  [replaced("<value>sg-e33c6cf3</value>", ""), /no instance is in the security group sg-e33c6cf3/],
  [replaced(/(securityGroup name="sg-e33c6cf3">\s*)<ownerId>[^<]*<\/ownerId>/, "$1"), /has no owner/],
  [replaced("10.0.0.0/8", "10.0.0.0/33"), /is no network/],
  [replaced("<protocol>47", "<protocol>256"), /protocol "256" .* not from -1 to 255/],
  [replaced("<fromPort>22", "<fromPort>65536"), /fromPort/],
  [
    replaced("<network-data", "<network-info").replace("</network-data", "</network-info"),
    /root element is network-info/,
  ],
  [good.slice(0, -20), /written wrongly|never closed|breaks off/],
];
for (const [index, [text, words]] of wrong.entries())
  test(`a view is refused ${index + 1}: ${words.source}`, () => assert.match(refused(text), words));

test("an instance, a group and an instance of a node that are there twice are refused", () => {
  const twice = (element: RegExp): string => replaced(element, "$&$&");
  assert.match(refused(twice(/<instance name[\s\S]*?<\/instance>/)), /the instance "i-a7f05959" is there twice/);
  assert.match(refused(twice(/<securityGroup name[\s\S]*?<\/securityGroup>/)), /group "sg-e33c6cf3" is there twice/);
  assert.match(refused(twice(/<value>i-a7f05959<\/value>/)), /on nodes, the instance/);
});

test("several faults are told together, each with its line", () => {
  const text = good.replace(value("mode"), "").replace("8.8.8.8", "0.0.0.0").replace("10.0.0.0/8", "x");
  const read = readView(text);
  assert.ok(!read.ok);
  assert.equal(read.error.length, 3);
  assert.ok(read.error.every(({ line }) => line > 1));
});

test("a field that one instance lacks is a warning", () => {
  for (const [from, words] of [
    [/<ownerId>061149015336<\/ownerId>/, /has no owner/],
    [/<macAddress>[^<]*<\/macAddress>/, /has no MAC address/],
    [/<privateIp>[^<]*<\/privateIp>/, /has no private address/],
    [/d0:0d:a7:f0:59:59/, /has no MAC address/],
  ] as const) {
    const read = readView(replaced(from, from.source.startsWith("d0") ? "00:00:00:00:00:00" : ""));
    assert.ok(read.ok, JSON.stringify(read));
    assert.match(read.value.warnings.join("\n"), words);
  }
  const reversed = readView(replaced("10.111.101.58-10.111.101.62", "10.0.0.9-10.0.0.1"));
  assert.ok(reversed.ok);
  assert.deepEqual(reversed.value.view.publicIps, []);
  assert.match(reversed.value.warnings.join("\n"), /ends before it begins; it is left out/);
});

test("more members than a set holds are refused", () => {
  const instance = (number: number): string =>
    `<instance name="i-${number}"><securityGroups><value>sg-e33c6cf3</value></securityGroups></instance>`;
  const many = (count: number): string =>
    replaced("<instances>", `<instances>${Array.from({ length: count }, (_, number) => instance(number)).join("")}`);
  // With their own addresses and the two of every set these are 65,536, and 65,538.
  const most = readView(many(32_766));
  assert.ok(most.ok, JSON.stringify(most).slice(0, 200));
  assert.match(refused(many(32_767)), /has 32768 members, more than a set of 65536 holds/);
  assert.match(refused(many(40_000)), /has 40001 members, more than a set of 65536 holds/);
  assert.match(refused(many(70_000)), /more than 200000 elements|characters/);
});

test("no value of a view has a sign that a command line could take for something else", () => {
  const signs = fc.constantFrom(..." ;|&$`'\"\\<>()\n\t*?[]{}!#~".split(""));
  const evil = fc
    .tuple(fc.string({ maxLength: 3 }), signs)
    .map(([text, sign]) => `x${text.replace(/[^a-z0-9]/g, "")}${sign}`);
  const inXml = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  fc.assert(
    fc.property(evil, fc.nat(5), (text, at) => {
      const id = [`PARTI00`, "10.111.5.43", "i-a7f05959", "sg-e33c6cf3", "d0:0d:a7:f0:59:59", "1.119.128.35"][at] ?? "";
      const read = readView(good.replaceAll(id, inXml(`${text}y`)));
      assert.ok(!read.ok, text);
    }),
  );
});
