import { sentenceOf } from "../../../model/cause/sentence.ts";
import { elementPath, type HostName, type Uid } from "../../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { rootCell } from "../../documents/cells.ts";
import type { ElementRecord } from "../records.ts";
import { type ControllerState, recordAt } from "../state.ts";
import { actualVmOf } from "../vm/life-cycle.ts";

/** A refusal of what people ask about elements, with its status of HTTP. */
export interface Unanswered {
  readonly status: number;
  readonly message: string;
}

const normal = (path: string): string => path.split("/").filter(Boolean).join("/");

/** A path as people write it: from the document, or from inside the cell. */
export const prefixesOf = (state: ControllerState, path: string): readonly string[] => [
  normal(path),
  ...(state.cell === null ? [] : [`${state.cell.path}/${normal(path)}`]),
];
export function recordOf(state: ControllerState, path: string): ReturnType<typeof recordAt> {
  for (const written of prefixesOf(state, path)) {
    const record = recordAt(state, elementPath(written));
    if (record !== undefined) return record;
  }
  return undefined;
}
/** What has left the model there, and is not gone. */
export function leavingAt(state: ControllerState, path: string): ReturnType<typeof recordAt> {
  for (const uid of state.indexes.deleting.keys()) {
    const record = state.elements.get(uid);
    if (record?.path === normal(path)) return record;
  }
  return undefined;
}

/** Why no port of this cell's VMs is reached; null: whoever may reaches it. */
function noForward({ options: { cell }, cell: model }: ControllerState): string | null {
  if (cell === rootCell) return "the cloud itself runs in the root cell, and nothing is forwarded to its services";
  if (model?.forward === true) return null;
  return `the cell ${cell} lets nobody forward to its VMs: \`x.policy.forward true\` in it does`;
}

export interface ExecTarget {
  readonly path: string;
  readonly host: HostName;
  readonly uid: Uid;
  readonly incarnation: number;
  /** It is not the one that runs there now. */
  readonly former?: true;
}

/** What is asked of a VM beyond something to run in it. */
export interface Wanted {
  /** A port of it. */
  readonly forwards?: boolean;
  /** Its screen. */
  readonly displays?: boolean;
  /** What this one has said, which may have ended; absent: the one that runs is meant. */
  readonly incarnation?: number;
}
/** Where a command or a session for a VM must go: to an incarnation that runs, or for what one has said to where it ran. */
export function execTarget(
  state: ControllerState,
  path: string,
  { forwards = false, displays = false, incarnation }: Wanted = {},
): Result<ExecTarget, Unanswered> {
  const no = forwards ? noForward(state) : null;
  if (no !== null) return fail({ status: 403, message: no });
  const record = recordOf(state, path);
  if (record?.type !== "VM") {
    return fail({ status: 404, message: `${path} is no VM of the cell ${state.options.cell}` });
  }
  const element = state.cell?.elements.get(record.path);
  if (displays && element?.type === "VM" && element.display === undefined)
    return fail({
      status: 409,
      message: `${record.path} has no display: \`x.display "vga"\` in it gives it one, with which it is started again; \`cells console\` reaches its serial port`,
    });
  const run = state.vms.get(record.uid)?.run ?? null;
  const power = run === null ? "off" : actualVmOf(state, record.uid, run)?.power;
  if (incarnation !== undefined && (run?.incarnation !== incarnation || power !== "on"))
    return formerTarget(state, record, incarnation);
  if (run?.host == null || power !== "on") {
    return fail({ status: 409, message: `${record.path} does not run: ${sentenceOf(record.causes) ?? "it is off"}` });
  }
  return ok({ path: record.path, host: run.host, uid: record.uid, incarnation: run.incarnation });
}

/** Of an incarnation that does not run any more: the host where it did. */
function formerTarget(
  state: ControllerState,
  { uid, path }: Pick<ElementRecord, "uid" | "path">,
  incarnation: number,
): Result<ExecTarget, Unanswered> {
  const vm = state.vms.get(uid);
  const ran = vm?.ran?.find((each) => each.incarnation === incarnation);
  if (ran !== undefined) return ok({ path, host: ran.host, uid, incarnation, former: true });
  const newest = vm?.run?.incarnation ?? vm?.incarnation ?? 0;
  const message =
    incarnation > newest
      ? `${path} has had no incarnation ${incarnation} yet: ${newest === 0 ? "it has not started" : `the newest is ${newest}`}`
      : `where incarnation ${incarnation} of ${path} ran is not known any more; \`cells events\` tells its stages, and where it was`;
  return fail({ status: 404, message });
}
