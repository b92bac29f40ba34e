import type { NetworkViewState } from "../../../core/eucalyptus/state.ts";
import { formatIpv4 } from "../../../model/addresses/addresses.ts";
import { type HostName, peerName } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/**
 * Of a cell on a mode of Eucalyptus: an address is one instance's at whatever hosts it is in place, so that none has it before its last
 * host has given it up or has lost its power. At rest each machine has its own in place where it runs, and none belongs to an
 * instance that is gone, or to nobody: it would be lost for good.
 */
export const addressesOfModes: Invariant = {
  number: 81,
  title: "in a mode no address has two owners, and none is lost",
  watch: ({ truth, installation }, verdict) => {
    truth.watchers.push({
      addressPlaced: (host, address, instance) => {
        for (const [other, { mode }] of truth.dataplanes) {
          const owner = mode.addresses.get(address);
          if (owner !== undefined)
            verdict.check(
              owner === instance,
              () => `${address} is in place for ${instance} at ${host}, and for ${owner} at ${other}`,
            );
        }
      },
    });
    const isInPlace = (host: HostName, address: string, instance: string): boolean =>
      truth.dataplane(host).mode.addresses.get(address) === instance;
    return () => {
      const owners = new Map<string, string>();
      for (const { vm, host, interfaces } of truth.machines)
        for (const { address, instance } of interfaces) {
          if (instance === undefined) continue;
          verdict.check(
            isInPlace(host, address, instance),
            () => `${vm} runs at ${host}, where ${address} is not in place`,
          );
          verdict.check(!owners.has(address), () => `${address} is ${vm}'s and ${owners.get(address)}'s`);
          owners.set(address, vm);
        }
      const manager = installation.processes.get(peerName("network-view-manager"))?.state as
        | NetworkViewState
        | undefined;
      const wanted = new Set(
        [...installation.controllers.values()].flatMap(({ state }) => [...(state?.vms.keys() ?? [])]),
      );
      for (const { address, instance } of manager?.book.addresses.values() ?? []) {
        const element = [...(manager?.wanted.keys() ?? [])].find(
          (uid) => (manager?.outbox.records.get(`id/${uid}`) as { readonly id?: string } | undefined)?.id === instance,
        );
        const isSomebodys = instance !== null && element !== undefined && wanted.has(element);
        verdict.check(isSomebodys, () => `${formatIpv4(address)} is ${instance ?? "nobody"}'s, which no cell has`);
      }
    };
  },
};
