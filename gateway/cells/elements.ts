import type { FastifyInstance } from "fastify";
import { list } from "../../model/contract/schema.ts";
import { type ListedElement, usualPage } from "../../model/contract/tenancy/listed-element.ts";
import { cursorIn, cursorOf, nextHeader } from "../../model/contract/tenancy/pages.ts";
import type { CellOwner } from "../../model/contract/tenancy/tenancy.ts";
import { listedElement } from "../../model/contract/values.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { controllerOf } from "../requests/cell-names.ts";
import type { Way } from "../requests/forward.ts";
import { answerAs } from "../requests/peer-answer.ts";
import { RefusedError, refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";

/*
 * Elements of all cells that somebody may see. The cells are gone through by their names, each controller lists its own, and says by the
 * credential what it says at all; a cursor names a cell and where to go on in it, so that no cell is asked for what is in the pages before.
 */
const patienceMs = 10_000;
/** Cells that are asked at a time. */
const mostAtOnce = 32;
/** Of a header, in names. */
const mostMissing = 50;
const whole = "listAllElements";

export interface ElementSources {
  /** Of a session, with whose they are; of the operator, where he asks for an account. */
  owners(authorization: string): Promise<readonly CellOwner[]>;
  names(authorization: string): Promise<readonly string[]>;
  isOfSession(authorization: string): boolean;
  /** Of a cell's own credential: which. */
  cellOf(authorization: string): string | null;
}
interface Found {
  readonly items: readonly ListedElement[];
  readonly isMore: boolean;
}
/** What the pages are put together of: cells in order, and where in the first of them to go on. */
export interface Walk {
  readonly cells: readonly string[];
  readonly limit: number;
  readonly position: { readonly cell: string; readonly uid: string } | null;
  /** So many at most of one cell; null: it says nothing. */
  readonly ask: (cell: string, query: { readonly limit: number; readonly after?: string }) => Promise<Found | null>;
}

export function registerElements(app: FastifyInstance, way: Way, sources: ElementSources): void {
  serveRoute(app, whole, async ({ query, request }, reply) => {
    const { authorization = "" } = request.headers;
    const { limit = usualPage, after, account, cell, ...filter } = query;
    const position = after === undefined ? null : positionIn(after);
    const owners = await cellsFor(sources, authorization, account);
    const cells = [...owners.keys()].filter((each) => cell === undefined || each === cell);
    const { items, next, missing } = await pageOver({
      cells,
      limit,
      position,
      ask: (each, more) => elementsOf(way, each, authorization, { ...filter, ...more }),
    });
    if (next !== null) reply.header(nextHeader, next);
    if (missing.length > 0) reply.header("cells-missing", missing.slice(0, mostMissing).join(","));
    return items.map((item) => {
      const own = owners.get(item.cell);
      return own === undefined ? item : { ...item, account: own };
    });
  });
}

/** One page. `missing`: cells that say nothing. */
export async function pageOver({ cells, limit, position, ask }: Walk): Promise<{
  readonly items: readonly ListedElement[];
  readonly next: string | null;
  readonly missing: readonly string[];
}> {
  const left = cells.filter((each) => position === null || each >= position.cell).sort();
  const items: ListedElement[] = [];
  const missing: string[] = [];
  let isMore = false;
  for (let atOnce = 1; left.length > 0 && items.length < limit; ) {
    const asked = left.splice(0, atOnce);
    const most = limit - items.length;
    const before = items.length;
    const found = await Promise.all(
      asked.map((cell) => {
        const isBegun = cell === position?.cell;
        return ask(cell, { limit: most, ...(isBegun ? { after: cursorOf("listElements", position.uid) } : {}) });
      }),
    );
    for (const [index, each] of found.entries()) {
      if (each === null) missing.push(asked[index] ?? "");
      const here = each?.items ?? [];
      const taken = here.slice(0, limit - items.length);
      isMore ||= taken.length < here.length || each?.isMore === true;
      items.push(...taken);
    }
    atOnce = nextAtOnce(asked, position, { found: items.length - before, wanted: limit - items.length });
  }
  const last = items.at(-1);
  const next = last !== undefined && (isMore || left.length > 0) ? cursorOf(whole, `${last.cell} ${last.uid}`) : null;
  return { items, next, missing };
}

/**
 * So many as would fill the page if all had as much as these, and twice as many at most: what is more than the page takes is read for nothing. Of the
 * cell in which the page begins nothing follows, since it may have been at its end.
 */
function nextAtOnce(
  asked: readonly string[],
  position: Walk["position"],
  { found, wanted }: { readonly found: number; readonly wanted: number },
): number {
  if (asked.length === 1 && asked[0] === position?.cell) return 1;
  const each = found / asked.length;
  return Math.max(1, Math.min(2 * asked.length, mostAtOnce, each === 0 ? mostAtOnce : Math.ceil(wanted / each)));
}

function positionIn(cursor: string): { readonly cell: string; readonly uid: string } {
  const [cell, uid] = cursorIn(whole, cursor)?.split(" ") ?? [];
  if (cell !== undefined && uid !== undefined) return { cell, uid };
  const why = "it is no cursor that this list has given; without it the list begins anew";
  throw refused(400, "bad-request", `after in the query: ${why}`);
}

/** Cells that may be asked, and whose each is, where that is known. */
async function cellsFor(
  sources: ElementSources,
  authorization: string,
  account: string | undefined,
): Promise<ReadonlyMap<string, string | undefined>> {
  const own = sources.cellOf(authorization);
  if (own !== null && account !== undefined)
    throw refused(403, "forbidden", "a cell's credential opens that cell, and says nothing of accounts");
  if (own !== null) return new Map([[own, undefined]]);
  if (!sources.isOfSession(authorization) && account === undefined)
    return new Map((await sources.names(authorization)).map((cell) => [cell, undefined]));
  const owners = await sources.owners(authorization);
  const isAsked = ({ account: path }: CellOwner): boolean =>
    account === undefined || path === account || path.startsWith(`${account}/`);
  return new Map(owners.filter(isAsked).map((each) => [each.cell, each.account]));
}

/** Null: the controller does not answer, or is of an earlier version. */
async function elementsOf(
  { configuration, present }: Way,
  cell: string,
  authorization: string,
  query: Readonly<Record<string, string | number | undefined>>,
): Promise<Found | null> {
  const written = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) written.set(name, String(value));
  try {
    const answer = await present(cell, authorization, (shown) =>
      peerRequest(configuration, controllerOf(cell), {
        method: "GET",
        path: `/cells/${encodeURIComponent(cell)}/elements?${written}`,
        headers: { authorization: shown },
        signal: AbortSignal.timeout(patienceMs),
      }),
    );
    const text = await answer.text();
    if (answer.status !== 200) return null;
    const items = answerAs(list(listedElement), text, controllerOf(cell));
    // Which cell it is, is known, whatever its controller says; so is how much it was asked for.
    return { items: items.map((item) => ({ ...item, cell })), isMore: answer.headers[nextHeader] !== undefined };
  } catch (error) {
    if (error instanceof RefusedError && error.statusCode === 429) throw error;
    return null;
  }
}
