import { isoTime } from "../../../model/cell/iso-time.ts";
import {
  type ElementFilter,
  type ElementPage,
  type ListedElement,
  usualPage,
} from "../../../model/contract/tenancy/listed-element.ts";
import { cursorIn, cursorOf } from "../../../model/contract/tenancy/pages.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { told } from "../changes/standing.ts";
import type { ElementRecord } from "../records.ts";
import type { ControllerState } from "../state.ts";
import { isWithin, type Within } from "./credentials/within.ts";

/**
 * Elements of the cell in pages. They are in the order of the numbers of their UIDs, which only grow and which nothing changes, not a new
 * name either: what is there all the while is in one page and in one alone.
 */
export interface ElementsRequest extends ElementFilter {
  readonly method: "ELEMENTS";
  readonly limit?: number;
  readonly after?: string;
  /** Of this part of the cell alone. */
  readonly within?: Within;
}

const list = "listElements";

/** The error is a sentence. */
export function elementsPage(
  state: ControllerState,
  { type, uid, phase, name, limit = usualPage, after, within }: Omit<ElementsRequest, "method">,
): Result<ElementPage, string> {
  const from = after === undefined ? 0 : numberAfter(state, after);
  if (from === null)
    return fail("after in the query: it is no cursor that this list has given; without it the list begins anew");
  const found: { readonly number: number; readonly record: ElementRecord }[] = [];
  for (const record of state.elements.values()) {
    if (within !== undefined && !isWithin(within, record.path)) continue;
    if (type !== undefined && record.type !== type) continue;
    if (uid !== undefined && record.uid !== uid) continue;
    if (phase !== undefined && phaseOf(record) !== phase) continue;
    if (name !== undefined && nameOf(record) !== name) continue;
    const number = numberOf(record.uid);
    if (number > from) found.push({ number, record });
  }
  found.sort((one, other) => one.number - other.number);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const isMore = last !== undefined && found.length > page.length;
  return ok({
    items: page.map(({ record }) => listed(state, record)),
    next: isMore ? cursorOf(list, last.record.uid) : null,
  });
}

const phaseOf = ({ phase }: ElementRecord): ListedElement["phase"] => phase ?? "waiting";
const nameOf = ({ path }: ElementRecord): string => path.slice(path.lastIndexOf("/") + 1);
/** A UID is the cell's, and behind it a number. */
const numberOf = (uid: string): number => Number(uid.slice(uid.lastIndexOf("-") + 1));
/** Behind which number the next page begins. Null: it is no cursor. A cell that was made anew under the name of another begins anew. */
function numberAfter({ options }: ControllerState, cursor: string): number | null {
  const uid = cursorIn(list, cursor);
  if (uid === null) return null;
  return uid.startsWith(`${options.cellUid}-`) ? numberOf(uid) : 0;
}

function listed({ options }: ControllerState, record: ElementRecord): ListedElement {
  const { path, type, uid, causes, since } = record;
  const { reason } = told(causes);
  return {
    cell: options.cell,
    path,
    type,
    uid,
    name: nameOf(record),
    phase: phaseOf(record),
    reason,
    since: isoTime(since),
  };
}
