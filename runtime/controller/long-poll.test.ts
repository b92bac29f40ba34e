import assert from "node:assert/strict";
import { test } from "node:test";
import type { ControllerResponse } from "../../core/controller/requests/requests.ts";
import type { CellEvent } from "../../model/api.ts";
import { longPoll } from "./long-poll.ts";

/** What can be looked at, and who wants to know of events. */
class World {
  phase: string | null = "working";
  looks = 0;
  readonly #listeners = new Set<(event: CellEvent) => void>();
  /** Happens while an answer is on its way. */
  meanwhile: (() => void) | null = null;
  readonly look = async (): Promise<ControllerResponse> => {
    this.looks += 1;
    const { phase } = this;
    this.meanwhile?.();
    await Promise.resolve();
    const status = phase === null ? 404 : 200;
    return { status, body: { $state: { phase } }, version: 3 } as ControllerResponse;
  };
  readonly subscribe = (listener: (event: CellEvent) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  to(phase: string | null): void {
    this.phase = phase;
    for (const listener of this.#listeners) listener({} as CellEvent);
  }
  get listeners(): number {
    return this.#listeners.size;
  }
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("an answer comes when it is so, looked at once for each time that something happened", async () => {
  for (const end of ["ready", "failed", null]) {
    const world = new World();
    const answer = longPoll("ready", world.look, world.subscribe, new AbortController().signal);
    await turn();
    assert.equal(world.looks, 1);
    world.to("working");
    await turn();
    assert.equal(world.looks, 2);
    world.to(end);
    assert.equal((await answer)?.status, end === null ? 404 : 200);
    assert.deepEqual([world.looks, world.listeners], [3, 0]);
  }
});

test("what is there is waited for until it is gone, and what happens during a look is not missed", async () => {
  const world = new World();
  world.meanwhile = () => {
    world.meanwhile = null;
    world.to(null);
  };
  const answer = await longPoll("gone", world.look, world.subscribe, new AbortController().signal);
  assert.deepEqual([answer?.status, world.looks], [404, 2]);
});

test("who goes away is not waited for, and only so many wait", async () => {
  const world = new World();
  const leave = new AbortController();
  const waiting = Array.from({ length: 256 }, () => longPoll("gone", world.look, world.subscribe, leave.signal));
  await turn();
  assert.equal(await longPoll("gone", world.look, world.subscribe, leave.signal), null);
  leave.abort();
  for (const answer of await Promise.all(waiting)) assert.equal(answer?.status, 200);
  assert.equal(world.listeners, 0);
  world.to(null);
  const after = await longPoll("gone", world.look, world.subscribe, new AbortController().signal);
  assert.equal(after?.status, 404, "there is room again");
});
