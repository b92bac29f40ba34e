import type { DesiredVm } from "../core/documents.ts";
import { type PeerName, peerName } from "../model/identifiers.ts";

/**
 * The management network is where hosts and services find each other, and no rule of a cell is asked there (decision 31).
 * A controller that would put a VM of its own on it is refused here, whatever made it ask: nothing else stands in between.
 */
const rootController = peerName("controller.root");

export const mayManage = (client: PeerName | undefined): boolean => client === rootController;

/** Why a VM of that controller must not be run here, as a sentence; null: it may be. */
export function trespass(client: PeerName | undefined, { interfaces }: DesiredVm): string | null {
  if (mayManage(client)) return null;
  const path = interfaces.find(({ management }) => management === true)?.path;
  return path === undefined
    ? null
    : `its interface ${path} is on the management network, which hosts give to VMs of the root cell alone`;
}
