import type { ForcedStop } from "../../../model/api.ts";
import { elementPath, hostPeer } from "../../../model/cell/identifiers.ts";
import { whyNot } from "../../../model/contract/actions/actions.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { forkReason } from "../histories/fork.ts";
import { isOwnVm } from "../services/service-data.ts";
import { type ControllerState, elementOf, recordAt, saveVm } from "../state.ts";
import { wantedOn } from "../vm/life-cycle.ts";

/** `cells stop VM --force`: the operator's word. What is said of a VM here is data of a request, and may be anything. */
export interface ForceStopRequest {
  readonly method: "FORCE-STOP";
  readonly vm: string;
  /** Nothing is changed. */
  readonly tentative: boolean;
}
interface Unanswered {
  readonly status: number;
  readonly message: string;
}
const refused = (status: number, message: string): Result<ForcedStop, Unanswered> => fail({ status, message });

/**
 * A VM that is being stopped is freed of a host that cannot say whether it has ended. It is no fence: what it writes ends at its storage
 * servers, as always before its volumes are given to anybody; what it does in memory and on the network nobody has looked at.
 */
export function forceStop(
  state: ControllerState,
  { vm: path, tentative }: ForceStopRequest,
): Result<ForcedStop, Unanswered> {
  const record = recordAt(state, elementPath(path));
  const element = record === undefined ? undefined : elementOf(state, record);
  if (record === undefined || element?.type !== "VM")
    return refused(404, `${path} is no VM of the cell ${state.options.cell}`);
  if (isOwnVm(state, record.uid))
    return refused(409, `the root controller runs in ${path} itself, and hosts start it: it is not stopped by hand`);
  const vm = state.vms.get(record.uid);
  const run = vm?.run ?? null;
  const host = run?.handedOver === true ? run.host : null;
  const isHostHeard = host !== null && state.reachable.get(hostPeer(host)) === true && run?.unsure === undefined;
  const so = { path, phase: "working", reason: null, wanted: null, power: null, host, isHostHeard };
  const against = whyNot("forceStop", null, so);
  if (against !== null) return refused(409, against.why);
  if (vm === undefined || run === null || host === null) throw new Error(`${path} has no run to be freed of its host`);
  const { incarnation } = run;
  const answer: ForcedStop = {
    vm: path,
    host,
    incarnation,
    unchecked: [
      `nobody has seen that incarnation ${incarnation} has ended: at ${host} it may run on, in memory and on the network, until ${host} is heard again`,
      "whoever it is connected to may go on talking to it",
    ],
    checked: ["its volumes are given to nobody before their storage servers have ended its writing"],
  };
  if (tentative) return ok(answer);
  if (wantedOn(state, record.uid) !== null)
    return refused(409, `${path} is to run: switch it off first, as \`cells stop ${path} --force\` does`);
  const forked = forkReason(state);
  if (forked !== null) return refused(409, forked);
  log(state.outbox, "vm/forced", { vm: record.uid, path, incarnation, host });
  saveVm(state, { ...vm, run: { ...run, forced: true } });
  return ok(answer);
}
