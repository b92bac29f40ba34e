import type { PeerName } from "../../model/cell/identifiers.ts";
import type { ExecTarget } from "../host-requests.ts";
import type { HostState } from "../known.ts";

/** `vm` is a UID or a path. A controller reaches into its own cell's VMs only, under the incarnation it means. */
export const execTarget = (
  { records }: HostState,
  client: PeerName,
  vm: string,
  incarnation: number | null,
): ExecTarget => {
  const record = [...records.values()].find((candidate) => candidate.vm.uid === vm || candidate.vm.path === vm);
  if (record === undefined || record.client !== client || record.stage === "ended")
    return { refused: `no VM "${vm}" of this cell runs on this host` };
  if (record.stage === "starting") return { refused: `"${vm}" is still being started; try again in a moment` };
  if (incarnation !== null && incarnation !== record.vm.incarnation)
    return { refused: `incarnation ${record.vm.incarnation} of "${vm}" runs here, not ${incarnation}` };
  const [first] = record.vm.interfaces;
  return { vm: record.vm.uid, ...(first === undefined ? {} : { address: first.address }) };
};
