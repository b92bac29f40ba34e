import { isEntranceVm } from "../../core/documents/service-roles.ts";
import type { DesiredInterface, DesiredVm } from "../../core/documents/vocabulary.ts";
import { isObject } from "../../core/outbox.ts";
import { type Ipv4, type PeerName, peerName } from "../../model/cell/identifiers.ts";

/**
 * The management network is where hosts and services find each other, and no rule of a cell is asked there (decision 31).
 * A controller that would put a VM of its own on it is refused here, whatever made it ask: nothing else stands in between.
 * The root cell's may have any there; the child that the root cell makes the way in, its gateway at the one address that
 * the authority says, and nothing else (decision 38).
 */
const rootController = peerName("controller.root");

/** Of each child cell that may have the operator's gateway, by its controller: where. */
export type Entrances = ReadonlyMap<PeerName, Ipv4>;

const isGateway = ({ data }: DesiredVm): boolean =>
  isObject(data) && isObject(data.roles) && isEntranceVm(Object.keys(data.roles));

const mayHave = (client: PeerName | undefined, vm: DesiredVm, link: DesiredInterface, entrances: Entrances): boolean =>
  link.management !== true ||
  client === rootController ||
  (client !== undefined && entrances.get(client) === link.address && isGateway(vm));

/** The interfaces of a VM of that controller that it may have here. */
export const admitted = (client: PeerName, vm: DesiredVm, entrances: Entrances): readonly DesiredInterface[] =>
  vm.interfaces.filter((link) => mayHave(client, vm, link, entrances));

/** Why a VM of that controller must not be run here, as a sentence; null: it may be. */
export function trespass(client: PeerName | undefined, vm: DesiredVm, entrances: Entrances): string | null {
  const link = vm.interfaces.find((each) => !mayHave(client, vm, each, entrances));
  if (link === undefined) return null;
  const own = client === undefined ? undefined : entrances.get(client);
  return own === undefined
    ? `its interface ${link.path} is on the management network, which hosts give to VMs of the root cell alone`
    : `its interface ${link.path} is on the management network, where this cell may have its gateway at ${own} alone`;
}
