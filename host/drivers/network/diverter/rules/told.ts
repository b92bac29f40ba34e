import type { CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import type { GlobalNetwork } from "../../driver.ts";
import { controller, policyEntry, policyKey, sourceRange, word } from "../program/layout.ts";
import type { DeviceOf } from "../taps/slots.ts";
import { compilePolicy } from "./policy.ts";
import { type AddressingMap, wantedAddressing } from "./wanted.ts";

/**
 * What this process last put into the maps, for one use: an entry in force that says something else was changed behind the
 * driver's back, and `examine` can name it. What passes is never judged by this, only by the maps.
 */
export interface Told {
  /** Value that the map should have under the key; undefined: none. */
  entry(map: AddressingMap | "controllers", key: Buffer): Buffer | undefined;
  /**
   * The first source range of the rule that should answer for a pair of identities, with its rule's number. Null: none
   * should; undefined: nobody can tell.
   */
  rule(cell: number, from: number, to: number, protocol: number, port: number): RuleFound | null | undefined;
}
export interface RuleFound {
  readonly rule: number;
  readonly first: number;
  readonly last: number;
}

interface ToldEntry {
  readonly bits: number;
  readonly port: number;
  readonly found: RuleFound;
}
const exactBits = 96;
/** Entries of one pair and protocol, longest prefix first. */
function entriesOf(policy: CellPolicy, from: number, to: number, protocol: number): readonly ToldEntry[] {
  const rules = policy.rules.filter((rule) => rule.from === from && rule.to === to);
  const compiled = rules.length === 0 ? null : compilePolicy({ cell: policy.cell, rules, networks: [] });
  if (compiled === null || !compiled.ok) return [];
  return compiled.value
    .flatMap(({ key, value }) => {
      const { protocol: of, port, prefix_length } = policyKey.decode(key);
      const found = sourceRange.decode(policyEntry.decode(value).ranges);
      return of === protocol ? [{ bits: prefix_length - exactBits, port, found }] : [];
    })
    .sort((a, b) => b.bits - a.bits);
}

/** @param isRefused whether a policy could not be compiled, so that older rules stayed in force */
export function whatWasTold(
  global: GlobalNetwork,
  mtu: number,
  deviceOf: DeviceOf,
  isRefused: (policy: CellPolicy) => boolean,
): Told {
  const addressing = wantedAddressing(global, mtu, deviceOf);
  return {
    entry(map, key) {
      if (map !== "controllers") return addressing[map].get(key.toString("hex"))?.value;
      const policy = global.policies.find(({ cellNumber }) => cellNumber === word.decode(key).value);
      return policy === undefined ? undefined : controller.encode(policy.controller);
    },
    rule(cell, from, to, protocol, port) {
      const policy = global.policies.find(({ cellNumber }) => cellNumber === cell);
      if (policy === undefined || isRefused(policy)) return undefined;
      const list = entriesOf(policy, from, to, protocol);
      return list.find((entry) => port >> (16 - entry.bits) === entry.port >> (16 - entry.bits))?.found ?? null;
    },
  };
}

interface Decoder {
  decode(bytes: Uint8Array): object;
}
/** How two values of one layout differ, in words: "mac 02:…:01 where this host was told 02:…:02". Null: they do not. */
export function deviation(layout: Decoder, inForce: Buffer | null, told: Buffer | undefined): string | null {
  if (inForce === null)
    return told === undefined ? null : `missing, though this host was told ${describe(layout, told)}`;
  if (told === undefined) return `${describe(layout, inForce)}, of which this host was told nothing`;
  if (inForce.equals(told)) return null;
  const was = new Map(Object.entries(layout.decode(told)));
  const parts = Object.entries(layout.decode(inForce)).flatMap(([field, value]) =>
    String(value) === String(was.get(field)) ? [] : [`${field} ${value} where this host was told ${was.get(field)}`],
  );
  return parts.join(", ");
}
const describe = (layout: Decoder, bytes: Buffer): string =>
  Object.entries(layout.decode(bytes))
    .filter(([field]) => field !== "padding")
    .map(([field, value]) => `${field} ${value}`)
    .join(", ");
