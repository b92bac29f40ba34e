import { leadsTo } from "../../../model/contract/follow/leads-to.ts";
import { elementsOf, typedIn } from "../../../model/contract/follow/rows.ts";
import { isObject, type Json } from "../../../model/json/json.ts";
import { type Client, Refused } from "../../connection/client.ts";
import { type Context, pathIn, printJson } from "../../context/context.ts";
import { type Asked, cellOf, csvOf, listed, listingOf, type Row } from "../../output/listing.ts";
import { phaseLabel } from "../../output/render.ts";
import { usage } from "../../terminal/failure.ts";
import { table } from "../../terminal/terminal.ts";

/** Cells that are asked at a time. */
const together = 8;

/** A cell that ends meanwhile has no rows. One whose controller does not answer is told of, and the others are shown. */
const rowsOf = async (client: Client, cell: string, away: (cell: string) => void): Promise<readonly Row[]> => {
  try {
    const model = await client.model(cell, "", true);
    const addresses = addressesIn(model);
    return elementsOf(model, "").map(({ path, type, state }) => ({
      cell,
      type,
      state,
      path: pathIn(cell, path),
      ...(type === "VM" ? { addresses: addresses.get(path) ?? [] } : {}),
    }));
  } catch (error) {
    if (!(error instanceof Refused) || ![404, 502, 503, 504].includes(error.status)) throw error;
    if (error.status !== 404) away(cell);
    return [];
  }
};

/** What each VM is reached by, by the path of the VM: its interfaces stand anywhere in the document. */
function addressesIn(model: Json): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  if (!isObject(model)) return found;
  for (const element of typedIn(model)) {
    const { $state: state } = element.written;
    const address = isObject(state) ? state.address : undefined;
    const vm = element.type === "VirtualInterface" ? leadsTo(model, element, "x.vm") : null;
    if (vm !== null && typeof address === "string") found.set(vm, [...(found.get(vm) ?? []), address]);
  }
  return found;
}

export interface ListOptions extends Asked {
  readonly type: string | undefined;
}

/** Elements of all cells that one may see, a line each. */
export const list = async (context: Context, { type, ...asked }: ListOptions): Promise<void> => {
  const filters = [...(type === undefined ? [] : [`type=${type}`]), ...asked.filters];
  const read = listingOf({ ...asked, filters });
  if (!read.ok) throw usage(read.error);
  const client = context.client();
  const cells = (await client.cells()).map(({ cell }) => cell);
  const away: string[] = [];
  const rows: Row[] = [];
  for (let first = 0; first < cells.length; first += together) {
    const some = cells.slice(first, first + together);
    const found = await Promise.all(some.map((cell) => rowsOf(client, cell, (each) => away.push(each))));
    rows.push(...found.flat());
  }
  const shown = listed(rows, read.value);
  const { columns } = read.value;
  const { terminal } = context;
  const none = ", which does not answer now: its elements are not in the list";
  for (const cell of away) process.stderr.write(`the controller of ${cell}${none}\n`);
  if (context.json) {
    printJson(
      context,
      shown.map((row) => Object.fromEntries(columns.map((column) => [column, cellOf(row, column)]))),
    );
    return;
  }
  if (context.csv === true) {
    terminal.print(csvOf(shown, columns).replace(/\r\n$/, ""));
    return;
  }
  if (shown.length === 0) {
    terminal.print(rows.length === 0 ? "there is no element yet: `cells apply FILE` makes some" : "none is so");
    return;
  }
  const lines = shown.map((row) =>
    columns.map((column) => (column === "phase" ? phaseLabel(row.state.phase, terminal.paint) : cellOf(row, column))),
  );
  const head = columns.map((column) => terminal.paint("grey", column.toUpperCase()));
  for (const line of table([head, ...lines])) terminal.print(line);
};
