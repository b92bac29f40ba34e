import type { HostName } from "../../../model/cell/identifiers.ts";
import type { SwimState, Update, Witnesses } from "./types.ts";

/*
 * Whose word about the end of a life counts. Datagrams carry one key that every host has, so that anybody who has taken one
 * host can say anything in anybody's name. A death in one of them, or in a broadcast, is a hint: this host then compares its
 * view with those of others over the reliable channel, where each shows its own certificate. Two of these that say the same
 * are believed; the Presence group is at once. One host alone, whatever it sends, ends no life.
 */

export const createWitnesses = (): Witnesses => ({ said: new Map(), rumours: new Map() });

const needed = 2;
const mostOfOne = 16;
const mostRumours = 256;
/** By then the group's own word has arrived where it can. */
const rumourRipeMs = 3000;
const rumourOverMs = 60_000;

/** Takes what one host says over the reliable channel. @returns whether enough hosts say it by now */
export const isWitnessed = (state: SwimState, by: HostName, { host, generation }: Update): boolean => {
  const { said } = state.witnesses;
  const words = said.get(host) ?? new Map<HostName, number>();
  said.set(host, words);
  if (words.size < mostOfOne || words.has(by)) words.set(by, generation);
  let count = 0;
  for (const life of words.values()) if (life >= generation) count += 1;
  // It costs this host no more than a new life, or is of one that it never knew; there may be only one other to say so.
  const isCheap = host === state.self.host || !state.members.has(host);
  const enough = isCheap ? Math.max(1, Math.min(needed, state.live - 1)) : needed;
  if (count < enough) return false;
  said.delete(host);
  return true;
};

export const noteRumour = (state: SwimState, host: HostName, now: number): void => {
  const { rumours } = state.witnesses;
  if (rumours.size < mostRumours && !rumours.has(host)) rumours.set(host, now);
};
export const settleRumour = ({ witnesses }: SwimState, host: HostName): void => {
  witnesses.rumours.delete(host);
  witnesses.said.delete(host);
};
/** Whether a hint waits to be looked into. */
export const isRipe = ({ witnesses }: SwimState, now: number): boolean => {
  for (const [host, since] of witnesses.rumours) {
    if (now - since > rumourOverMs) witnesses.rumours.delete(host);
    else if (now - since >= rumourRipeMs) return true;
  }
  return false;
};
