import assert from "node:assert/strict";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { presenceKey } from "../../documents/presence.ts";
import type { Input } from "../../env.ts";
import { createPresence, type HostPresence } from "./group.ts";

export const members = [1, 2, 3].map((number) => peerName(`presence.${number}`));
export const [self = peerName(""), second = peerName(""), third = peerName("")] = members;
export const peer = (number: number): PeerName => peerName(`host.h${number}`);
export const life = (number: number, incarnation = 0, generation = 1) => ({
  host: `h${number}`,
  generation,
  incarnation,
});

/** The first member, which hears hosts h1 to h<count>, all alive but those that it never heard of. */
export const member = (
  count: number,
  records = new Map<string, Json>(),
  unheard: readonly number[] = [],
  group: readonly PeerName[] = members,
) => {
  const hosts = Array.from({ length: count }, (_, index) => peer(index + 1));
  const service = createPresence({ self, members: group, hosts });
  const answering = new Set<number>();
  let answers = true;
  let state = service.restore({ records: new Map(records), desiredAt: new Map() });
  const published = new Map<string, Json>();
  const subscribed: string[] = [];
  const input = (what: Input) => {
    const step = service.step(state, what, { ms: 0, wallMs: 1234 });
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "write" && effect.value !== null) records.set(effect.key, effect.value);
      else if (effect.kind === "write") records.delete(effect.key);
      else if (effect.kind === "publish" && effect.value !== null) published.set(effect.key, effect.value);
      else if (effect.kind === "publish") published.delete(effect.key);
      else if (effect.kind === "subscribe") subscribed.push(`${effect.to} ${effect.prefix}`);
    }
    const call = step.effects.find((effect) => effect.kind === "publish" && effect.key === presenceKey.call);
    if (call !== undefined && answers) for (const number of answering) answer(number);
    return step.effects;
  };
  /** As a host does that hears the latest call. */
  const answer = (number: number): void => {
    const call = published.get(presenceKey.call);
    if (call !== undefined) say(peer(number), presenceKey.answer(self), call);
  };
  /** Hosts answer of themselves, or when they are told to. */
  const answerBy = (themselves: boolean): void => {
    answers = themselves;
  };
  const say = (from: PeerName, key: string, value: Json) => input({ kind: "actual", from, key, value });
  const hear = (number: number, reachable: boolean): void => {
    input({ kind: "reachable", peer: peer(number), reachable });
    if (!reachable) answering.delete(number);
    else answering.add(number);
    if (reachable && answers) answer(number);
  };
  const hearMember = (of: PeerName, reachable: boolean) => input({ kind: "reachable", peer: of, reachable });
  const report = (by: number, of: number, incarnation = 0, generation = 1) =>
    say(peer(by), presenceKey.report(`h${of}`), life(of, incarnation, generation));
  const refute = (of: number, incarnation: number) =>
    say(peer(of), presenceKey.self, { ...life(of, incarnation), answers: true });
  const vote = (of: PeerName, about: number, incarnation = 0, generation = 1) =>
    say(of, presenceKey.vote(`h${about}`), life(about, incarnation, generation));
  input({ kind: "start" });
  for (let number = 1; number <= count; number += 1) {
    if (unheard.includes(number)) continue;
    say(peer(number), presenceKey.self, { ...life(number), answers: true });
    hear(number, true);
  }
  for (const other of group.filter((each) => each !== self)) hearMember(other, true);
  const status = (): readonly HostPresence[] => {
    const [reply] = input({ kind: "request", id: 1, request: { kind: "hosts" } });
    assert.equal(reply?.kind, "reply");
    return (reply.response as unknown as { hosts: readonly HostPresence[] }).hosts;
  };
  const voted = (of: number): boolean => published.has(presenceKey.vote(`h${of}`));
  const dead = (of: number): boolean => published.has(presenceKey.death(`h${of}`));
  return {
    input,
    say,
    hear,
    hearMember,
    answer,
    answerBy,
    report,
    refute,
    vote,
    voted,
    dead,
    status,
    published,
    records,
    subscribed,
    service,
    state,
  };
};
