import assert from "node:assert/strict";
import { test } from "node:test";
import { takeDeclared } from "../../core/documents/declaration.ts";
import type { Effect } from "../../core/env.ts";
import { hostName, peerName } from "../../model/cell/identifiers.ts";
import { endLife } from "./own-life.ts";
import { handlePresence, restorePresence } from "./presence-state.ts";

const own = hostName("h1");
const members = [1, 2, 3].map((number) => peerName(`presence.${number}`));

/** A host in its first life that follows a group of three, with a participant that begins the next life when it is told to. */
function living() {
  const state = restorePresence(new Map());
  const effects: Effect[] = [];
  const ended: number[] = [];
  handlePresence(state, { kind: "presence-follow", members }, effects);
  handlePresence(state, { kind: "presence-enter", above: 0 }, effects);
  const look = (ms: number): void => {
    const onDeath = (_host: unknown, life: number): void => {
      ended.push(life);
      handlePresence(state, { kind: "presence-enter", above: life }, effects);
    };
    endLife(state, own, ms, onDeath, effects);
  };
  const say = (ms: number, member: number, generation: number): void => {
    const from = peerName(`presence.${member}`);
    takeDeclared(state.declared, state.members, from, `dead/${own}`, { host: own, generation });
    look(ms);
  };
  const timers = () => effects.flatMap((effect) => (effect.kind === "timer" ? [effect.afterMs] : []));
  return { state, say, look, ended, timers };
}

test("a host whose life one member holds for over begins the next one, and no other for what is said of it later", () => {
  const { state, say, ended } = living();
  say(0, 3, 1);
  assert.deepEqual([ended, state.generation], [[1], 2]);
  say(10, 1, 1);
  say(20, 2, 1);
  assert.deepEqual([ended, state.generation], [[1], 2]);
});

test("a member that goes on lying has a life begun once a minute, and none by a number that no life has", () => {
  const { state, say, ended, timers } = living();
  say(0, 1, 2 ** 47);
  assert.deepEqual(ended, []);
  const other = living();
  for (let ms = 0; ms < 60_000; ms += 1000) other.say(ms, 2, other.state.generation);
  assert.deepEqual(other.ended, [1]);
  assert.equal(other.timers().at(-1), 1000);
  other.look(60_000);
  assert.deepEqual(other.ended, [1, 2]);
  assert.deepEqual([state.generation, timers()], [1, []]);
});

test("one member's word ends the present life and none that is to come, a majority's all that it names", () => {
  const { state, say, ended } = living();
  for (let minute = 0; minute < 5; minute += 1) say(minute * 60_000, 3, state.generation + 1024);
  assert.deepEqual([ended, state.generation], [[1, 2, 3, 4, 5], 6]);
  say(300_000, 1, 100);
  assert.deepEqual([ended.at(-1), state.generation], [100, 101]);
});

test("who is no member of the group says nothing about it", () => {
  const { say, ended } = living();
  say(0, 4, 1);
  assert.deepEqual(ended, []);
});
