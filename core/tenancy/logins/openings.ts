import { save, type TenancyState } from "../state.ts";

/** Nobody is invited by who is no more. */
export function dropInvitationsBy(state: TenancyState, user: string): void {
  for (const { uid, by } of [...state.tables.invitation.values()])
    if (by === user) save(state, "invitation", uid, null);
}
/** Closes a domain to addresses of e-mail; who waits for it waits for nothing any more. */
export function dropOpening(state: TenancyState, uid: string): void {
  for (const each of [...state.tables.application.values()])
    if (each.opening === uid) save(state, "application", each.uid, null);
  save(state, "opening", uid, null);
}
export function dropOpeningsOf(state: TenancyState, domain: string): void {
  for (const each of [...state.tables.opening.values()]) if (each.domain === domain) dropOpening(state, each.uid);
}
