import assert from "node:assert/strict";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AccountSummary, DomainSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { ActualLook } from "../documents/tenancy.ts";
import type { Effect, Input } from "../env.ts";
import type { By } from "./actor.ts";
import type { AskName, TenancyRequest, TenancyResponse } from "./asks.ts";
import type { LoginBegun } from "./logins/logins.ts";
import type { TenancyState } from "./state.ts";
import { createTenancy } from "./tenancy.ts";

/** The service over a store and a clock of the test. */
export class Bench {
  readonly service = createTenancy({ self: peerName("tenancy") });
  readonly records = new Map<string, Json>();
  readonly published = new Map<string, ActualLook>();
  /** By peer and key, as `tenancy` has taken them. */
  readonly desired = new Map<string, { readonly from: PeerName; readonly key: string; readonly value: Json }>();
  state: TenancyState;
  ms = 1_000;
  /** Null: as `ms`. */
  wall: number | null = null;
  #next = 0;

  constructor(records: ReadonlyMap<string, Json> = new Map(), wasRestored = false) {
    for (const [key, value] of records) this.records.set(key, value);
    this.state = this.service.restore({ records: this.records, desiredAt: new Map(), wasRestored });
  }
  static started(records?: ReadonlyMap<string, Json>, wasRestored = false): Bench {
    const bench = new Bench(records, wasRestored);
    bench.step({ kind: "start" });
    return bench;
  }

  step(input: Input): readonly Effect[] {
    const { effects } = this.service.step(this.state, input, { ms: this.ms, wallMs: this.wall ?? this.ms });
    for (const effect of effects) {
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      else if (effect.kind === "write") this.records.set(effect.key, effect.value);
      if (effect.kind === "publish" && effect.value === null) this.published.delete(effect.key);
      else if (effect.kind === "publish") this.published.set(effect.key, effect.value as unknown as ActualLook);
    }
    return effects;
  }
  request(request: TenancyRequest): TenancyResponse {
    const effects = this.step({ kind: "request", id: 1, request: request as unknown as Json });
    const reply = effects.find((effect) => effect.kind === "reply");
    if (reply === undefined) throw new Error("there was no reply");
    return reply.response as unknown as TenancyResponse;
  }
  ask(by: By, name: AskName, body: object = {}, parameters: { readonly [name: string]: string } = {}): TenancyResponse {
    this.#next += 1;
    const fresh = { uid: `u${this.#next}`, number: String(this.#next).padStart(12, "0") };
    const asked = body as JsonObject;
    const password = typeof asked.password === "string" ? `phc ${asked.password}` : null;
    return this.request({ kind: "ask", by, name, parameters, query: {}, body: asked, password, fresh });
  }
  /** Of an account or a domain, as the operator sees it. */
  uidOf(path: string): string {
    const places = [
      ...(this.ask(operator, "listAccounts").body as unknown as readonly AccountSummary[]),
      ...(this.ask(operator, "listDomains").body as unknown as readonly DomainSummary[]),
    ];
    return places.find((each) => each.path === path)?.uid ?? assert.fail(path);
  }
  /** The hash of the session; null: refused. */
  logIn(user: string, domain: string, password: string, source = "here"): string | null {
    const begun = this.request({ kind: "login-begin", domain, user, source });
    if (begun.status !== 200) return null;
    const known = begun.body as unknown as LoginBegun;
    this.#next += 1;
    const session = `session ${this.#next}`;
    const matched = known.password === `phc ${password}`;
    const ended = this.request({ kind: "login-end", domain, user, source, begun: known, matched, session });
    return ended.status === 201 ? session : null;
  }
  ticket(session: string, cell: string, hash: string): number {
    return this.request({ kind: "ticket", session, hash, cell }).status;
  }
  look(cell: string, ticket: string): ActualLook | undefined {
    const from = peerName(`controller.${cell}`);
    this.step({ kind: "desired", from, key: `look/${ticket}`, value: { ticket } });
    return this.worth(cell, ticket);
  }
  worth = (cell: string, ticket: string): ActualLook | undefined =>
    this.published.get(`controller.${cell}/look/${ticket}`);
}

export const operator: By = { operator: true };

/** Two accounts with a cell each, and a domain below: ann administers one account, bob uses the other, dora the domain. */
export const settled = (): Bench => {
  const bench = Bench.started();
  const done = (name: AskName, body: object): void => {
    const { status, body: said } = bench.ask(operator, name, body);
    if (status !== 200) throw new Error(`${name}: ${JSON.stringify(said)}`);
  };
  done("addDomain", { path: "ROOT/acme" });
  done("addDomain", { path: "ROOT/acme/sub" });
  for (const path of ["ROOT/acme/dev", "ROOT/acme/ops", "ROOT/acme/sub/lab", "ROOT/others"])
    done("addAccount", { path });
  for (const [name, account, role] of [
    ["ann", "ROOT/acme/dev", "account-admin"],
    ["bob", "ROOT/acme/ops", "user"],
    ["dora", "ROOT/acme/ops", "domain-admin"],
    ["lea", "ROOT/acme/sub/lab", "reader"],
    ["rita", "ROOT/others", "root-admin"],
  ])
    done("addUser", { name, account, role, password: `of ${name}` });
  for (const [cell, account] of [
    ["shop", "ROOT/acme/dev"],
    ["bank", "ROOT/acme/ops"],
    ["lab", "ROOT/acme/sub/lab"],
  ] as const)
    bench.ask(operator, "giveCell", { account }, { cell });
  return bench;
};
