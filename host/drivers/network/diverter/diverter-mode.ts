import type { GlobalNetwork, LocalNetwork, NetworkAllocation, NetworkDriver } from "../driver.ts";
import { type Call, calls, type ModeDriver } from "../service/mode-driver.ts";

/** Diverter as one mode among others, under the loop that drives them all. */
export interface DiverterMode {
  readonly driver: ModeDriver<GlobalNetwork, LocalNetwork, unknown>;
  /** What the last call that worked has achieved. */
  readonly allocation: () => NetworkAllocation;
}
/**
 * @param network set up already: an uplink is no part of a view
 *
 * Addresses are asked for in each pass, since what they answer is what was achieved, and never before the rules are there: a packet must
 * find its rules when it can first be delivered.
 */
export function diverterMode(network: NetworkDriver): DiverterMode {
  let allocation: NetworkAllocation = { interfaces: [], policies: [] };
  const failed = new Map<Call, unknown>();
  const step = async (call: Call, work: () => Promise<void>): Promise<void> => {
    for (const [before, why] of failed) if (calls[before] < calls[call]) throw why;
    try {
      await work();
      failed.delete(call);
    } catch (error) {
      failed.set(call, error);
      throw error;
    }
  };
  return {
    driver: {
      init: async () => [],
      upgrade: async () => {},
      read: () => network.inspect(),
      scrub(global, local) {
        const changes = network.scrub(global, local);
        const isDue = (call: Call): number => (changes[call] ? calls[call] : 0);
        return isDue("network") | isDue("securityGroup") | calls.addressing;
      },
      flush: () => network.flush(),
      network: (global) => step("network", () => network.implementNetwork(global)),
      securityGroup: (global) => step("securityGroup", () => network.implementSecurityGroup(global)),
      addressing: (global) =>
        step("addressing", async () => {
          allocation = await network.implementAddressing(global);
        }),
      cleanup: () => network.cleanup(),
    },
    allocation: () => allocation,
  };
}
