import { rootDomain } from "../../model/contract/tenancy/tenancy.ts";
import type { Context } from "../context/context.ts";
import { pathOf, userNameOf } from "./names.ts";
import { columns, print } from "./people.ts";

/* `cells delegation`: roles on cells that accounts give others. */

export const listDelegations = async (context: Context): Promise<void> => {
  const all = await context.client().all("listDelegations");
  const rows = all.map(({ uid, account, cells, to, role }) => [
    uid,
    account,
    cells.length === 0 ? "all cells" : cells.join(", "),
    to,
    role,
  ]);
  print(context, all, all.length === 0 ? "nothing is given that you may see" : columns(rows));
};

/** A number, a UID, `user@domain`, or a path of which the root of all may be left out. */
const whom = (written: string): string => {
  if (/^\d{12}$/.test(written) || /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(written)) return written;
  if (!written.includes("@")) return pathOf(written);
  const { user, domain } = userNameOf(written);
  return `${user}@${domain ?? rootDomain}`;
};

interface Given {
  readonly to: string;
  readonly role: string;
  readonly cell?: readonly string[];
}
export const addDelegation = async (context: Context, account: string, { to, role, cell }: Given): Promise<void> => {
  const cells = cell?.flatMap((each) => each.split(","));
  const body = { account: pathOf(account), to: whom(to), role, ...(cells === undefined ? {} : { cells }) };
  const made = await context.client().ask("addDelegation", { parameters: {}, body });
  const on = made.cells.length === 0 ? "all cells" : made.cells.join(", ");
  print(context, made, `${made.uid}\n${made.to} has the role ${made.role} on ${on} of ${made.account}`);
};

export const deleteDelegation = async (context: Context, uid: string): Promise<void> => {
  const gone = await context.client().ask("deleteDelegation", { parameters: { uid } });
  print(context, gone, `${gone.to} has the role ${gone.role} of ${gone.account} no more`);
};
