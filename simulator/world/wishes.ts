import { rootCell } from "../../core/documents/cells.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { sameJson } from "../../model/json/same.ts";
import type { Administration, SentAway } from "./administration.ts";
import { type CellText, documentOf, familyOf, labelOf } from "./cell-text.ts";
import type { Installation } from "./installation.ts";

/** What the user of a cell asked for last; null: that it be deleted. */
export interface Wish {
  readonly cell: string;
  readonly text: CellText | null;
  readonly serial: number;
  answered: boolean;
  /** It is sent as a patch of what was accepted before, under a key. Null: as a whole. `sent`: how often. */
  patch: { readonly json: readonly Json[]; sent: number } | null;
}
/** Everything that a user was ever allowed, and what holds now. */
export interface Users {
  readonly wishes: Map<string, Wish>;
  /** What the controller accepted last; null: deleted. */
  readonly accepted: Map<string, CellText | null>;
  /** Every version that was ever submitted. */
  readonly submitted: Map<string, CellText[]>;
  readonly sentAway: SentAway;
}

const nothing: CellText = { machines: [], rules: [], allOrNone: false };
const askAgainMs = 1000;
const patienceMs = 8000;

/** The users of the cells: each asks for what he wants until there is an answer. */
export class Wishes {
  readonly users: Users;
  readonly #administration: Administration;
  readonly #installation: Installation;
  #serial = 0;
  /** By cell, serial of the newest wish that its controller accepted. */
  readonly #lastAccepted = new Map<string, number>();
  /** Of a cell: what its user has given up without an answer, for what was asked for next. */
  readonly #givenUp = new Map<string, Wish>();

  constructor(installation: Installation, administration: Administration, sentAway: SentAway) {
    this.#installation = installation;
    this.#administration = administration;
    this.users = { wishes: new Map(), accepted: new Map(), submitted: new Map(), sentAway };
  }

  wish(cell: string, text: CellText | null, as: "patch" | "whole" = "whole"): void {
    this.#serial += 1;
    const before = this.users.wishes.get(cell);
    const known = before?.answered === true ? this.users.accepted.get(cell) : null;
    const patch = as === "patch" && text !== null && known != null ? patchOf(cell, known, text) : null;
    const wish: Wish = { cell, text, serial: this.#serial, answered: false, patch: patch && { json: patch, sent: 0 } };
    if (before?.answered === false) this.#givenUp.set(cell, before);
    this.users.wishes.set(cell, wish);
    const all = this.users.submitted.get(cell) ?? [];
    this.users.submitted.set(cell, all);
    if (text !== null) all.push(text);
    // What a child cell begins with counts as wished for, too.
    for (const [name, below] of text === null ? [] : familyOf(cell, text).slice(1))
      this.users.submitted.set(name, [...(this.users.submitted.get(name) ?? []), below]);
    this.#submit(wish);
  }

  /** Deletes it once it has taken in what was asked for last. */
  finish(cell: string): void {
    if (this.users.wishes.get(cell)?.answered === true) this.wish(cell, null);
    else this.#installation.kernel.clock.after(askAgainMs, () => this.finish(cell));
  }

  /** Cells that end with their account: nobody asks for them any more, and the root cell's user does not miss them. */
  endWithAccount(cells: readonly string[]): void {
    const { wishes, accepted } = this.users;
    const end = (cell: string, text: CellText | null): void => {
      this.#serial += 1;
      wishes.set(cell, { cell, text, serial: this.#serial, answered: true, patch: null });
      accepted.set(cell, text);
      this.#lastAccepted.set(cell, this.#serial);
    };
    for (const cell of cells) end(cell, null);
    const text = wishes.get("root")?.text;
    if (text == null) return;
    end("root", { ...text, children: (text.children ?? []).filter(({ name }) => !cells.includes(name)) });
  }

  /** Whose controller has an older store again says once more what it wants. */
  wishAgain(cell: string): void {
    const wish = this.users.wishes.get(cell);
    if (wish === undefined) return;
    const again: Wish = { ...wish, answered: false, patch: null };
    this.users.wishes.set(cell, again);
    this.#submit(again);
  }

  /** A user asks until there is an answer, or until something else is wanted. */
  #submit(wish: Wish): void {
    const { kernel, controllers } = this.#installation;
    if (wish.answered || this.users.wishes.get(wish.cell) !== wish) return;
    const controller = controllers.get(wish.cell);
    const answer = this.#isUnheard(wish.cell) ? null : (controller?.request(this.#request(wish)) ?? null);
    kernel.clock.after(answer === null ? askAgainMs : patienceMs, () => this.#submit(wish));
    void answer?.then((response) => this.#answered(wish, response as unknown as { status: number; body: Json }));
  }

  /**
   * Nobody asks anything of a controller without its store before it hears of that: one that is blank and cut off takes its
   * first model, as a new cell's would, and gives out numbers a second time. Until the cloud sees to that, people do.
   */
  #isUnheard(cell: string): boolean {
    const { controllers, losses } = this.#installation;
    const controller = controllers.get(cell);
    if (controller === undefined || !losses.has(controller.name)) return false;
    return [...(controller.distribution?.targets.values() ?? [])].some(({ reachable }) => reachable !== true);
  }

  #answered(wish: Wish, { status, body }: { readonly status: number; readonly body: Json }): void {
    // Also what its user has given up meanwhile: whatever is wished for instead may be refused.
    const isDone = status === 200 || (wish.text === null && status === 404);
    if (isDone && wish.serial >= (this.#lastAccepted.get(wish.cell) ?? 0)) {
      this.#lastAccepted.set(wish.cell, wish.serial);
      this.users.accepted.set(wish.cell, wish.text);
    }
    if (wish.answered || this.users.wishes.get(wish.cell) !== wish) return;
    // A cell that is being deleted takes nothing now; its user asks again.
    const refusal = status === 409 ? JSON.stringify(body) : "";
    if (refusal.includes("is being deleted") && this.#installation.cells.includes(wish.cell)) return;
    // Nothing is taken there until somebody has seen to its store.
    if (refusal.includes("orphans release")) return;
    if (status === 412 && wish.patch !== null) {
      this.#patchFailed(wish, wish.patch);
      return;
    }
    wish.answered = true;
    const why = status === 200 || status === 404 ? "" : JSON.stringify(body).slice(0, 300);
    this.#installation.kernel.log(`user.${wish.cell}`, "answered", { status, why });
    if (!isDone && !this.#askAgain(wish)) this.#restore(wish);
  }

  /** What it rests on is another by now, or what is kept of answers was lost: he sends all that he wants. */
  #patchFailed(wish: Wish, { sent }: { readonly sent: number }): void {
    const { kernel, controllers, losses } = this.#installation;
    const controller = controllers.get(wish.cell);
    const isThere = sameJson(controller?.state?.model.document ?? null, documentOf(wish.cell, wish.text ?? nothing));
    const isKnown = !losses.has(controller?.name ?? ("" as never));
    kernel.log(`user.${wish.cell}`, "patch-refused", { sent, twice: sent > 1 && isThere && isKnown });
    wish.patch = null;
    this.#submit(wish);
  }

  /** What was asked for before and never answered may have been taken, as a deletion: whoever is refused then asks for that again. */
  #askAgain({ cell }: Wish): boolean {
    const before = this.#givenUp.get(cell);
    this.#givenUp.delete(cell);
    if (before === undefined || before.serial <= (this.#lastAccepted.get(cell) ?? 0)) return false;
    this.wish(cell, before.text);
    return true;
  }

  /** A controller that has forgotten what it had accepted, and refuses what came after that, is told the former once more. */
  #restore({ cell, text }: Wish): void {
    const { controllers, losses } = this.#installation;
    const last = this.users.accepted.get(cell);
    const name = controllers.get(cell)?.name;
    if (last == null || last === text || name === undefined || !losses.has(name)) return;
    this.#serial += 1;
    const again: Wish = { cell, text: last, serial: this.#serial, answered: false, patch: null };
    this.users.wishes.set(cell, again);
    this.#submit(again);
  }

  #request({ cell, text, patch, serial }: Wish): Json {
    const label = labelOf(cell);
    const volumes = (this.users.submitted.get(cell) ?? []).flatMap(({ machines, copies = [], keeps = [] }) => [
      ...machines.flatMap(({ name }) => [`${label}/${name}Disk`, `${label}/${name}Data`]),
      ...copies.map(({ name }) => `${label}/${name}`),
      ...keeps.map(({ own }) => `${label}/${own}`),
    ]);
    const allowDestroy = [...new Set([`${label}/golden`, ...volumes])];
    if (text === null) return { method: "DELETE", path: "", allowDestroy };
    if (patch !== null) {
      patch.sent += 1;
      const once = { key: `wish ${serial}`, digest: String(serial) };
      const by = { who: `user of ${cell}`, door: "gateway" };
      return { method: "PATCH", path: "", patch: patch.json, allowDestroy, once, by };
    }
    const document = documentOf(cell, text);
    if (cell !== rootCell) return { method: "PUT", path: "", json: document, allowDestroy };
    const json = { root: { ...(document.root as JsonObject), ...this.#administration.elements() } };
    return { method: "PUT", path: "", json, allowDestroy };
  }
}

/** From one text to another: each part that becomes another one, on the condition that it is as it was. Null: nothing does. */
function patchOf(cell: string, from: CellText, to: CellText): readonly Json[] | null {
  const label = labelOf(cell);
  const [before, after] = [from, to].map((text) => documentOf(cell, text)[label] as JsonObject) as [
    JsonObject,
    JsonObject,
  ];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const all = [...names].flatMap((name): readonly Json[] => {
    const [old, now] = [before[name], after[name]];
    const path = `/${label}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (old === undefined) return [{ op: "add", path, value: now ?? null }];
    if (sameJson(old, now)) return [];
    const test: Json = { op: "test", path, value: old };
    return now === undefined ? [test, { op: "remove", path }] : [test, { op: "replace", path, value: now }];
  });
  return all.length === 0 ? null : all;
}
