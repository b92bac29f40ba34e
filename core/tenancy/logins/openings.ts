import { save, type TenancyState } from "../state.ts";

/** Closes a domain to addresses of e-mail; who waits for it waits for nothing any more. */
export function dropOpening(state: TenancyState, uid: string): void {
  for (const each of [...state.tables.application.values()])
    if (each.opening === uid) save(state, "application", each.uid, null);
  save(state, "opening", uid, null);
}
export function dropOpeningsOf(state: TenancyState, domain: string): void {
  for (const each of [...state.tables.opening.values()]) if (each.domain === domain) dropOpening(state, each.uid);
}
