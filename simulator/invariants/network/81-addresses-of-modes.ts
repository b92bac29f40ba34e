import { saidOf } from "../../../core/controller/state.ts";
import type { NetworkViewState } from "../../../core/eucalyptus/state.ts";
import { isObject } from "../../../core/outbox.ts";
import { formatIpv4 } from "../../../model/addresses/addresses.ts";
import { type HostName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { isLearnt } from "../../../model/cell/network/modes.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Installation } from "../../world/installation.ts";
import { ofTheSite } from "../../world/modes/agent.ts";
import type { ModeTruth } from "../../world/truth.ts";
import type { Invariant } from "../invariant.ts";

const manager = peerName("network-view-manager");

/**
 * Of a cell on a mode of Eucalyptus: an address is one instance's at whatever hosts it is in place, so that none has it before its last
 * host has given it up or has lost its power. At rest each machine has its own in place where it runs, and the elastic one that its cell says
 * it has there and nowhere else; none belongs to an instance that is gone, or to nobody, and none is leased for one: it would be lost for good.
 */
/** As the Network View Manager says it to its cell; undefined: it has none. */
function elasticOf(installation: Installation, vm: Uid): string | undefined {
  const { elastic = null } = saidToCell(installation, vm);
  const address = isObject(elastic) ? elastic.address : null;
  return typeof address === "string" ? address : undefined;
}
/** What the Network View Manager says to its cell of a machine. */
function saidToCell({ controllers }: Installation, vm: Uid): { readonly [field: string]: Json } {
  const state = [...controllers.values()].find((each) => each.state?.vms.has(vm) === true)?.state;
  const said = state == null ? null : (saidOf(state, manager, `instance/${vm}`) ?? null);
  return isObject(said) ? said : {};
}
/** The address of which the cell knows. */
const shownOf = (installation: Installation, vm: Uid): Json => saidToCell(installation, vm).address ?? null;

export const addressesOfModes: Invariant = {
  number: 81,
  title: "in a mode no address has two owners, and none is lost",
  watch: ({ kernel, truth, installation }, verdict) => {
    const last = new Map<string, { readonly instance: string; readonly host: HostName; readonly mode: ModeTruth }>();
    /** By host, what it has in place, or had when its power went. */
    const lived = new Map<string, ModeTruth | undefined>();
    kernel.watchers.push({
      stepped: (who) => {
        if (who.startsWith("host.")) lived.set(who, truth.dataplanes.get(who.slice("host.".length) as HostName)?.mode);
      },
    });
    /** It has lost its power with the address in place, and has not been back: it cannot have said that it is gone. */
    const isLostWith = (address: string, instance: string, host: HostName, mode: ModeTruth): boolean =>
      !kernel.network.isUp(host) && mode.addresses.get(address) === instance && lived.get(`host.${host}`) === mode;
    truth.watchers.push({
      addressPlaced: (host, address, instance) => {
        const before = last.get(address);
        if (
          before !== undefined &&
          before.instance !== instance &&
          isLostWith(address, before.instance, before.host, before.mode)
        )
          kernel.log("invariant", "reused-after-a-fence", { address, from: before.host, at: host });
        last.set(address, { instance, host, mode: truth.dataplane(host).mode });
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
      const [carrier] = [...truth.dataplanes].flatMap(([at, { mode }]) => (mode.carries === null ? [] : [at]));
      const owners = new Map<string, string>();
      for (const { vm, host, interfaces } of truth.machines)
        for (const { address, instance } of interfaces) {
          if (instance === undefined) continue;
          const { view } = truth.dataplane(host).mode;
          if (view !== null && isLearnt(view.mode)) {
            const shown = shownOf(installation, vm);
            verdict.check(
              view.instances.some(({ id }) => id === instance) && shown === ofTheSite(instance),
              () => `${vm} runs at ${host} with ${ofTheSite(instance)} of the site, and its cell says ${shown}`,
            );
            continue;
          }
          verdict.check(
            isInPlace(host, address, instance),
            () => `${vm} runs at ${host}, where ${address} is not in place`,
          );
          verdict.check(!owners.has(address), () => `${address} is ${vm}'s and ${owners.get(address)}'s`);
          owners.set(address, vm);
          const elastic = elasticOf(installation, vm);
          if (elastic === undefined) continue;
          const places = [...truth.dataplanes].flatMap(([at, { mode }]) => (mode.addresses.has(elastic) ? [at] : []));
          verdict.check(
            isInPlace(carrier ?? host, elastic, instance) && places.length === 1,
            () => `${vm} has ${elastic} at ${carrier ?? host}, and it is in place at ${places.join(", ") || "no host"}`,
          );
          verdict.check(!owners.has(elastic), () => `${elastic} is ${vm}'s and ${owners.get(elastic)}'s`);
          owners.set(elastic, vm);
        }
      const known = installation.processes.get(manager)?.state as NetworkViewState | undefined;
      const wanted = new Set(
        [...installation.controllers.values()].flatMap(({ state }) => [...(state?.vms.keys() ?? [])]),
      );
      const held = [...(known?.book.addresses.values() ?? []), ...(known?.book.elastic.values() ?? [])];
      for (const { address, instance = null } of held) {
        const element = [...(known?.wanted.keys() ?? [])].find(
          (uid) => (known?.outbox.records.get(`id/${uid}`) as { readonly id?: string } | undefined)?.id === instance,
        );
        const isSomebodys = instance !== null && element !== undefined && wanted.has(element);
        verdict.check(isSomebodys, () => `${formatIpv4(address)} is ${instance ?? "nobody"}'s, which no cell has`);
      }
    };
  },
};
