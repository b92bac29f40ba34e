import assert from "node:assert/strict";
import { type PeerName, peerName, uid } from "../../model/cell/identifiers.ts";
import { noUsage } from "../../model/check/check-limits.ts";
import type { Json } from "../../model/json/json.ts";
import { type ActualCell, type ActualLife, type DesiredLife, lifeKey } from "../documents/cells.ts";
import { actualKey } from "../documents/vocabulary.ts";
import type { Input } from "../env.ts";
import { toJson } from "../outbox.ts";
import { createCellManager } from "./manager.ts";
import type { CellReport, CellWorkAnswer } from "./work.ts";

export const self = peerName("cell-manager");
export const shop = peerName("controller.shop");
export const web = peerName("controller.web.shop");
export const service = createCellManager({ self, firstNumber: 100 });

/** A Cell Manager with its store, between parents and the controllers of their children. */
export class World {
  readonly records = new Map<string, Json>();
  readonly desired = new Map<string, Json>();
  readonly released = new Map<string, Json>();
  readonly published = new Map<string, Json>();
  readonly clients = new Map<string, { from: PeerName; key: string; value: Json }>();
  readonly answers: Json[] = [];
  state = service.restore({ records: new Map(), desiredAt: new Map() });
  constructor() {
    this.step({ kind: "start" });
    this.report({ kind: "found", controllers: [] });
  }
  step(input: Input): void {
    const { state, effects } = service.step(this.state, input, { ms: 0, wallMs: 0 });
    this.state = state;
    for (const effect of effects) {
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      else if (effect.kind === "write") this.records.set(effect.key, effect.value);
      else if (effect.kind === "desire" && effect.value === null) this.desired.delete(`${effect.to}/${effect.key}`);
      else if (effect.kind === "desire") this.desired.set(`${effect.to}/${effect.key}`, effect.value);
      else if (effect.kind === "publish" && effect.value === null) this.published.delete(effect.key);
      else if (effect.kind === "publish") this.published.set(effect.key, effect.value);
      else if (effect.kind === "reply") this.answers.push(effect.response);
    }
  }
  want(id: string, cell: string | null, from = shop, more: object = {}): this {
    const grant = { amount: noUsage, serial: 1, answered: 0, refusal: null };
    const model = { web: { "x.type": "Cell" } };
    const value = cell === null ? null : toJson({ uid: uid(id), cell, model, grant, ...more });
    assert.ok(service.accepts(from, `cell/${id}`));
    if (value === null) this.clients.delete(`${from}/${id}`);
    else this.clients.set(`${from}/${id}`, { from, key: `cell/${id}`, value });
    this.step({ kind: "desired", from, key: `cell/${id}`, value });
    return this;
  }
  report(report: CellReport): this {
    this.step({ kind: "request", id: 1, request: toJson(report) });
    return this;
  }
  says(life: Partial<ActualLife>): this {
    const quota = { serial: 1, holds: noUsage, asks: null };
    const value = toJson({ phase: "ready", reason: null, version: 1, empty: false, quota, ...life });
    this.step({ kind: "actual", from: web, key: actualKey(self, lifeKey), value });
    return this;
  }
  work(): CellWorkAnswer["controllers"] {
    this.report({ kind: "work", known: 0 });
    return (this.answers.at(-1) as unknown as CellWorkAnswer).controllers;
  }
  cell(id: string, client = shop): ActualCell | undefined {
    return this.published.get(actualKey(client, `cell/${id}`)) as unknown as ActualCell | undefined;
  }
  life(): DesiredLife | undefined {
    return this.desired.get(`${web}/${lifeKey}`) as unknown as DesiredLife | undefined;
  }
  restart(): this {
    this.published.clear();
    const life = this.desired.get(`${web}/${lifeKey}`);
    const desiredAt = new Map(life === undefined ? [] : [[web, new Map([[lifeKey, life]])]]);
    this.state = service.restore({ records: new Map(this.records), desiredAt });
    for (const { from, key, value } of this.clients.values()) this.step({ kind: "desired", from, key, value });
    this.step({ kind: "start" });
    this.answers.length = 0;
    return this;
  }
  /** Its store is gone, and its clients repeat what they want. */
  lose(): this {
    this.records.clear();
    this.desired.clear();
    return this.restart();
  }
}
