import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type ActualLook, tenancy } from "../../documents/tenancy.ts";
import type { Effect, Input } from "../../env.ts";
import { createOutbox } from "../../outbox.ts";
import { closeTickets, createTickets, silenceMs, takeTicketInput, ticketMs } from "./tickets.ts";

const self = peerName("controller.shop");
const open: ActualLook = {
  open: true,
  user: "ann@ROOT",
  account: "ROOT/dev",
  rules: [{ verb: "cell.*", effect: "allow" }],
};

class Bench {
  ms = 0;
  readonly tickets;
  readonly effects: Effect[] = [];
  constructor(restored = new Map<string, Json>()) {
    const given = { records: new Map(), desiredAt: new Map([[tenancy, restored]]) };
    this.tickets = createTickets(self, given, createOutbox(given));
    this.step({ kind: "reachable", peer: tenancy, reachable: true });
  }
  step(input: Input): readonly Effect[] {
    const effects = takeTicketInput(this.tickets, input, { ms: this.ms, wallMs: this.ms });
    assert.ok(effects !== null, JSON.stringify(input));
    this.effects.push(...effects);
    return effects;
  }
  after(ms: number): readonly Effect[] {
    const until = this.ms + ms;
    const effects: Effect[] = [];
    for (; this.ms < until; this.ms = Math.min(until, this.ms + 5_000))
      effects.push(...this.step({ kind: "timer", name: "tickets" }));
    return [...effects, ...this.step({ kind: "timer", name: "tickets" })];
  }
  ask(hash: string, id = 1): string | null {
    const effects = this.step({ kind: "request", id, request: { method: "TICKET-WORTH", hash } });
    const reply = effects.find((effect) => effect.kind === "reply");
    return reply === undefined ? null : (reply.response as { readonly state: string }).state;
  }
  hear(hash: string, worth: ActualLook | null): readonly Effect[] {
    return this.step({ kind: "actual", from: tenancy, key: `${self}/look/${hash}`, value: worth as unknown as Json });
  }
  hold = (hash: string, held: boolean): readonly Effect[] =>
    this.step({ kind: "request", id: 9, request: { method: "TICKET-HELD", hash, held } });
  link = (reachable: boolean): readonly Effect[] => this.step({ kind: "reachable", peer: tenancy, reachable });
}
const taken = (effects: readonly Effect[]): readonly string[] =>
  effects.flatMap((effect) => (effect.kind === "desire" && effect.value === null ? [effect.key] : []));
const ended = (effects: readonly Effect[]): number =>
  effects.filter((effect) => effect.kind === "log" && effect.event === "ticket/ended").length;

test("who asks first waits for the word of the service, and who asks then has it at once", () => {
  const bench = new Bench();
  assert.equal(bench.ask("t", 1), null);
  assert.equal(bench.ask("t", 2), null);
  assert.equal(bench.effects.filter(({ kind }) => kind === "desire").length, 1);
  assert.equal(bench.hear("t", open).filter(({ kind }) => kind === "reply").length, 2);
  assert.equal(bench.ask("t"), "open");
});

test("a right that is taken back is gone with the next word, and what it opened is told to end", () => {
  const bench = new Bench();
  bench.ask("t");
  bench.hear("t", open);
  assert.equal(ended(bench.hear("t", { ...open, rules: [] })), 1, "less is told as well");
  assert.equal(bench.ask("t"), "open");
  assert.equal(ended(bench.hear("t", { ...open, open: false })), 1);
  assert.equal(bench.ask("t"), "unknown");
  assert.deepEqual(taken(bench.after(20_000)), ["look/t"], "what is worth nothing is not followed");
});

test("silence is no word: what was said last counts for five minutes, and then nothing does", () => {
  for (const how of ["link", "withdrawn"] as const) {
    const bench = new Bench();
    bench.ask("t");
    bench.hear("t", open);
    bench.hold("t", true);
    if (how === "link") bench.link(false);
    else bench.hear("t", null);
    bench.after(silenceMs - 1_000);
    assert.equal(bench.ask("t"), "open", how);
    const effects = bench.after(2_000);
    assert.equal(ended(effects), 1, `${how}: what it opened ends too`);
    assert.notEqual(bench.ask("t"), "open", how);
  }
  const again = new Bench();
  again.ask("t");
  again.hear("t", open);
  again.link(false);
  again.after(silenceMs - 1_000);
  again.link(true);
  again.after(silenceMs - 1_000);
  assert.equal(again.ask("t"), "open", "it is heard again, and has said nothing else");
});

test("nobody waits for ever for a service that says nothing, and is not let in meanwhile", () => {
  const bench = new Bench();
  assert.equal(bench.ask("t"), null);
  const replies = bench.after(10_000).filter((effect) => effect.kind === "reply");
  assert.deepEqual(
    replies.map((effect) => effect.response),
    [{ state: "silent" }],
  );
});

test("a ticket opens something new for a quarter of an hour, and what it has opened goes on", () => {
  const bench = new Bench();
  bench.ask("held");
  bench.ask("left");
  for (const hash of ["held", "left"]) bench.hear(hash, open);
  bench.hold("held", true);
  assert.deepEqual(taken(bench.after(ticketMs)), ["look/left"]);
  assert.equal(bench.ask("held"), "old");
  bench.hold("held", false);
  assert.deepEqual(taken(bench.after(5_000)), ["look/held"]);
});

test("what the service says of other tickets, or of other cells' tickets, is not heard", () => {
  const bench = new Bench();
  bench.ask("t");
  bench.hear("other", open);
  bench.step({ kind: "actual", from: tenancy, key: "controller.bank/look/t", value: open as unknown as Json });
  assert.equal(bench.ask("t"), null);
  assert.equal(
    takeTicketInput(
      bench.tickets,
      { kind: "actual", from: peerName("placer"), key: "x", value: {} },
      { ms: 0, wallMs: 0 },
    ),
    null,
  );
});

test("tickets of before a restart are nobody's concern but its own: they are taken back at the start", () => {
  const bench = new Bench(new Map([["look/old", { ticket: "old" }]]));
  assert.deepEqual(bench.tickets.stale, ["look/old"]);
});

test("a cell that ends lets nobody in, and takes back what it asked before it is gone", () => {
  const bench = new Bench(new Map([["look/before", { ticket: "before" }]]));
  bench.ask("t", 1);
  bench.hear("t", open);
  bench.ask("unanswered", 2);
  const closed = closeTickets(bench.tickets);
  assert.deepEqual(taken(closed), ["look/t", "look/unanswered"]);
  assert.equal(ended(closed), 1);
  assert.deepEqual(
    closed.flatMap((effect) => (effect.kind === "reply" ? [effect.id, effect.response] : [])),
    [2, { state: "unknown" }],
  );
  assert.equal(bench.ask("another", 3), "unknown");
  assert.deepEqual(closeTickets(bench.tickets), [], "once");
  const confirm = (key: string): readonly Effect[] | null =>
    takeTicketInput(bench.tickets, { kind: "released", peer: tenancy, key }, { ms: bench.ms, wallMs: bench.ms });
  assert.deepEqual([confirm("look/t"), confirm("look/before")], [[], []]);
  assert.deepEqual([...bench.tickets.releasing], ["look/unanswered"]);
  assert.equal(confirm("look/unanswered"), null, "the last one is of concern to the life of the cell");
});
