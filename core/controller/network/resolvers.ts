import type { Cell, NetworkRuleElement } from "../../../model/cell/cell.ts";
import type { Ipv4 } from "../../../model/cell/identifiers.ts";
import { effectiveOpenness, effectiveResolvers } from "../../../model/check/openness.ts";
import { addressOffer } from "../../documents/readers/network.ts";
import type { Effect, Input } from "../../env.ts";
import { isObject, toJson } from "../../outbox.ts";
import { addressManager, boundOf, type ControllerState } from "../state.ts";

/**
 * Whom the cell's name server asks for names outside. Nobody where no rule of the cell opens anything towards "internet": a
 * question is a way out like any other, and who has one may find out whom to send to.
 */
export function resolversNow(state: ControllerState): readonly Ipv4[] {
  const { cell } = state;
  const bound = boundOf(state) ?? {};
  if (cell === null) return [];
  const resolvers = effectiveResolvers(cell.policy, bound);
  if (resolvers.length === 0) return [];
  return effectiveOpenness(cell.policy, bound).internet === "out" || hasRuleOutside(cell) ? resolvers : [];
}

const known = new WeakMap<Cell, boolean>();
function hasRuleOutside(cell: Cell): boolean {
  const before = known.get(cell);
  if (before !== undefined) return before;
  const rules = [...cell.elements.values()].filter((each): each is NetworkRuleElement => each.type === "NetworkRule");
  const opens = rules.some(
    ({ address1, address2, direction }) =>
      address2.kind === "internet" || (address1.kind === "internet" && direction === "both"),
  );
  known.set(cell, opens);
  return opens;
}

export interface NamesAsked {
  readonly resolvers: readonly Ipv4[];
  /** Pools of external addresses, and what machines have in none, whose names the DNS Manager says; null: not known. */
  readonly external: readonly string[] | null;
}
/** Asked for each name outside, and answered from what is accepted: it waits for no pass. */
export function answerResolvers(state: ControllerState, input: Input): readonly Effect[] | null {
  if (input.kind !== "request" || !isObject(input.request) || input.request.method !== "RESOLVERS") return null;
  const offer = addressOffer.of(state.actual.get(addressManager)?.get("addresses"));
  const external = offer === null ? null : [...offer.external.fixed, ...(offer.kept ?? [])];
  const response: NamesAsked = { resolvers: resolversNow(state), external };
  return [{ kind: "reply", id: input.id, response: toJson(response) }];
}
