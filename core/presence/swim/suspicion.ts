import type { SwimConfig } from "./configuration.ts";

/**
 * How long a suspicion lasts (Lifeguard, "Local Health Aware Suspicion"): long while one host alone says so, who may be the
 * sick one itself, and shorter with every other host that comes to the same result on its own. The numbers are in
 * `configuration.ts`.
 */
const scale = (members: number): number => Math.max(1, Math.log10(Math.max(1, members)));

/** Hosts beside the first that can confirm at all: neither the suspect nor the first. */
export const confirmationsNeeded = (config: SwimConfig, members: number): number =>
  Math.max(0, Math.min(config.confirmations, members - 2));

/**
 * @param members alive or suspected, the suspect among them
 * @param confirmations hosts beside the first that suspect
 * @returns milliseconds from the suspicion's start
 */
export const suspicionMs = (config: SwimConfig, members: number, confirmations: number): number => {
  const shortest = config.suspicionFactor * scale(members) * config.probeEveryMs;
  const needed = confirmationsNeeded(config, members);
  if (confirmations >= needed) return shortest;
  const longest = shortest * config.suspicionMaxFactor;
  return longest - (Math.log(confirmations + 1) / Math.log(needed + 1)) * (longest - shortest);
};

/** How often an update is passed on: λ log n. */
export const retransmits = (config: SwimConfig, members: number): number =>
  Math.max(1, Math.ceil(config.retransmitFactor * Math.log10(members + 1)));
