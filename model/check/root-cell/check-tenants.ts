import type { AccountElement, Cell, DomainElement, Element, RoleElement } from "../../cell/cell.ts";
import { elementPath } from "../../cell/identifiers.ts";
import type { ReportFault } from "../fault.ts";

/*
 * Domains, accounts and roles of tenants as elements: `root/tenants/acme/dev` is what commands call `ROOT/acme/dev`. They stand in the root cell
 * alone, under the names that they have, each in the domain that it is in; a component that is no element stands for a domain which commands have made.
 */
const rootName = "root";
const place = `${rootName}/tenants`;
/** Domains within one another, below the root of all. */
const deepest = 16;
const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const builtInRoles = ["root-admin", "domain-admin", "account-admin", "user", "reader"] as const;

export type TenantElement = DomainElement | AccountElement | RoleElement;
export const isTenant = (element: Element): element is TenantElement =>
  element.type === "Domain" || element.type === "Account" || element.type === "Role";
/** As commands name it: of a role the domain's, with its name behind. Of one that is where it may be. */
export const tenantPath = ({ path }: Pick<TenantElement, "path">): string => `ROOT${path.slice(place.length)}`;
/** Domains and accounts that a model declares, each as `kind path`. */
export const declaredIn = (cell: Cell): ReadonlySet<string> =>
  new Set(
    [...cell.elements.values()].flatMap((element) =>
      isTenant(element) && element.type !== "Role"
        ? [`${element.type === "Domain" ? "domain" : "account"} ${tenantPath(element)}`]
        : [],
    ),
  );

export function checkTenants(cell: Cell, fault: ReportFault): void {
  for (const element of cell.elements.values()) if (isTenant(element)) checkTenant(cell, element, fault);
}

function checkTenant(cell: Cell, element: TenantElement, fault: ReportFault): void {
  const { path, type } = element;
  const refuse = (message: string, hint: string, attribute?: string): void =>
    fault("cell/tenants", message, path, { hint, ...(attribute === undefined ? {} : { attribute }) });
  if (cell.name !== rootName) {
    refuse(
      `\`${path}\` is of type ${type}, and who tenants are is said in the root cell alone`,
      "Leave it out here, and put it into the root cell's specification, or use `cells domain`, `cells account` and `cells role`.",
    );
    return;
  }
  const names = path.startsWith(`${place}/`) ? path.slice(place.length + 1).split("/") : [];
  const [name = ""] = names.slice(-1);
  if (names.length === 0) {
    const own = path.split("/").at(-1);
    refuse(
      `\`${path}\` is of type ${type}, and stands outside of \`${place}\``,
      `Write it as \`tenants extends { ${own} extends ${type} { … } }\` in the cell \`${rootName}\`.`,
    );
    return;
  }
  if (element.movedFrom !== undefined)
    refuse(
      `\`${path}\` has \`x.movedFrom\`, and what tenants are called never changes`,
      "Leave it out: what was declared under the former name goes on as it is, and this is another one.",
      "x.movedFrom",
    );
  const wrong = names.find((each) => !namePattern.test(each));
  if (wrong !== undefined)
    refuse(
      `\`${path}\` has the part "${wrong}", which is no name of a tenant`,
      "Use at most 63 small letters, digits and hyphens, a hyphen neither first nor last.",
    );
  if (names.length > deepest)
    refuse(
      `\`${path}\` is within ${names.length - 1} domains`,
      `Domains are at most ${deepest - 1} within one another.`,
    );
  const around = names.slice(0, -1).map((_, at) => `${place}/${names.slice(0, at + 1).join("/")}`);
  for (const each of around) {
    const outer = cell.elements.get(elementPath(each));
    if (outer === undefined || outer.type === "Domain") continue;
    refuse(
      `\`${path}\` is in \`${each}\`, which is of type ${outer.type}, and such things are in domains alone`,
      `Write it beside \`${each}\`, or make that a Domain.`,
    );
  }
  if (type === "Account" && names.length === 1 && name === "operator")
    refuse(
      `\`${path}\` is the operator's account, which stays as it is`,
      "Leave it out: the operator's way in is there, and nothing bounds it.",
    );
  if (type === "Role" && (builtInRoles as readonly string[]).includes(name))
    refuse(
      `\`${path}\` has the name of a role that every installation has`,
      `Give it another name than ${builtInRoles.join(", ")}.`,
    );
}
