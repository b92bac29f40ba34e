import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import type { JsonObject } from "../../../model/json/json.ts";
import { plan } from "./change.ts";
import { type Answer, type Gateway, scene } from "./scene.testing.ts";

const text = (dedications: string, tenants = ""): string => `
root extends Cell {
  management extends Subnet { x.cidr "10.0.0.0/16"; }
  image extends Volume { x.size 64; }
  ${tenants}
  places extends { z1 extends Zone { } }
  dedications extends { ${dedications} }
}
`;
const lab = 'lab extends Dedication { x.of "z1"; x.to "ROOT/acme"; x.account "dve"; }';
const changed = { plan: { cell: { path: "root", action: "none", causes: [] }, steps: [] }, version: 1, dryRun: true };

const world = (model: JsonObject = {}, tenancy: Answer | null = null) => {
  const sent: string[] = [];
  const gateway: Gateway = ({ method, url }) => {
    if (url.includes("/domains")) return tenancy ?? { status: 200, body: [{ path: "ROOT" }, { path: "ROOT/acme" }] };
    if (url.includes("/accounts")) return tenancy ?? { status: 200, body: [{ path: "ROOT/acme/dev" }] };
    if (method === "GET") return { status: 200, body: { root: { "x.type": "Cell", ...model } } };
    sent.push(`${method} ${url}`);
    return { status: 200, body: changed };
  };
  return Object.assign(gateway, { sent });
};

test("hosts are given by a text to nobody whom nobody knows, and where that stands is said", async (t) => {
  const planned = async (gateway: ReturnType<typeof world>, of: string): Promise<string> => {
    const { context, file } = await scene(t, gateway);
    const own = file.replace(/json$/, "sf");
    writeFileSync(own, of);
    return plan(context, own, { all: false }).then(
      () => "sent",
      (error: Error) => error.message,
    );
  };
  let refusing = world();
  const why = await planned(refusing, text(lab));
  assert.match(why, /shop\.sf:7:\d+/, "with its line");
  assert.match(why, /root\/dedications\/lab` gives z1 to the account ROOT\/acme\/dve, which is not there/);
  assert.match(why, /Did you mean ROOT\/acme\/dev\?/);
  assert.deepEqual(refusing.sent, [], "and nothing is sent");
  refusing = world();
  assert.match(
    await planned(refusing, text(lab.replace('x.account "dve";', "").replace("acme", "umbrella"))),
    /cells domain list/,
  );

  refusing = world({}, { status: 503, body: { error: { code: "tenancy-unreachable", message: "it is away" } } });
  assert.match(await planned(refusing, text(lab)), /whether that is there nobody can say now: .*it is away/);

  assert.equal(await planned(world(), text(lab.replace("dve", "dev"))), "sent");
  const declared = "tenants extends { acme extends Domain { dve extends Account { } } }";
  assert.equal(await planned(world(), text(lab, declared)), "sent", "the same text declares it");
  const before = {
    dedications: { lab: { "x.type": "Dedication", "x.of": "z1", "x.to": "ROOT/acme", "x.account": "dve" } },
  };
  assert.equal(await planned(world(before), text(lab)), "sent", "it is so already");
  assert.equal(
    await planned(world(before, { status: 503, body: {} }), text(lab)),
    "sent",
    "and nobody is asked for it",
  );
  assert.equal(
    await planned(world(), text('o extends Dedication { x.of "z1"; x.to "ROOT"; x.account "operator"; }')),
    "sent",
  );
});
