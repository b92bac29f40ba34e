import type { Moved } from "../../../model/api.ts";
import { sentenceOf } from "../../../model/cause/sentence.ts";
import { elementPath, hostName } from "../../../model/cell/identifiers.ts";
import { whyNot } from "../../../model/contract/actions/actions.ts";
import { closestName } from "../../../model/diagnostics/closest-name.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { log } from "../../outbox.ts";
import { forkReason } from "../histories/fork.ts";
import { offersOf } from "../services/hosts.ts";
import { isOwnVm } from "../services/service-data.ts";
import { type ControllerState, elementOf, recordAt, saveVm } from "../state.ts";
import { actualVmOf } from "../vm/life-cycle.ts";

/** `cells move VM --to HOST`: the operator's word. What is said of a VM and a host here is data of a request, and may be anything. */
export interface MoveRequest {
  readonly method: "MOVE";
  readonly vm: string;
  readonly to: string;
  /** Nothing is changed. */
  readonly tentative: boolean;
}
interface Unanswered {
  readonly status: number;
  readonly message: string;
}
const refused = (status: number, message: string): Result<Moved, Unanswered> => fail({ status, message });

/** Durable with the step that takes it. Where the VM already is, an earlier word is taken back. */
export function move(state: ControllerState, { vm: path, to, tentative }: MoveRequest): Result<Moved, Unanswered> {
  const record = recordAt(state, elementPath(path));
  const element = record === undefined ? undefined : elementOf(state, record);
  if (record === undefined || element?.type !== "VM")
    return refused(404, `${path} is no VM of the cell ${state.options.cell}`);
  const offers = offersOf(state);
  const found = offers?.hosts.find((each) => each.host === to)?.host;
  const host = found === undefined ? undefined : hostName(found);
  if (host === undefined) {
    const names = (offers?.hosts ?? []).map((each) => each.host);
    const meant = closestName(to, names);
    const known = names.length === 0 ? "the Placer has named none yet" : `the hosts are ${names.join(", ")}`;
    return refused(404, `there is no host ${to}: ${meant === undefined ? known : `did you mean ${meant}?`}`);
  }
  const vm = state.vms.get(record.uid);
  const run = vm?.run ?? null;
  const power = run === null ? null : (actualVmOf(state, record.uid, run)?.power ?? null);
  const reason = sentenceOf(record.causes);
  const so = { path, phase: "working", reason, wanted: null, power, host: run?.host ?? null, isHostHeard: null };
  const against = whyNot("move", null, so);
  if (against !== null) return refused(409, against.why);
  if (vm === undefined || run?.host == null) throw new Error(`${path} runs at no host`);
  if (isOwnVm(state, record.uid))
    return refused(
      409,
      `the root controller runs in ${path} itself: another host starts it when its own is off, so switch ${run.host} off in order`,
    );
  const pin = element.placement.host;
  if (typeof pin === "string" && pin !== to)
    return refused(409, `x.placement.host of ${path} asks for ${pin}: change it, or leave it out`);
  const isThere = run.host === to;
  const answer: Moved = { vm: path, from: run.host, to: host, incarnation: run.incarnation, isThere };
  if (tentative) return ok(answer);
  const forked = forkReason(state);
  if (forked !== null) return refused(409, forked);
  const { move: before, ...rest } = vm;
  if (isThere) {
    if (before !== undefined) saveVm(state, rest);
    return ok(answer);
  }
  log(state.outbox, "vm/move-asked", { vm: record.uid, path, incarnation: run.incarnation, from: run.host, to });
  saveVm(state, { ...rest, move: { to: host, incarnation: run.incarnation } });
  return ok(answer);
}
