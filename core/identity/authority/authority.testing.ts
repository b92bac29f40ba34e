import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Input, Step } from "../../env.ts";
import { createAuthorityService } from "./authority.ts";
import type { AuthorityAnswer, Beside } from "./requests.ts";
import type { AuthorityOptions, AuthorityState } from "./state.ts";

export const self = peerName("authority");
export const root = peerName("controller.root");
export const hex = (digit: string): string => digit.repeat(64).slice(0, 64);
/** 2026-11-21. */
export const dawn = 1_795_219_200_000;

/** An authority with its store, its clients' documents (durable beside it) and clocks of its own. */
export class AuthorityWorld {
  records = new Map<string, Json>();
  readonly desires = new Map<string, readonly [PeerName, string, Json]>();
  readonly published = new Map<string, Json>();
  readonly logs: { readonly event: string; readonly fields: JsonObject }[] = [];
  wallMs = dawn;
  ms = 0;
  /** To questions that were held back. */
  readonly replies = new Map<number, AuthorityAnswer>();
  readonly #options: Partial<AuthorityOptions>;
  #service;
  #state: AuthorityState;
  #request = 0;

  constructor(options: Partial<AuthorityOptions> = {}) {
    this.#options = options;
    this.#service = createAuthorityService({ self, ...options });
    this.#state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
    this.restart();
  }

  /** `commit` false: it crashes before the step is durable, so that nobody is told and nothing is kept. */
  #step(input: Input, commit = true): AuthorityAnswer | null {
    const step: Step<AuthorityState> = this.#service.step(this.#state, input, { ms: this.ms, wallMs: this.wallMs });
    this.#state = step.state;
    if (!commit) return null;
    let reply: AuthorityAnswer | null = null;
    for (const effect of step.effects) {
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      else if (effect.kind === "write") this.records.set(effect.key, effect.value);
      else if (effect.kind === "publish" && effect.value === null) this.published.delete(effect.key);
      else if (effect.kind === "publish") this.published.set(effect.key, effect.value);
      else if (effect.kind === "log") this.logs.push({ event: effect.event, fields: effect.fields });
      else if (effect.kind === "reply") {
        reply = effect.response as unknown as AuthorityAnswer;
        this.replies.set(effect.id, reply);
      }
    }
    return reply;
  }

  restart(): void {
    this.published.clear();
    this.replies.clear();
    this.#state = this.#service.restore({ records: new Map(this.records), desiredAt: new Map() });
    for (const [from, key, value] of this.desires.values()) this.#step({ kind: "desired", from, key, value });
    this.#step({ kind: "start" });
  }

  /** Its store is removed, with what clients desire of it; what lies beside its key is as it was told to be, or as said here. */
  loseStore(beside: Beside | null = this.beside()): void {
    this.records.clear();
    this.desires.clear();
    this.startWith(beside);
  }
  startWith(beside: Beside | null): void {
    this.#service = createAuthorityService({ self, ...this.#options, ...(beside === null ? {} : { beside }) });
    this.restart();
  }
  beside(): Beside {
    const answer = this.ask({ kind: "beside" });
    if (answer.kind !== "beside") throw new Error("no answer");
    return structuredClone(answer.beside);
  }
  get isLost(): boolean {
    return this.#service.isLost?.(this.#state) === true;
  }
  /** An operator's word. */
  release(peer = self): void {
    this.#step({ kind: "excused", peer });
  }

  desireEnrolment(from: PeerName, id: string, value: Json): void {
    this.desire(from, `enrolment/${id}`, value);
  }
  desire(from: PeerName, key: string, value: Json): void {
    if (value === null) this.desires.delete(`${from}/${key}`);
    else this.desires.set(`${from}/${key}`, [from, key, value]);
    this.#step({ kind: "desired", from, key, value });
  }

  ask(request: object): AuthorityAnswer {
    this.#request += 1;
    const answer = this.#step({ kind: "request", id: this.#request, request: request as unknown as Json });
    if (answer === null) throw new Error("no answer");
    return answer;
  }

  /** Asks what may be held back: how to see whether there is an answer by now. */
  askLater(request: object): () => AuthorityAnswer | null {
    this.#request += 1;
    const id = this.#request;
    this.#step({ kind: "request", id, request: request as unknown as Json });
    return () => this.replies.get(id) ?? null;
  }

  /** Asks, and the authority crashes before the step is durable. */
  askInVain(request: object): void {
    this.#step({ kind: "request", id: 0, request: request as unknown as Json }, false);
    this.restart();
  }

  accepts(from: PeerName, key: string): boolean {
    return this.#service.accepts(from, key);
  }
  entitled(peer: PeerName, key: string): boolean {
    return this.#service.entitled(this.#state, peer, key);
  }
  measured(name: string): readonly { readonly value: number; readonly labels: object }[] {
    return this.#service.measure?.(this.#state).find((metric) => metric.name === name)?.samples ?? [];
  }
}

export const enrolment = (
  hash: string,
  cell: string,
  names: readonly [name: string, role: string][],
  endsAtMs: number,
  address = "10.0.0.13",
) => ({
  hash,
  cell,
  grants: names.map(([name, role]) => ({ name, role, addresses: [address] })),
  endsAtMs,
});

/** The names that were issued, or why none were. */
export const told = (answer: AuthorityAnswer): string =>
  answer.kind === "issue"
    ? answer.certificates.map(({ name }) => name).join(" ")
    : answer.kind === "refused"
      ? answer.because
      : answer.kind;
