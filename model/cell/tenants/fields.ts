import type { Json } from "../../json/json.ts";
import type { AccountElement, DomainElement, RoleElement, TenantLimits } from "../cell.ts";
import { readRule, ruleText } from "./rules.ts";

/** Checked attributes, with defaults. */
interface Values {
  number(name: string): number | undefined;
  needBoolean(name: string): boolean;
  needChoice<T extends string>(name: string, values: readonly T[]): T;
  texts(name: string): readonly string[] | undefined;
}
type Tenant = DomainElement | AccountElement | RoleElement;
type Fields<E> = E extends Tenant ? Omit<E, "path" | "public" | "movedFrom" | "position"> : never;

const limitNames = {
  vms: "x.limits.vms",
  memoryMiB: "x.limits.memory",
  cpus: "x.limits.cpus",
  volumes: "x.limits.volumes",
  storageMiB: "x.limits.storage",
  subnets: "x.limits.subnets",
  addresses: "x.limits.addresses",
  publicAddresses: "x.limits.publicAddresses",
  cells: "x.limits.cells",
  units: "x.limits.units",
} as const satisfies Readonly<Record<keyof TenantLimits, string>>;
const limitsIn = Object.entries(limitNames) as readonly (readonly [keyof TenantLimits, string])[];

/** Of an element of the type. */
export function tenantFields(type: Tenant["type"], values: Values): Fields<Tenant> {
  if (type === "Role")
    return {
      type,
      reach: values.needChoice("x.reach", ["account", "domain", "installation"]),
      rules: (values.texts("x.rules") ?? []).flatMap((each) => readRule(each) ?? []),
      secondFactor: values.needBoolean("x.secondFactor"),
    };
  const written = limitsIn.map(([key, name]) => [key, values.number(name)] as const);
  const limits: TenantLimits = Object.fromEntries(written.filter(([, value]) => value !== undefined));
  return {
    type,
    state: values.needChoice("x.state", ["enabled", "locked", "disabled"]),
    limits: Object.freeze(limits),
  };
}

/** The same as it is written. */
export function describedTenant(element: Tenant): [string, Json | undefined][] {
  if (element.type === "Role")
    return [
      ["x.reach", element.reach],
      ["x.rules", element.rules.map(ruleText)],
      ["x.secondFactor", element.secondFactor],
    ];
  return [
    ["x.state", element.state],
    ...limitsIn.map(([key, name]): [string, Json | undefined] => [name, element.limits[key]]),
  ];
}
