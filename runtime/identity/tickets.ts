import { randomBytes } from "node:crypto";
import { kindOf } from "../../core/documents/permissions.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../installation.ts";

/**
 * What the gateway shows a cell's controller in place of the operator's credential, which opens every cell and is therefore
 * shown to the root controller alone: `ticket.<256 random bits>`, good for one cell (decisions/0053). Its hash is with whoever
 * issued it until the cell's controller asks for it, once. So whoever has taken a controller holds nothing
 * that opens another one.
 */
export const newTicket = (): string => `ticket.${randomBytes(32).toString("base64url")}`;
const form = /^ticket\.[A-Za-z0-9_-]{43}$/;
export const isTicket = (credential: string): boolean => form.test(credential);

/**
 * The same for a session of a user: `tenant.<256 random bits>`, issued by the service `tenancy`, which says to the controller of that cell
 * what it is worth, and when no longer (`core/controller/requests/tickets.ts`).
 */
export const newTenantTicket = (): string => `tenant.${randomBytes(32).toString("base64url")}`;
const tenantForm = /^tenant\.[A-Za-z0-9_-]{43}$/;
export const isTenantTicket = (credential: string): boolean => tenantForm.test(credential);
/** A user's session, by which the gateway is asked; no controller sees one. */
export const newSession = (): string => `session.${randomBytes(32).toString("base64url")}`;
const sessionForm = /^session\.[A-Za-z0-9_-]{43}$/;
export const isSession = (credential: string): boolean => sessionForm.test(credential);

const path = /^\/tickets\/([0-9a-f]{64})$/;
/** `PUT` by the gateway, with the operator's credential: issues it. `DELETE` by the cell's controller: spends it. */
export const ticketPath = (hash: string): string => `/tickets/${hash}`;
export const ticketAt = (url: string): string | null => path.exec(url)?.[1] ?? null;

/** From the issue until the cell's controller has asked. */
export const spendWithinMs = 60_000;
/** How long a controller remembers what it has spent; the gateway shows a ticket again for less than that. */
export const rememberedMs = 300_000;
export const shownAgainMs = 240_000;
const mostIssued = 4096;

/** Who knows what a ticket is worth: the root controller, or, where the services are processes of one machine, the gateway. */
export const issuerOf = ({ cellManager }: NonNullable<ProcessConfiguration["controller"]>): PeerName =>
  peerName(cellManager === true ? "controller.root" : "gateway");

/** The cell of a controller by its name in its certificate; null: it is no controller. */
export const cellOfController = (peer: PeerName): string | null =>
  kindOf(peer) === "controller" ? peer.slice("controller.".length) : null;

/** What was issued and not yet spent. Only hashes are kept; a restart forgets them, and the gateway makes others. */
export class IssuedTickets {
  readonly #now: () => number;
  readonly #issued = new Map<string, { readonly cell: string; readonly until: number }>();

  /** `now`: milliseconds, monotonic. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** False when too many are outstanding. */
  issue(hash: string, cell: string): boolean {
    for (const [old, { until }] of this.#issued) {
      if (until >= this.#now()) break;
      this.#issued.delete(old);
    }
    if (this.#issued.size >= mostIssued) return false;
    this.#issued.delete(hash);
    this.#issued.set(hash, { cell, until: this.#now() + spendWithinMs });
    return true;
  }

  /** True once, and for the controller of that cell alone. Somebody else's attempt takes nothing from it. */
  spend(hash: string, cell: string): boolean {
    const found = this.#issued.get(hash);
    if (found === undefined || found.cell !== cell) return false;
    this.#issued.delete(hash);
    return found.until >= this.#now();
  }
}
