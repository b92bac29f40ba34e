import type { Json } from "../../json/json.ts";
import type { ElementType } from "../cell.ts";

/** What the value of an attribute may be. */
export type AttributeKind =
  | { readonly kind: "integer"; readonly minimum: number; readonly maximum: number }
  | { readonly kind: "boolean" }
  | { readonly kind: "choice"; readonly values: readonly string[] }
  | { readonly kind: "text" }
  /** A DNS label; upper case is kept where `mixedCase`. */
  | { readonly kind: "label"; readonly mixedCase: boolean }
  | { readonly kind: "address" }
  | { readonly kind: "network" }
  /** A list of networks, of which `internet` is one. */
  | { readonly kind: "networks" }
  /** A list of multicast addresses. */
  | { readonly kind: "groups" }
  /** A list of DNS labels; `paths`: of paths of accounts; `images`: of what a VM can boot from. */
  | { readonly kind: "labels"; readonly paths?: true; readonly images?: true }
  /** A list of rules, each `allow` or `deny` and a verb or a pattern of verbs. */
  | { readonly kind: "rules" }
  /** A list of some of these words, at least one. */
  | { readonly kind: "words"; readonly values: readonly string[] }
  /** A list of addresses. */
  | { readonly kind: "addresses" }
  | { readonly kind: "mac" }
  /** A link to an element of one of the types; `foreign`: also into another cell. */
  | { readonly kind: "link"; readonly to: readonly ElementType[]; readonly foreign: boolean }
  /** A reference to another cell as a whole. */
  | { readonly kind: "domain" }
  | { readonly kind: "end" }
  | { readonly kind: "ports" }
  | { readonly kind: "path" }
  /** Any structure. */
  | { readonly kind: "data" };

/** What a change of the attribute does to an element that exists. */
export type ChangeEffect = "change" | "restart" | "replace" | "none";

export interface AttributeSchema {
  readonly kind: AttributeKind;
  readonly unit?: string;
  readonly required?: true;
  /** As it would be written. */
  readonly default?: Json;
  readonly effect: ChangeEffect;
  readonly docs: string;
}
export type TypeSchema = Readonly<Record<string, AttributeSchema>>;

export const integer = (minimum: number, maximum: number): AttributeKind => ({ kind: "integer", minimum, maximum });
export const choice = (...values: string[]): AttributeKind => ({ kind: "choice", values });
export const link = (...to: ElementType[]): AttributeKind => ({ kind: "link", to, foreign: false });
export const foreignLink = (...to: ElementType[]): AttributeKind => ({ kind: "link", to, foreign: true });
export const flag: AttributeKind = { kind: "boolean" };
export const data: AttributeKind = { kind: "data" };
export const label: AttributeKind = { kind: "label", mixedCase: false };
export const largest = 2 ** 31 - 1;
export const limit = (docs: string, unit?: string): AttributeSchema => ({
  kind: integer(0, Number.MAX_SAFE_INTEGER),
  effect: "none",
  docs,
  ...(unit === undefined ? {} : { unit }),
});
