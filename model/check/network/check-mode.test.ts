import assert from "node:assert/strict";
import { test } from "node:test";
import type { Mode } from "../../cell/network/modes.ts";
import { mostRulesOfGroup, mostRulesOfModeCell } from "../../cell/network/modes.ts";
import { readSpecification } from "../../specification/specification.ts";
import { unknownSupply } from "../check-supply.ts";

const sound = `
  net extends Subnet { x.size 8; }
  back extends Subnet { x.size 8; }
  web extends VM { x.memory 128; }
  db extends VM { x.memory 128; }
  card extends VirtualInterface { x.vm "<ref:../web>"; x.subnet "<ref:../net>"; }
  dbCard extends VirtualInterface { x.vm "<ref:../db>"; x.subnet "<ref:../back>"; }
  in extends NetworkRule { x.address1 "internet"; x.address2 "<ref:../net>"; x.protocol "tcp"; x.port2 80; x.direction "1to2"; }
  to extends NetworkRule { x.address1 "<ref:../net>"; x.address2 "<ref:../back>"; x.protocol "tcp"; x.port2 5432; }
  all extends NetworkRule { x.address1 "<ref:../net>"; x.address2 "10.0.0.0/8"; }
`;
const read = (inside: string, networkMode: Mode | undefined, policy = "") =>
  readSpecification(
    { main: "shop.sf", files: { "shop.sf": `shop extends Cell {${policy}\n${inside}}` } },
    { ...unknownSupply, ...(networkMode === undefined ? {} : { networkMode }) },
  );
/** `line: message` of all that is refused. */
function refused(inside: string, policy = ""): readonly string[] {
  const plain = read(inside, undefined, policy);
  assert.deepEqual(plain.ok ? [] : plain.error, [], "Diverter takes it");
  const result = read(inside, "EDGE", policy);
  return result.ok ? [] : result.error.map(({ code, message, position }) => `${code} ${position?.line}: ${message}`);
}
const line = (text: string): number => sound.split("\n").findIndex((each) => each.includes(text)) + 2;

test("what only Diverter does is refused in a mode at the attribute that asks for it", () => {
  assert.deepEqual(refused(sound), []);
  const rows: readonly (readonly [from: string, to: string, at: string, says: RegExp])[] = [
    [
      "x.memory 128; }",
      'x.memory 128;\n x.liveness.protocol "icmp"; }',
      "web extends",
      /asks a VM .* whether it lives/,
    ],
    ["net extends Subnet { x.size 8;", 'net extends Subnet { x.cidr "10.64.0.0/29";', "net extends", /network config/],
    ['"<ref:../net>"; }', '"<ref:../net>"; x.mac "02:00:00:00:00:07"; }', "card extends", /MAC address/],
    ['"<ref:../net>"; }', '"<ref:../net>"; x.groups ["239.1.1.1"]; }', "card extends", /packet to many/],
    ['x.vm "<ref:../db>"', 'x.vm "<ref:../web>"', "dbCard extends", /`shop\/web` has the interface `shop\/card`/],
    ['x.address2 "<ref:../back>"', 'x.address2 "<ref:../db>"', "to extends", /`shop\/db` can be no end .* one VM/],
    ['x.address1 "<ref:../net>"; x', 'x.address1 "<ref:../card>"; x', "to extends", /`shop\/card` can be no end/],
    ['x.address2 "10.0.0.0/8"', 'x.address2 "controller"', "all extends", /It can be no end .* controller/],
    ['x.address2 "10.0.0.0/8"', 'x.address2 "<ref://bank.cells.example/a>"', "all ext", /`a` can be .* another cell/],
    ["x.port2 5432;", 'x.port2 5432; x.port1 1000; x.direction "1to2";', "to extends", /from which port/],
  ];
  for (const [from, to, at, says] of rows) {
    assert.ok(sound.includes(from), from);
    const [first = "", ...more] = refused(sound.replace(from, to));
    const place = line(at) + (to.slice(0, to.lastIndexOf(" ")).split("\n").length - 1);
    assert.match(first, says);
    assert.match(first, /the networks of `shop` are made by the mode EDGE$/);
    assert.ok(first.startsWith(`cell/network-mode ${place}: `), `${first} at ${place}`);
    assert.deepEqual(more, []);
  }
  assert.match(refused(sound, ' x.policy.deploy "all-or-none";').join(), /^cell\/network-mode 1: An address is had/);
  assert.match(refused(sound, ' x.policy.broadcast "on";').join(), /^cell\/network-mode 1: A packet to many/);
  assert.match(
    refused(sound, " x.policy.forward true;").join(),
    /^cell\/network-mode 1: `cells forward` reaches no VM/,
  );
  const speaks = sound.replace('"<ref:../net>"; }', '"<ref:../net>"; x.forwards ["internet"]; }');
  const router = speaks.replace("back extends Subnet {", 'back extends Subnet { x.router "<ref:../card>";');
  assert.deepEqual(
    refused(router).map((each) => each.slice(0, each.indexOf(","))),
    [
      `cell/network-mode ${line("back extends")}: No VM takes what leaves a security group`,
      `cell/network-mode ${line("card extends")}: No VM speaks for others`,
    ],
  );
});

test("an external subnet has as many members as it has elastic addresses, by its size", () => {
  const external = (size: number, members: number): string =>
    `  net extends Subnet { x.size ${size}; x.addressRange "external"; }\n${Array.from(
      { length: members },
      (_, at) =>
        `  vm${at} extends VM { x.memory 128; }\n  card${at} extends VirtualInterface { x.vm "<ref:../vm${at}>"; x.subnet "<ref:../net>"; }\n`,
    ).join("")}`;
  assert.deepEqual(refused(external(8, 8)), []);
  const [first = "", ...more] = refused(external(8, 10));
  assert.match(first, /^cell\/network-mode 20: `shop\/net` has more than 8 members, each with an elastic address/);
  assert.deepEqual(more, []);
});

test("a group has so many rules and no more, counted by what they open", () => {
  const rules = (count: number): string =>
    Array.from(
      { length: count },
      (_, at) =>
        `  r${at} extends NetworkRule { x.address1 "10.${at % 250}.0.0/16"; x.address2 "<ref:../net>"; x.protocol "tcp"; x.port2 ${at + 1}; }\n`,
    ).join("");
  const net = "  net extends Subnet { x.size 8; }\n";
  assert.deepEqual(refused(net + rules(mostRulesOfGroup)), []);
  const [first = "", ...more] = refused(net + rules(mostRulesOfGroup + 3));
  assert.match(first, /`shop\/net` has more than 500 rules/);
  assert.deepEqual(more, []);
});

test("a cell has so many rules in all its groups and no more", () => {
  const groups = mostRulesOfModeCell / mostRulesOfGroup + 1;
  const text = (last: number): string =>
    Array.from(
      { length: groups },
      (_, group) =>
        `  net${group} extends Subnet { x.size 8; }\n${Array.from(
          { length: group === groups - 1 ? last : mostRulesOfGroup },
          (_, at) =>
            `  r${group}-${at} extends NetworkRule { x.address1 "10.${at % 250}.0.0/16"; x.address2 "<ref:../net${group}>"; x.protocol "tcp"; x.port2 ${at + 1}; }\n`,
        ).join("")}`,
    ).join("");
  assert.deepEqual(refused(text(0)), []);
  const [first = "", ...more] = refused(text(3));
  assert.match(first, /The subnets of the cell have more than 4000 rules together/);
  assert.deepEqual(more, []);
});

test("the model with which a child is made is asked at its parent already", () => {
  const of = (mode: string): string =>
    ` kid extends CellController {\n x.networkMode "${mode}";\n x.cell extends Cell {\n net extends Subnet { x.cidr "10.64.0.0/29"; }\n }\n }\n`;
  const edge = read(of("EDGE"), undefined);
  assert.deepEqual(edge.ok ? [] : edge.error.map(({ code, path }) => `${code} ${path}`), [
    "cell/network-mode shop/kid",
  ]);
  assert.ok(read(of("DIVERTER"), undefined).ok);
  const system = read(of("SYSTEM"), undefined);
  assert.match(
    JSON.stringify(system.ok ? [] : system.error),
    /`x.policy.isolation` of `child`|Nothing is kept from anybody/,
  );
  const midonet = read(of("VPCMIDO"), undefined);
  assert.deepEqual(midonet.ok ? [] : midonet.error.map(({ code }) => code), ["schema/value"]);
});

test("a mode that isolates nothing is refused to a cell that does not say so, and so is whatever needs rules or an address outside", () => {
  const bare = `
  net extends Subnet { x.size 8; }
  web extends VM { x.memory 128; }
  card extends VirtualInterface { x.vm "<ref:../web>"; x.subnet "<ref:../net>"; }
`;
  const said = ' x.policy.isolation "none";';
  const attributesOf = (inside: string, mode: Mode, policy: string): readonly string[] => {
    const result = read(inside, mode, policy);
    return result.ok ? [] : result.error.map(({ code, message }) => `${code}: ${message}`);
  };
  for (const mode of ["STATIC", "SYSTEM"] as const) {
    assert.deepEqual(attributesOf(bare, mode, said), []);
    for (const [inside, policy, why] of [
      [bare, "", /Nothing is kept from anybody/],
      [bare, ' x.policy.isolation "by-rules";', /Nothing is kept from anybody/],
      [bare, `${said} x.policy.internet "none";`, /Nothing is let in or kept out/],
      [bare, `${said} x.policy.subnetConnectivity false;`, /Nothing is let in or kept out/],
      [bare.replace("x.size 8;", 'x.size 8; x.addressRange "external";'), said, /Nobody has an elastic address/],
      [
        `${bare} in extends NetworkRule { x.address1 "internet"; x.address2 "<ref:../net>"; x.protocol "tcp"; x.port2 80; }`,
        said,
        /No rule is in force/,
      ],
    ] as const) {
      const [first = "", ...more] = attributesOf(inside, mode, policy);
      assert.match(first, why);
      assert.match(first, new RegExp(`^cell/network-mode: .* are made by the mode ${mode}$`));
      assert.deepEqual(more, []);
    }
  }
  // Elsewhere the word takes nothing away.
  for (const mode of ["EDGE", undefined] as const) {
    const result = read(sound, mode, said);
    assert.deepEqual(result.ok ? [] : result.error, []);
  }
});
