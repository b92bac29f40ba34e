import assert from "node:assert/strict";
import { test } from "node:test";
import type { WhyEnds } from "../../../core/controller/requests/connection-ends.ts";
import { hostPolicyRules } from "../../../core/controller/rules/cell-policy.ts";
import { World } from "../../../core/controller/world.testing.ts";
import { cidr, uid } from "../../../model/cell/identifiers.ts";
import { connectionAnswer, type Examined, type Question } from "./why.ts";

/** Two tiers in subnets of their own, a group with two machines, and an element of another cell that shows one address. */
const text = (more = ""): string => `
Tier extends {
  hostName TBD;
  vm extends VM { x.memory 64; }
  net extends Subnet { x.size 16; x.addressRange "internal"; }
  card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.vifName hostName; }
}
shop extends Cell {
  web extends Tier { hostName "web1"; }
  app extends Tier { hostName "app1"; }
  pair extends { one extends VM { x.memory 64; } two extends VM { x.memory 64; x.desiredState "off"; } }
  disk extends Volume { x.size 64; }
  toBank extends NetworkRule { x.address1 "<ref:../web/card>"; x.address2 "<ref://bank.cells.internal/db>"; x.protocol "tcp"; x.port2 1; x.direction "1to2"; }
${more}
}`;
const put = (world: World, more?: string): void => {
  const { status, body } = world.ask({
    method: "PUT",
    path: "",
    bundle: { main: "shop.sf", files: { "shop.sf": text(more) } },
  });
  assert.equal(status, 200, JSON.stringify(body));
  world.settle();
};
const cloud = (): World => {
  const world = new World({ directory: true });
  const shows = { kind: "addresses", type: "VirtualInterface", networks: [cidr("10.77.0.2/32")] } as const;
  world.shown.set("bank.cells.internal/db", { uid: uid("b-1"), shows });
  put(world);
  return world;
};
const ask = (
  world: World,
  from: string,
  to: string,
): { readonly status: number; readonly ends: WhyEnds; readonly message: string } => {
  const { status, body } = world.ask({ method: "WHY-ENDS", from, to });
  const { message = "" } = (body as { readonly error?: { readonly message: string } }).error ?? {};
  return { status, ends: body as unknown as WhyEnds, message };
};
const blocked: readonly Examined[] = [
  { where: "host h1 (sender)", checks: [{ check: "rule", passes: false, detail: "no rule lets it" }] },
];

test("ends are named as people do: paths from the document or the cell, addresses, names of guests, a group of one", () => {
  const world = cloud();
  const { ends: first } = ask(world, "shop/web/vm", "shop/app/vm");
  for (const name of [
    "web/vm",
    "shop/web/card",
    "web1",
    "web1.shop.cells.internal",
    "shop/web",
    "web",
    first.from.address,
  ])
    assert.equal(ask(world, name, "app1").ends.from.address, first.from.address, name);
  assert.equal(ask(world, "web1", "app1").ends.to.vm, "shop/app/vm");
  assert.equal(ask(world, "web1", "//bank.cells.internal/db").ends.to.address, "10.77.0.2");
});

test("what is no end says why, and what would be one; each name that it says is one", () => {
  const world = cloud();
  for (const [name, status, told] of [
    ["shop/pair", 409, /has 2 VMs: name one of them, such as shop\/pair\/one, shop\/pair\/two$/],
    ["shop", 409, /shop has 4 VMs: name one of them, such as shop\/app\/vm/],
    ["shop/disk", 409, /is a Volume, and connections have VMs as their ends: its VMs are shop\/app\/vm/],
    ["shop/pair/two", 409, /no address yet: `cells why shop\/pair\/two` says more/],
    ["wbe1", 404, /wbe1 is no VM.*Did you mean web1\?/],
    ["shop/zebra", 404, /no VM, interface, address or guest of the cell shop: its VMs are shop\/app\/vm/],
  ] as const) {
    const answer = ask(world, "web1", name);
    assert.equal(answer.status, status, name);
    assert.match(answer.message, told);
    for (const [, meant = ""] of answer.message.matchAll(/(?:mean|VMs are|such as) ([\w/]+\w)/g))
      assert.doesNotMatch(ask(world, "web1", meant).message, /is no VM/, `${name}: ${meant}`);
    for (const [, path = ""] of answer.message.matchAll(/`cells why ([\w/]+)` says more/g)) {
      const { status: asked, body } = world.ask({ method: "WHY-ELEMENT", path });
      assert.deepEqual([asked, /To lift that: `cells start /.test(JSON.stringify(body))], [200, true], path);
    }
  }
});

test("the rule that would open a connection is one, and opens it, for each kind of end and protocol", () => {
  const kinds = ["shop/web/vm", "shop/app/card", "app1", "controller", "//bank.cells.internal/db"];
  const world = cloud();
  let count = 0;
  for (const from of kinds)
    for (const to of kinds)
      for (const question of [
        { protocol: "tcp", port: 80 },
        { protocol: "udp", port: 53 },
        { protocol: "icmp", port: null },
      ] as const satisfies readonly Question[]) {
        const { ends } = ask(world, from, to);
        if (ends.from.vm === null && ends.to.vm === null) continue;
        if (ends.from.address === ends.to.address) continue;
        const { verdict } = connectionAnswer({ ...ends, waiting: [] }, question, blocked);
        const rule = /To open it, add: (allow extends NetworkRule \{.*\})$/.exec(verdict)?.[1];
        assert.ok(rule !== undefined, verdict);
        put(world, rule);
        const { port } = question;
        const opened = hostPolicyRules(world.state).filter(
          ({ path, protocol, ports }) =>
            path === "shop/allow" &&
            protocol === question.protocol &&
            (port === null || (ports.from <= port && port <= ports.to)),
        );
        assert.ok(opened.length > 0, `${rule} opens nothing`);
        count += 1;
      }
  assert.ok(count > 30, String(count));
});

test("no rule is offered towards an address that nobody could reach", () => {
  const world = cloud();
  const { ends } = ask(world, "web1", "app1");
  const unused = ends.to.address.replace(/\d+$/, "13");
  for (const [to, told] of [
    [
      "203.0.113.7",
      /203\.0\.113\.7 is nobody's in the cell shop: .*\/\/other\.cells\.internal\/vm; .*if it is outside, shop\/web\/card has the internal address .*, of shop\/web\/net: only an interface of a subnet with `x.addressRange "external"`/,
    ],
    [unused, new RegExp(`no interface has ${unused}, which is of shop/app/net$`)],
  ] as const) {
    const asked = ask(world, "web1", to);
    const { verdict, allowed } = connectionAnswer(asked.ends, { protocol: "tcp", port: 443 }, blocked);
    assert.equal(allowed, false);
    assert.match(verdict, told);
    assert.doesNotMatch(verdict, /To open it/);
  }
  // What the maps let pass is told as it is.
  const passing = [{ where: "host h1 (sender)", checks: [{ check: "rule", passes: true, detail: "rule 7" }] }];
  assert.equal(connectionAnswer(ask(world, "web1", unused).ends, { protocol: "tcp", port: 1 }, passing).allowed, true);
});

test("outwards a rule is offered where the subnet has a router, or is external, and it is one that opens it", () => {
  const inside = 'spare extends VM { x.memory 64; } net extends Subnet { x.size 8; x.addressRange "internal"; ';
  const card = (name: string, vm: string, more = ""): string =>
    `${name} extends VirtualInterface { x.vm "<ref:../${vm}>"; x.subnet "<ref:../net>"; ${more} }`;
  const router = `${card("inner", "gate", 'x.forwards ["internet"];')} gate extends VM { x.memory 64; }`;
  for (const more of [
    `${inside} } ${card("out", "spare")} ${router}`,
    `${inside} x.router "<ref:../inner>"; } ${card("out", "spare")} ${router}`,
  ]) {
    const world = cloud();
    put(world, more);
    for (const to of ["203.0.113.7", "internet"]) {
      const { verdict } = connectionAnswer(
        { ...ask(world, "shop/out", to).ends, waiting: [] },
        { protocol: "tcp", port: 443 },
        blocked,
      );
      const rule = /To open it, add: (allow extends NetworkRule \{.*\})$/.exec(verdict)?.[1];
      if (!more.includes("x.router")) {
        assert.equal(rule, undefined);
        assert.match(verdict, /or with an `x\.router` speaks with addresses outside/);
        continue;
      }
      assert.ok(rule !== undefined, verdict);
      put(world, `${more} ${rule}`);
      assert.ok(hostPolicyRules(world.state).some(({ path, ports }) => path === "shop/allow" && ports.from === 443));
      put(world, more);
    }
  }
});

test("of a cell on a mode, groups are named, and the rule that is offered is one between groups that opens it", () => {
  const world = new World({ networkMode: "EDGE" });
  const text = (more: string): string => `
shop extends Cell {
  front extends { vm extends VM { x.memory 64; } net extends Subnet { x.size 16; } card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; } }
  back extends { vm extends VM { x.memory 64; } net extends Subnet { x.size 16; } card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; } }
  ${more}
}`;
  const apply = (more: string): void => {
    const bundle = { main: "shop.sf", files: { "shop.sf": text(more) } };
    const { status, body } = world.ask({ method: "PUT", path: "", bundle });
    assert.equal(status, 200, JSON.stringify(body));
    world.settle();
  };
  apply("");
  const question: Question = { protocol: "tcp", port: 80 };
  const [from, to] = ["shop/front/vm", "shop/back/vm"] as const;
  const answer = (end: string, examined = blocked) => connectionAnswer(ask(world, from, end).ends, question, examined);
  const id = Object.entries(ask(world, from, to).ends.groups?.names ?? {}).find(([, path]) => path === "shop/back/net");
  assert.ok(id !== undefined, "a group has an id, by which chains know it");
  const detail = `"-j DROP" of ${id[0]}`;
  const dropped = [{ where: "host h1 (sender)", checks: [{ check: "rule", passes: false, detail }] }];
  assert.match(answer(to, dropped).checks[0]?.detail ?? "", /of sg-[0-9a-f]{8} \(shop\/back\/net\)$/);
  const offered = /To open it, add: (allow extends NetworkRule \{.*\})$/.exec(answer(to).verdict)?.[1];
  assert.ok(offered !== undefined, answer(to).verdict);
  const passes = [{ where: "host h1 (sender)", checks: [{ check: "rule", passes: true, detail: "-j ACCEPT" }] }];
  assert.match(answer(to, passes).verdict, /passes: the chains in force there let it pass, though no rule of the cell/);
  apply(offered);
  const { ends } = ask(world, from, to);
  assert.deepEqual(
    ends.groups?.openings.map(({ rule }) => rule),
    ["shop/allow"],
  );
  assert.match(answer(to, passes).verdict, /passes: opened by shop\/allow$/);
  assert.match(answer(to).verdict, /shop\/allow would let it pass and is not in force there: `cells why shop\/allow`/);
  const other: Question = { protocol: "udp", port: 80 };
  assert.match(connectionAnswer(ends, other, blocked).verdict, /To open it, add: /, "no rule is about that");
  for (const end of ["internet", "203.0.113.7"]) {
    const way = /To open it, add: (allow extends NetworkRule \{.*\})$/.exec(answer(end).verdict)?.[1];
    assert.ok(way !== undefined, answer(end).verdict);
    apply(way.replace("allow", "out"));
    assert.deepEqual(
      ask(world, from, end).ends.groups?.openings.map(({ rule }) => rule),
      ["shop/out"],
      end,
    );
    apply("");
  }
  assert.match(answer("controller").verdict, /no rule of a group leads to the controller/);
});
