import { hostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { Effect, Input, Restored } from "../env.ts";
import { createHaManager } from "./manager.ts";
import type { ByHandRefusal } from "./people/by-hand.ts";
import type { HaState } from "./state.ts";

/** One member of the Presence group is its majority here; there are as many hosts as a test says. */
export const member = peerName("presence.1");
const manager = peerName("storage-manager");
export const wallMs = 1_700_000_000_000;

export class World {
  readonly service;
  state: HaState;
  readonly records = new Map<string, Json>();
  readonly #protected = new Map<string, Input>();
  ms = 1000;
  /** For which the timers were set last. */
  lookAfterMs: number | null = null;
  compareAfterMs: number | null = null;

  constructor(hosts: number, presence = [member], agents: readonly PeerName[] = [], self = "ha-manager") {
    this.service = createHaManager({
      agents,
      self: peerName(self),
      presence,
      storageManagers: [manager],
      hosts: Array.from({ length: hosts }, (_, index) => peerName(`host.h${index + 1}`)),
    });
    this.state = this.service.restore(this.#restored());
    this.give({ kind: "start" });
  }
  #restored(): Restored {
    return { records: new Map(this.records), desiredAt: new Map() };
  }
  restart(): void {
    this.state = this.service.restore(this.#restored());
    for (const input of this.#protected.values()) this.give(input);
    this.give({ kind: "start" });
  }
  /** Names of the events of the last input. */
  events: readonly string[] = [];
  give(input: Input): readonly Effect[] {
    const { effects } = this.service.step(this.state, input, { ms: this.ms, wallMs: wallMs + this.ms });
    for (const effect of effects) {
      if (effect.kind !== "timer") continue;
      if (effect.name === "look") this.lookAfterMs = effect.afterMs;
      if (effect.name === "compare") this.compareAfterMs = effect.afterMs;
    }
    this.events = effects.flatMap((effect) => (effect.kind === "log" ? [effect.event] : []));
    for (const effect of effects) {
      if (effect.kind !== "write") continue;
      if (effect.value === null) this.records.delete(effect.key);
      else this.records.set(effect.key, effect.value);
    }
    return effects;
  }
  protect(vm: string, incarnation: number, host: string, cell = "shop", more: JsonObject = {}): void {
    const value: JsonObject = {
      vm,
      cell,
      path: `${cell}/${vm}`,
      incarnation,
      host,
      boot: 7,
      lost: "restart",
      priority: 0,
      isolated: "keep",
      storageManager: "storage-manager",
      ...more,
    };
    const input: Input = { kind: "desired", from: peerName(`controller.${cell}`), key: `protected/${vm}`, value };
    this.#protected.set(vm, input);
    if (!this.state.power.boots.has(hostName(host))) this.boots(host);
    this.give(input);
  }
  /** A host says in which boot it is, and that nothing runs there. */
  boots(host: string, boot = 7): void {
    const value = { host, boot, machines: [] };
    this.give({ kind: "actual", from: peerName(`host.${host}`), key: "machines", value });
  }
  lose(host: string, generation = 1): void {
    const declaredAt = wallMs + this.ms;
    const value = { host, generation, incarnation: 0, declaredAt, reporters: 3 };
    this.give({ kind: "actual", from: member, key: `dead/${host}`, value });
  }
  fenced(vm: string, incarnation: number): void {
    const value = { incarnation, complete: true, volumes: [], reason: null };
    this.give({ kind: "actual", from: manager, key: `${this.state.options.self}/fence/${vm}`, value });
  }
  /** Its two hosts are lost one after the other, soon after it came: a guard holds it. */
  loseTwice(vm: string): void {
    this.protect(vm, 1, "h1");
    this.ms += 60_000;
    this.lose("h1");
    this.fenced(vm, 1);
    this.protect(vm, 2, "h2");
    this.ms += 400_000;
    this.lose("h2");
  }
  /** What the operator says of a host; null: nothing. */
  administer(host: string, state: "disabled" | "maintenance" | null): void {
    const value = state === null ? null : { host, state };
    const input: Input = { kind: "desired", from: peerName("controller.root"), key: `host/${host}`, value };
    this.#protected.set(`host/${host}`, input);
    this.give(input);
  }
  /** What the operator sets; null: nothing. */
  set(settings: Json, entrance?: string): void {
    const value = settings === null ? null : { settings, ...(entrance === undefined ? {} : { entrance }) };
    const input: Input = { kind: "desired", from: peerName("controller.root"), key: "settings", value };
    this.#protected.set("settings", input);
    this.give(input);
  }
  pause(): void {
    this.give({ kind: "request", id: 1, request: { kind: "ha-pause" } });
  }
  release(more: JsonObject = {}): void {
    this.give({ kind: "request", id: 1, request: { kind: "ha-release", ...more } });
  }
  /** @returns why a word of the operator's changes nothing; null: it did, or it was said before */
  word(kind: "ha-cancel" | "ha-retry", path: string, cell = "shop"): ByHandRefusal | null {
    const [reply] = this.give({ kind: "request", id: 1, request: { kind, cell, path } }).filter(
      (effect) => effect.kind === "reply",
    );
    return (reply?.response as { readonly refusal?: ByHandRefusal } | undefined)?.refusal ?? null;
  }
  /** A host that was declared dead is there again. */
  returns(host: string, generation = 1): void {
    const value = { host, generation, incarnation: 0, declaredAt: wallMs, reporters: 3, returned: generation + 1 };
    this.give({ kind: "actual", from: member, key: `dead/${host}`, value });
  }
  stepOf(vm: string): string | undefined {
    return this.state.active.get(vm as never)?.step;
  }
}
