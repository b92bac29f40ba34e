import type { ServerResponse } from "node:http";
import type { TicketWorth } from "../../../core/controller/requests/tickets.ts";
import type { RouteName } from "../../../model/contract/routes.ts";
import { decide, type Rule, ruleText } from "../../../model/contract/tenancy/rules.ts";
import { beyondOwn, verbOf } from "../../../model/contract/tenancy/verbs.ts";
import type { Json } from "../../../model/json/json.ts";
import { hashCredential } from "../../http/bearer.ts";

/** Who was let in by a ticket of the service `tenancy`. */
export interface Tenant {
  /** Hash of the ticket. */
  readonly ticket: string;
  readonly user: string;
  readonly account: string;
  readonly rules: readonly Rule[];
  /** The beginning of the hash of his session. */
  readonly session?: string;
  /** At the root controller: the one child cell that the ticket is for. */
  readonly child?: string;
}
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}
type Ask = (request: Json) => Promise<Json>;

/** Who has this ticket; a refusal where it opens nothing. */
export async function tenantOf(
  ask: Ask,
  cell: string,
  credential: string,
): Promise<Tenant | { readonly refused: Refusal }> {
  const ticket = hashCredential(credential);
  const worth = (await ask({ method: "TICKET-WORTH", hash: ticket })) as unknown as TicketWorth;
  if (worth.state === "open") {
    const { state: _, ...known } = worth;
    return { ticket, ...known };
  }
  if (worth.state === "silent") {
    const message = `the service tenancy, which says who you are, cannot be heard by the controller of the cell ${cell}; try again in a moment`;
    return { refused: { status: 503, code: "tenancy-unreachable", message } };
  }
  return { refused: { status: 401, code: "unauthorized", message: `this is no ticket for the cell ${cell}` } };
}

/** Why a tenant may not do this; null: he may. */
export function tenantMayNot({ rules, user }: Tenant, verb: string | null): Refusal | null {
  const forbidden = (why: string): Refusal => ({
    status: 403,
    code: "forbidden",
    message: `${user} may not do this${why}`,
  });
  if (verb === null) return forbidden(": it is for the operator, by the operator's credential");
  const decision = decide(rules, verb);
  return decision.allowed
    ? null
    : forbidden(` (${verb}): ${ruleText(rules, decision)}; an administrator of the account can change that`);
}
/** The verb of a session in a VM is in its body, and looked at there. */
export function tenantMayNotAsk(tenant: Tenant, name: RouteName): Refusal | null {
  if (name === "grantSession") return null;
  const no = tenantMayNot(tenant, verbOf(name));
  const more = no === null && name === "addCredential" ? beyondOwn(tenant.rules) : null;
  if (more === null) return no;
  const message = `a credential of the cell may do more than ${tenant.user} may (${more}), and goes on when a user is disabled: somebody who may do everything in the cell can make one`;
  return { status: 403, code: "forbidden", message };
}

/**
 * By what a session may go on: one of the cell's own credentials, by its hash, or a user's ticket, for as long as that allows the verb; null: the
 * operator's.
 */
export type SessionHolder = { readonly credential: string } | { readonly ticket: string; readonly verb: string } | null;
/** Null: the Cell Manager. */
type Caller = { readonly operator: true } | { readonly hash: string } | { readonly tenant: Tenant } | null;
export function sessionHolder(
  caller: Caller,
  verb: string,
): { readonly holder: SessionHolder } | { readonly refused: Refusal } {
  if (caller === null || "hash" in caller) return { holder: caller === null ? null : { credential: caller.hash } };
  if (!("tenant" in caller)) return { holder: null };
  const no = tenantMayNot(caller.tenant, verb);
  return no === null ? { holder: { ticket: caller.tenant.ticket, verb } } : { refused: no };
}

/** What is open by which ticket: as long as anything is, the ticket is followed. */
export class TicketHolds {
  readonly ask: Ask;
  readonly #open = new Map<string, number>();

  constructor(ask: Ask) {
    this.ask = ask;
  }

  /** Returns how to let it go, at any time and once. */
  hold(ticket: string): () => void {
    this.#change(ticket, 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#change(ticket, -1);
      isHeld = false;
    };
  }
  #change(ticket: string, change: 1 | -1): void {
    const count = (this.#open.get(ticket) ?? 0) + change;
    if (count === 0) this.#open.delete(ticket);
    else this.#open.set(ticket, count);
    // A service that is stopping follows nothing any more.
    if (count === 0 || (count === 1 && change === 1))
      void this.ask({ method: "TICKET-HELD", hash: ticket, held: count > 0 }).catch(() => undefined);
  }

  /** Does what it is worth now allow this still? */
  async allows(ticket: string, verb: string | null): Promise<boolean> {
    const worth = (await this.ask({ method: "TICKET-HELD", hash: ticket })) as unknown as TicketWorth;
    return (worth.state === "open" || worth.state === "old") && (verb === null || decide(worth.rules, verb).allowed);
  }
}

/** These may go on for longer than a ticket opens anything. */
const isLong = (name: RouteName): boolean => name === "followCell" || name === "exec";

/** Answers that are under way for tenants. What they hear ends when they may not hear it any more. */
export class TenantAnswers {
  readonly #holds: TicketHolds;
  readonly #underWay = new Map<string, Set<{ readonly verb: string | null; readonly response: ServerResponse }>>();

  constructor(holds: TicketHolds) {
    this.#holds = holds;
  }

  /** Until it is over. */
  follow({ ticket }: Tenant, name: RouteName, response: ServerResponse): void {
    const answer = { verb: verbOf(name), response };
    const all = this.#underWay.get(ticket) ?? new Set();
    this.#underWay.set(ticket, all.add(answer));
    const letGo = isLong(name) ? this.#holds.hold(ticket) : () => undefined;
    response.once("close", () => {
      letGo();
      all.delete(answer);
      if (all.size === 0 && this.#underWay.get(ticket) === all) this.#underWay.delete(ticket);
    });
  }

  /** A ticket is worth less than it was. */
  async ended(ticket: string): Promise<void> {
    for (const { verb, response } of [...(this.#underWay.get(ticket) ?? [])])
      if (!(await this.#holds.allows(ticket, verb))) response.destroy();
  }
}
