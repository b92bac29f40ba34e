import type { Cell, DedicationElement } from "../../../model/cell/cell.ts";
import {
  alwaysThere,
  isSameOwner,
  type Owner,
  ownerIn,
  ownerText,
} from "../../../model/cell/tenants/dedication/dedication.ts";
import { writtenIn } from "../../../model/cell/tenants/dedication/written.ts";
import { declaredIn } from "../../../model/check/root-cell/check-tenants.ts";
import { closestName } from "../../../model/diagnostics/closest-name.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import { type Client, Refused } from "../../connection/client.ts";

/*
 * To whom the root cell's text dedicates hosts. The root controller keeps no table of accounts, and would keep a host for somebody who never comes: so
 * the service `tenancy` is asked who is there before the text is sent, as by `cells dedicate` (decision 159).
 */
const textOf = ({ kind, path }: Owner): string => `${kind} ${path}`;

/** What it gives anew to whom nobody knows. What the same text declares counts, and what is so already is let be. */
export async function ownersMissing(client: Client, cell: Cell): Promise<readonly Diagnostic[]> {
  const declared = declaredIn(cell);
  const asked = [...cell.elements.values()].flatMap((element) => {
    if (element.type !== "Dedication") return [];
    const owner = ownerIn(element.to, element.account);
    return alwaysThere.some((each) => isSameOwner(each, owner)) || declared.has(textOf(owner))
      ? []
      : [{ element, owner }];
  });
  if (asked.length === 0) return [];
  // Of a text that gives nothing anew nobody has to list all accounts.
  const { dedications } = writtenIn(await client.model("root", "", false).catch(absent));
  const anew = asked.filter(({ element, owner }) => {
    const before = dedications.get(element.of);
    return before === undefined || !isSameOwner(before, owner);
  });
  if (anew.length === 0) return [];
  const there = await whoIsThere(client);
  return anew.flatMap(({ element, owner }): readonly Diagnostic[] => {
    if (typeof there !== "string" && there.has(textOf(owner))) return [];
    const position = element.position === undefined ? {} : { position: element.position };
    return [{ code: "cell/dedication", path: element.path, ...position, ...said(element, owner, there) }];
  });
}

function said(
  { path, of }: DedicationElement,
  owner: Owner,
  there: ReadonlySet<string> | string,
): Pick<Diagnostic, "message" | "hint"> {
  const gives = `\`${path}\` gives ${of} to ${ownerText(owner)}`;
  if (typeof there === "string")
    return {
      message: `${gives}, and whether that is there nobody can say now: ${there}`,
      hint: "Try again when it answers, or declare it in the same text, in `tenants`.",
    };
  const paths = [...there].flatMap((each) =>
    each.startsWith(`${owner.kind} `) ? [each.slice(owner.kind.length + 1)] : [],
  );
  const meant = closestName(owner.path, paths);
  const known = meant === undefined ? `\`cells ${owner.kind} list\` shows those that are` : `Did you mean ${meant}?`;
  return { message: `${gives}, which is not there`, hint: `${known}${meant === undefined ? "." : ""}` };
}

/** Every domain and account that may be seen; a text: why that is not known. */
async function whoIsThere(client: Client): Promise<ReadonlySet<string> | string> {
  try {
    const found = new Set<string>();
    for (const [kind, list] of [
      ["domain", "listDomains"],
      ["account", "listAccounts"],
    ] as const) {
      const all: readonly { readonly path: string }[] = await client.all(list);
      for (const { path } of all) found.add(`${kind} ${path}`);
    }
    return found;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}
const absent = (error: unknown): null => {
  if (error instanceof Refused) return null;
  throw error;
};
