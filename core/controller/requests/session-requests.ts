import { sentenceOf } from "../../../model/cause/sentence.ts";
import { elementPath, type HostName, type Uid } from "../../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { rootCell } from "../../documents/cells.ts";
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
}

/** What is asked of a VM beyond something to run in it. */
export interface Wanted {
  /** A port of it. */
  readonly forwards?: boolean;
  /** Its screen. */
  readonly displays?: boolean;
}
/** Where a command or a session for a VM must go: only to an incarnation that runs. */
export function execTarget(
  state: ControllerState,
  path: string,
  { forwards = false, displays = false }: Wanted = {},
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
  if (run?.host == null || power !== "on") {
    return fail({ status: 409, message: `${record.path} does not run: ${sentenceOf(record.causes) ?? "it is off"}` });
  }
  return ok({ path: record.path, host: run.host, uid: record.uid, incarnation: run.incarnation });
}
