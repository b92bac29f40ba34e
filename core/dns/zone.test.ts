import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Effect } from "../env.ts";
import { createDnsManager, type NameAnswer } from "./manager.ts";
import { reverseZones, type Soa } from "./zone.ts";

/** Names of the cloud as the operator's name servers fetch them. */
const zone = { zone: "cloud.example.org", servers: ["ns1.example.org", "ns2.example.org"], secondaries: ["10.0.0.9"] };

const zones = [zone.zone, "18.198.in-addr.arpa", "19.198.in-addr.arpa"];

function world(externalPools = ["198.18.0.0/15"]) {
  const service = createDnsManager({ self: peerName("dns-manager"), externalPools });
  const records = new Map<string, Json>();
  const said = new Map<string, readonly [from: string, key: string, value: Json]>();
  let state = service.restore({ records, desiredAt: new Map() });
  let wallMs = 1_000_000_000_000;
  const input = (what: Parameters<typeof service.step>[1]) => {
    const step = service.step(state, what, { ms: 0, wallMs });
    state = step.state;
    for (const effect of step.effects) if (effect.kind === "write") records.set(effect.key, effect.value);
    return step.effects;
  };
  const heard: Effect[] = [];
  const say = (from: string, key: string, value: Json): void => {
    said.set(`${from} ${key}`, [from, key, value]);
    heard.push(...input({ kind: "desired", from: peerName(from), key, value }));
  };
  /** The timers that were set since, run out. @returns how many, and what was answered then */
  const later = (): readonly [timers: number, answers: readonly (readonly [id: number, response: Json])[]] => {
    const timers = heard.splice(0).flatMap((effect) => (effect.kind === "timer" ? [effect.name] : []));
    const effects = timers.flatMap((name) => input({ kind: "timer", name }));
    return [
      timers.length,
      effects.flatMap((effect) => (effect.kind === "reply" ? [[effect.id, effect.response] as const] : [])),
    ];
  };
  const restart = (kept = true): void => {
    state = service.restore({ records: kept ? new Map(records) : new Map(), desiredAt: new Map() });
    if (!kept) records.clear();
    for (const [from, key, value] of said.values()) input({ kind: "desired", from: peerName(from), key, value });
    input({ kind: "start" });
  };
  input({ kind: "start" });
  const request = (asked: Json): Json => {
    const reply = input({ kind: "request", id: 2, request: asked }).find((effect) => effect.kind === "reply");
    return reply?.kind === "reply" ? reply.response : null;
  };
  const ask = (name: string, type: string, from = "10.0.0.9", key: string | null = null): NameAnswer => {
    const effects = input({ kind: "request", id: 1, request: { name, type, cell: null, from, key } });
    const reply = effects.find((effect) => effect.kind === "reply");
    assert.ok(reply?.kind === "reply");
    return reply.response as unknown as NameAnswer;
  };
  /** Asks for another number than the one it knows. @returns what is answered at once; undefined: nothing */
  const news = (id: number, known: Json): Json | undefined => {
    const replies = input({ kind: "request", id, request: { zone: "news", known } });
    return replies.flatMap((effect) => (effect.kind === "reply" && effect.id === id ? [effect.response] : []))[0];
  };
  const names = (uid: string, name: string, address: string, shown = true): void =>
    say("controller.web", `name/${uid}`, {
      uid,
      name: `${name}.web.cells.internal`,
      address,
      ...(shown ? { public: true } : {}),
    });
  const serial = (): number => {
    const [soa] = ask(zone.zone, "SOA").answers;
    assert.ok(soa?.type === "SOA");
    return (soa.data as Soa).serial;
  };
  const passes = (ms: number): void => {
    wallMs += ms;
  };
  return { ask, request, news, later, say, names, serial, restart, passes, records };
}

test("a secondary gets the public names of external addresses, between two SOA records", () => {
  const { ask, say, names } = world();
  names("u-1", "www", "198.18.0.5");
  names("u-2", "db", "10.64.0.2");
  names("u-3", "hidden", "198.18.0.6", false);
  assert.deepEqual(ask(zone.zone, "AXFR"), { rcode: "REFUSED", answers: [] }, "before it is declared");
  say("controller.root", "zone", zone);
  const { rcode, answers } = ask(zone.zone, "AXFR");
  assert.equal(rcode, "NOERROR");
  assert.deepEqual(
    answers.map(({ name, type, data }) => [name, type, type === "SOA" ? (data as Soa).mname : data]),
    [
      [zone.zone, "SOA", "ns1.example.org"],
      [zone.zone, "NS", "ns1.example.org"],
      [zone.zone, "NS", "ns2.example.org"],
      ["www.web.cloud.example.org", "A", "198.18.0.5"],
      [zone.zone, "SOA", "ns1.example.org"],
    ],
  );
  assert.deepEqual(answers[0], answers.at(-1));
  const said = { uid: "u-4", name: "fake.web.cells.internal", address: "198.18.0.5", public: true, heard: true };
  say("controller.web", "name/u-4", said);
  assert.equal(ask(zone.zone, "AXFR").answers.length, answers.length, "what a machine says itself is handed to nobody");
  assert.deepEqual(
    ask("WWW.web.cloud.example.org", "A").answers.map(({ name, data }) => [name, data]),
    [["WWW.web.cloud.example.org", "198.18.0.5"]],
  );
  assert.equal(ask("db.web.cloud.example.org", "A").rcode, "NXDOMAIN");
  assert.equal(ask("www.web.cloud.example.org", "AXFR").rcode, "REFUSED", "that is no zone");
  say("controller.root", "zone", null);
  assert.equal(ask(zone.zone, "AXFR").rcode, "REFUSED", "it is taken out");
});

test("what stands at the way in has names there, by the word of the cell that the root cell names, and inside nobody has them", () => {
  const { ask, request, say, restart } = world();
  /** As who tells the secondaries has it, which looks at what is in it where something changed. */
  const serial = (): number => (request({ zone: "state" }) as { number: { serial: number } }).number.serial;
  const entrance = { cell: "primary", address: "10.0.0.40" };
  const doors = { address: "10.0.0.40", roles: ["gateway", "personality.caas"] };
  const found = (): readonly unknown[] =>
    ask(zone.zone, "AXFR").answers.flatMap(({ name, type, data }) => (type === "A" ? [[name, data]] : []));
  const both = [
    ["caas.cloud.example.org", "10.0.0.40"],
    ["gateway.cloud.example.org", "10.0.0.40"],
  ];
  say("controller.primary", "doors", doors);
  say("controller.root", "zone", zone);
  assert.deepEqual(found(), [], "the root cell names no way in");
  say("controller.root", "zone", { ...zone, entrance });
  assert.deepEqual(found(), both);
  assert.deepEqual(
    ask("CAAS.cloud.example.org", "A").answers.map(({ data }) => data),
    ["10.0.0.40"],
  );
  assert.equal(ask("caas.cloud.example.org", "A", "10.64.0.2").rcode, "REFUSED", "nobody else is told");
  assert.equal(
    ask("caas.cells.internal", "A", "10.64.0.2").rcode,
    "NXDOMAIN",
    "a machine of a tenant could not reach it",
  );
  const before = serial();
  say("controller.web", "doors", { address: "10.0.0.40", roles: ["personality.caas"] });
  restart();
  assert.deepEqual(found(), both, "another cell's word counts nothing");
  assert.equal(serial(), before);
  say("controller.primary", "doors", { ...doors, roles: ["gateway", "controller", "www", "personality.www"] });
  assert.ok(serial() > before, "there is another number before anybody has fetched it");
  assert.deepEqual(found(), both.slice(1), "what is no door has no name, and what went has none any more");
  say("controller.primary", "doors", { ...doors, address: "10.0.0.31" });
  assert.deepEqual(found(), [], "elsewhere than where the root cell lets it be");
  say("controller.primary", "doors", doors);
  assert.deepEqual(found(), both);
  say("controller.primary", "doors", null);
  assert.deepEqual(found(), []);
});

test("a secondary gets the reverse zones of the pools as well, and a controller the names of the inside as before", () => {
  const { ask, say, names } = world(["198.18.0.0/15", "203.0.113.64/26"]);
  say("controller.root", "zone", zone);
  names("u-1", "www", "198.18.0.5");
  names("u-2", "mail", "203.0.113.70");
  names("u-3", "db", "10.64.0.2");
  const whole = (name: string) =>
    ask(name, "AXFR").answers.flatMap(({ name: at, type, data }) => (type === "PTR" ? [[at, data]] : [type]));
  const ends = ["SOA", "NS", "NS"];
  const www = ["5.0.18.198.in-addr.arpa", "www.web.cloud.example.org"];
  assert.deepEqual(whole("18.198.in-addr.arpa"), [...ends, www, "SOA"]);
  assert.deepEqual(whole("19.198.in-addr.arpa"), [...ends, "SOA"]);
  const mail = ["70.64-26.113.0.203.in-addr.arpa", "mail.web.cloud.example.org"];
  assert.deepEqual(whole("64-26.113.0.203.in-addr.arpa"), [...ends, mail, "SOA"]);
  assert.deepEqual(
    ask("18.198.in-addr.arpa", "AXFR").answers.flatMap((each) => (each.type === "SOA" ? [each.name] : [])),
    ["18.198.in-addr.arpa", "18.198.in-addr.arpa"],
  );
  assert.equal(ask("5.0.18.198.in-addr.arpa", "PTR").answers[0]?.data, "www.web.cloud.example.org");
  assert.equal(ask("0.18.198.in-addr.arpa", "AXFR").rcode, "REFUSED", "that is no zone");
  assert.equal(ask("2.0.64.10.in-addr.arpa", "AXFR").rcode, "REFUSED");
  for (const { name } of [{ name: "18.198.in-addr.arpa" }, { name: "64-26.113.0.203.in-addr.arpa" }])
    assert.equal(ask(name, "AXFR", "10.0.3.1").rcode, "REFUSED", "who is not declared");
  assert.equal(ask("5.0.18.198.in-addr.arpa", "PTR", "10.0.3.1").answers[0]?.data, "www.web.cells.internal");
});

test("reverse zones end between two octets, and a small network has one of its own", () => {
  const named = (pool: string) => reverseZones(pool).map(({ name }) => name);
  assert.deepEqual(named("203.0.113.0/24"), ["113.0.203.in-addr.arpa"]);
  assert.deepEqual(named("203.0.112.0/23"), ["112.0.203.in-addr.arpa", "113.0.203.in-addr.arpa"]);
  assert.deepEqual(named("198.18.0.0/16"), ["18.198.in-addr.arpa"]);
  assert.deepEqual(named("10.0.0.0/8"), ["10.in-addr.arpa"]);
  assert.deepEqual(named("203.0.113.128/25"), ["128-25.113.0.203.in-addr.arpa"]);
});

test("nobody else is told anything of it, whatever he asks, nor a secondary the names of the inside as a zone", () => {
  const { ask, say, names } = world();
  say("controller.root", "zone", zone);
  names("u-1", "www", "198.18.0.5");
  for (const from of ["10.0.3.1", "10.64.0.2", ""])
    for (const [name, type] of [
      [zone.zone, "AXFR"],
      [zone.zone, "SOA"],
      ["www.web.cloud.example.org", "A"],
    ] as const)
      assert.deepEqual(ask(name, type, from), { rcode: "REFUSED", answers: [] }, `${from} ${name} ${type}`);
  assert.deepEqual(ask("cells.internal", "AXFR"), { rcode: "REFUSED", answers: [] });
  assert.equal(ask("www.web.cells.internal", "A", "10.0.3.1").answers.length, 1, "as before");
  assert.equal(ask("xcloud.example.org", "A").rcode, "REFUSED");
});

test("who tells of news is told of another number once for all that came in, and nothing is looked at for what is inside", () => {
  const { news, later, say, names, serial } = world();
  assert.equal(news(11, null), undefined, "no zone is declared");
  names("u-1", "www", "198.18.0.5");
  say("controller.root", "zone", zone);
  const first = serial();
  assert.deepEqual(later(), [1, [[11, { zones, serial: first, secondaries: zone.secondaries }]]]);
  const known = { zones, serial: first, secondaries: zone.secondaries };
  assert.equal(news(12, known), undefined);
  names("u-2", "db", "10.64.0.2", false);
  names("u-3", "hidden", "198.18.0.6", false);
  assert.deepEqual(later(), [0, []], "nobody outside is shown it");
  names("u-4", "inside", "10.64.0.3");
  assert.deepEqual(later(), [1, []], "that is in no zone");
  names("u-1", "www", "198.18.0.7");
  names("u-5", "mail", "198.18.0.8");
  assert.deepEqual(later(), [1, [[12, { ...known, serial: first + 1 }]]]);
  assert.equal(news(16, { ...known, serial: first + 1 }), undefined);
  names("u-5", "mail", "198.18.0.9");
  const second = serial();
  assert.ok(second > first + 1);
  assert.deepEqual(later(), [1, [[16, { ...known, serial: second }]]], "also where a secondary has looked before");
  assert.deepEqual(news(13, known), { ...known, serial: second }, "what it missed it is told at once");
  assert.equal(news(14, { ...known, serial: second }), undefined);
  say("controller.root", "zone", { ...zone, secondaries: ["10.0.0.9", "10.0.0.10"] });
  assert.deepEqual(later()[1], [[14, { ...known, serial: second, secondaries: ["10.0.0.9", "10.0.0.10"] }]]);
  assert.equal(news(15, { ...known, serial: second, secondaries: ["10.0.0.9", "10.0.0.10"] }), undefined);
  say("controller.root", "zone", null);
  assert.deepEqual(later()[1], [[15, null]], "it is taken out");
});

test("its number grows with what is in it and with nothing else, over a start, and after a lost store", () => {
  const { say, names, serial, restart, passes } = world();
  say("controller.root", "zone", zone);
  names("u-1", "www", "198.18.0.5");
  const first = serial();
  passes(5_000);
  assert.equal(serial(), first);
  names("u-2", "db", "10.64.0.2");
  assert.equal(serial(), first, "what is inside is none of its");
  names("u-1", "www", "198.18.0.7");
  const second = serial();
  assert.ok(second > first);
  passes(5_000);
  restart();
  assert.equal(serial(), second);
  names("u-3", "mail", "198.18.0.8");
  const third = serial();
  assert.ok(third > second, "twice within a second");
  passes(-3_600_000);
  names("u-3", "mail", "198.18.0.9");
  const fourth = serial();
  assert.ok(fourth > third, "with a clock that was set back");
  passes(7_200_000);
  restart(false);
  assert.ok(serial() > fourth, "without its store, by the clock");
});

test("with a key nothing is handed to whoever has the address alone, or the key alone", () => {
  const { ask, say, names } = world();
  say("controller.root", "zone", { ...zone, key: "transfer" });
  names("u-1", "www", "198.18.0.5");
  assert.equal(ask(zone.zone, "AXFR", "10.0.0.9", "transfer").answers.length, 5);
  assert.equal(ask("5.0.18.198.in-addr.arpa", "PTR", "10.0.0.9", "transfer").answers.length, 1);
  for (const [from, key] of [
    ["10.0.0.9", null],
    ["10.0.0.9", "other"],
    ["10.0.3.1", "transfer"],
  ] as const)
    for (const [name, type] of [
      [zone.zone, "AXFR"],
      [zone.zone, "SOA"],
      ["18.198.in-addr.arpa", "AXFR"],
      ["www.web.cloud.example.org", "A"],
    ] as const)
      assert.deepEqual(ask(name, type, from, key), { rcode: "REFUSED", answers: [] }, `${from} ${key} ${name} ${type}`);
  say("controller.root", "zone", zone);
  assert.equal(ask(zone.zone, "AXFR", "10.0.0.9").answers.length, 5, "the address alone counts again");
});

test("keys are kept by their names, sealed as they came, over a start, and not without end", () => {
  const { request, say, restart, records } = world();
  const state = (): Json => request({ zone: "state" });
  assert.deepEqual(state(), { number: null, declared: null, keys: [] });
  const give = (name: string, sealed: string | null): Json => request({ zone: "key", name, sealed });
  assert.deepEqual(give("transfer", "x1"), { wasThere: false, declared: false, full: false });
  say("controller.root", "zone", { ...zone, key: "transfer" });
  assert.deepEqual(give("transfer", "x2"), { wasThere: true, declared: true, full: false });
  restart();
  const { number, ...rest } = state() as { readonly number: Json };
  assert.notEqual(number, null);
  assert.deepEqual(rest, { declared: "transfer", keys: [{ name: "transfer", sealed: "x2" }] });
  for (let index = 1; index < 8; index += 1) give(`k${index}`, "y");
  assert.deepEqual(give("k8", "y"), { wasThere: false, declared: false, full: true });
  assert.equal(records.has("zone-key/k8"), false);
  assert.equal((give("k7", "z") as { readonly full: boolean }).full, false, "one that is there has another secret");
  assert.deepEqual(give("transfer", null), { wasThere: true, declared: true, full: false });
  assert.equal(records.get("zone-key/transfer"), null);
  assert.deepEqual(give("transfer", null), { wasThere: false, declared: true, full: false });
});
