import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Input } from "../env.ts";
import { createDnsManager, type NameAnswer } from "./manager.ts";

const shop = "controller.shop";

function world() {
  const service = createDnsManager({ self: peerName("dns-manager") });
  const records = new Map<string, Json>();
  const wanted = new Map<string, [from: string, key: string, value: Json]>();
  const published = new Map<string, { phase: string; reason: string | null }>();
  let state = service.restore({ records, desiredAt: new Map() });
  const input = (what: Input) => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
      else if (effect.kind === "publish" && effect.value === null) published.delete(effect.key);
      else if (effect.kind === "publish") published.set(effect.key, effect.value as never);
    }
    return step.effects;
  };
  const deliver = ([from, key, value]: [string, string, Json]) =>
    input({ kind: "desired", from: peerName(from), key, value });
  const restart = (order: (all: [string, string, Json][]) => [string, string, Json][] = (all) => all) => {
    published.clear();
    state = service.restore({ records: new Map(records), desiredAt: new Map() });
    for (const one of order([...wanted.values()])) deliver(one);
    input({ kind: "start" });
  };
  const want = (from: string, uid: string, name: string | null, address = "10.64.0.2", more: object = {}) => {
    const value = name === null ? null : { uid, name, address, ...more };
    if (value === null) wanted.delete(from + uid);
    else wanted.set(from + uid, [from, `name/${uid}`, value]);
    deliver([from, `name/${uid}`, value]);
  };
  const ask = (name: string, type: string, cell: string | null = "shop"): NameAnswer => {
    const [reply] = input({ kind: "request", id: 1, request: { name, type, cell } });
    assert.equal(reply?.kind, "reply");
    return reply.response as unknown as NameAnswer;
  };
  restart();
  return { want, ask, restart, published, records, input };
}

test("forward and reverse, without case, as long as the name is wanted", () => {
  const { want, ask, restart, published, records } = world();
  want(shop, "s-1", "web1.shop.cells.internal");
  const says = (address: string) => ({
    phase: "ready",
    reason: null,
    serves: { name: "web1.shop.cells.internal", address },
  });
  assert.deepEqual(published.get(`${shop}/name/s-1`), says("10.64.0.2"));
  restart();
  assert.deepEqual(ask("Web1.SHOP.cells.internal", "A"), {
    rcode: "NOERROR",
    answers: [{ name: "Web1.SHOP.cells.internal", type: "A", ttl: 5, data: "10.64.0.2" }],
  });
  assert.deepEqual(
    ask("2.0.64.10.in-addr.arpa", "PTR").answers.map(({ data }) => data),
    ["web1.shop.cells.internal"],
  );
  assert.deepEqual(ask("web1.shop.cells.internal", "AAAA"), { rcode: "NOERROR", answers: [] });
  assert.deepEqual(ask("shop.cells.internal", "A"), { rcode: "NOERROR", answers: [] });
  assert.equal(ask("web2.shop.cells.internal", "A").rcode, "NXDOMAIN");
  assert.equal(ask("example.org", "A").rcode, "REFUSED");
  want(shop, "s-1", "web1.shop.cells.internal", "10.64.0.3");
  assert.equal(ask("web1.shop.cells.internal", "A").answers[0]?.data, "10.64.0.3");
  assert.deepEqual(published.get(`${shop}/name/s-1`), says("10.64.0.3"));
  assert.equal(ask("2.0.64.10.in-addr.arpa", "PTR").rcode, "NXDOMAIN");
  want(shop, "s-1", null);
  assert.equal(ask("web1.shop.cells.internal", "A").rcode, "NXDOMAIN");
  assert.equal(ask("shop.cells.internal", "A").rcode, "NXDOMAIN");
  assert.deepEqual([published.size, records.size], [0, 0]);
});

test("a cell has names below its own label and nowhere else", () => {
  const { want, published, ask } = world();
  for (const [name, reason] of [
    ["web1.other.cells.internal", /not below shop.cells.internal/],
    ["shop.cells.internal", /not below/],
    ["web.evilshop.cells.internal", /not below/],
    ["-a.shop.cells.internal", /no host name/],
  ] as const) {
    want(shop, "s-1", name);
    assert.match(published.get(`${shop}/name/s-1`)?.reason ?? "", reason);
    assert.notEqual(ask(name, "A").answers.length, 1);
  }
  want(shop, "s-1", "a.shop.cells.internal", "10.64.0");
  assert.match(published.get(`${shop}/name/s-1`)?.reason ?? "", /malformed/);
});

test("who had a name first keeps it over a restart; the second gets it afterwards", () => {
  const { want, restart, published, ask } = world();
  want(shop, "s-1", "web1.shop.cells.internal", "10.64.0.2");
  want(shop, "s-2", "web1.shop.cells.internal", "10.64.0.3");
  assert.match(published.get(`${shop}/name/s-2`)?.reason ?? "", /taken: it is the name of 10.64.0.2/);
  restart((all) => all.reverse());
  assert.equal(ask("web1.shop.cells.internal", "A").answers[0]?.data, "10.64.0.2");
  want(shop, "s-1", null);
  assert.equal(published.get(`${shop}/name/s-2`)?.phase, "ready");
  assert.equal(ask("web1.shop.cells.internal", "A").answers[0]?.data, "10.64.0.3");
});

test("a name whose owner wants it no more when the service comes back is free for who waits", () => {
  const { want, restart, ask, published, records } = world();
  want(shop, "s-1", "web1.shop.cells.internal", "10.64.0.2");
  want(shop, "s-2", "web1.shop.cells.internal", "10.64.0.3");
  want(shop, "s-3", "web3.shop.cells.internal", "10.64.0.4");
  restart((all) => all.filter(([, key]) => key === "name/s-2"));
  assert.equal(published.get(`${shop}/name/s-2`)?.phase, "ready");
  assert.equal(ask("web1.shop.cells.internal", "A").answers[0]?.data, "10.64.0.3");
  assert.equal(ask("web3.shop.cells.internal", "A").rcode, "NXDOMAIN");
  assert.deepEqual([...records.keys()], ["name/web1.shop.cells.internal"]);
});

test("another cell sees what is public, and of all else exactly what it sees of what is not there", () => {
  const { want, ask, restart } = world();
  const isNothing = (name: string, type: string, cell: string | null): void =>
    assert.deepEqual(ask(name, type, cell), { rcode: "NXDOMAIN", answers: [] }, `${name} for ${cell}`);
  want(shop, "s-1", "web.shop.cells.internal", "10.64.0.2");
  want("controller.shop2", "t-1", "web.shop2.cells.internal", "10.64.0.9");
  const hidden = ["web.shop.cells.internal", "shop.cells.internal", "none.shop.cells.internal", "none.cells.internal"];
  for (const stranger of ["shop2", "root", "web.shop", "", null]) {
    for (const name of hidden) isNothing(name, "A", stranger);
    isNothing("2.0.64.10.in-addr.arpa", "PTR", stranger);
  }
  assert.equal(ask("web.shop.cells.internal", "A").answers[0]?.data, "10.64.0.2");
  want(shop, "s-1", "web.shop.cells.internal", "10.64.0.2", { public: true });
  for (const again of [false, true]) {
    if (again) restart();
    for (const anyone of ["shop", "shop2", null]) {
      assert.equal(ask("WEB.shop.cells.internal", "A", anyone).answers[0]?.data, "10.64.0.2");
      assert.equal(ask("shop.cells.internal", "A", anyone).rcode, "NOERROR");
      assert.equal(ask("2.0.64.10.in-addr.arpa", "PTR", anyone).answers[0]?.data, "web.shop.cells.internal");
      assert.deepEqual(ask("web.shop.cells.internal", "AAAA", anyone), { rcode: "NOERROR", answers: [] });
    }
  }
  // No longer public.
  want(shop, "s-1", "web.shop.cells.internal", "10.64.0.2");
  for (const name of hidden) isNothing(name, "A", "shop2");
  assert.equal(ask("shop.cells.internal", "A").rcode, "NOERROR");
});

test("from an address that a machine says itself that it has no name leads back", () => {
  const { want, ask, restart } = world();
  const fake = { public: true, heard: true };
  want(shop, "s-1", "web.shop.cells.internal", "10.64.0.2", { public: true });
  want("controller.bank", "t-1", "fake.bank.cells.internal", "10.64.0.2", fake);
  want("controller.bank", "t-2", "free.bank.cells.internal", "10.64.0.3", fake);
  for (const again of [false, true]) {
    if (again) restart();
    for (const cell of ["shop", "bank", null]) {
      assert.equal(ask("fake.bank.cells.internal", "A", cell).answers[0]?.data, "10.64.0.2");
      const names = ask("2.0.64.10.in-addr.arpa", "PTR", cell).answers.map(({ data }) => data);
      assert.deepEqual(names, ["web.shop.cells.internal"]);
      assert.equal(ask("3.0.64.10.in-addr.arpa", "PTR", cell).rcode, "NXDOMAIN");
    }
  }
  // Given to it from now on.
  want("controller.bank", "t-2", "free.bank.cells.internal", "10.64.0.3", { public: true });
  assert.equal(ask("3.0.64.10.in-addr.arpa", "PTR").answers[0]?.data, "free.bank.cells.internal");
  want("controller.bank", "t-1", null);
  assert.equal(ask("2.0.64.10.in-addr.arpa", "PTR").answers[0]?.data, "web.shop.cells.internal");
});

test("a name that is shown, or has another address, stays with whom it belongs to", () => {
  const { want, ask, published } = world();
  want(shop, "s-1", "web.shop.cells.internal", "10.64.0.2");
  want(shop, "s-2", "web.shop.cells.internal", "10.64.0.3");
  want(shop, "s-1", "Web.shop.cells.internal", "10.64.0.4", { public: true });
  assert.equal(ask("web.shop.cells.internal", "A", "bank").answers[0]?.data, "10.64.0.4");
  assert.match(published.get(`${shop}/name/s-2`)?.reason ?? "", /taken: it is the name of 10.64.0.4/);
  assert.equal(ask("2.0.64.10.in-addr.arpa", "PTR").rcode, "NXDOMAIN");
  want(shop, "s-1", null);
  assert.equal(ask("web.shop.cells.internal", "A").answers[0]?.data, "10.64.0.3");
  assert.equal(ask("web.shop.cells.internal", "A", "bank").rcode, "NXDOMAIN");
});
