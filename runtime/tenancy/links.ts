import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Ask, TenancyRequest, TenancyResponse } from "../../core/tenancy/asks.ts";
import type { Registration } from "../../core/tenancy/logins/invitations.ts";
import type { MadeLink, NewApplication, NewRegistration } from "../../model/contract/tenancy/tenancy.ts";
import { hashCredential } from "../http/bearer.ts";
import { hashPassword } from "./passwords.ts";

/** Links for first passwords: `first.<UID of the user>.<256 random bits>`. Their hashes alone are kept. */
const form = /^first\.([\w-]{1,64})\.[\w-]{43}$/;

export const newLink = (user: string): string => `first.${user}.${randomBytes(32).toString("base64url")}`;

/** A link is its user's, and whether that one is there already is found out first. */
export async function recover(
  ask: (request: TenancyRequest) => Promise<TenancyResponse>,
  asked: Ask,
): Promise<TenancyResponse> {
  const found = await ask({ ...asked, link: "", query: { dryRun: true } });
  if (found.status !== 200) return found;
  const link = newLink((found.body as { readonly uid: string }).uid);
  const made = await ask({ ...asked, link: hashCredential(link) });
  if (made.status !== 200) return made;
  const { user, expires } = made.body as unknown as MadeLink;
  return { status: 201, body: { link, user, expires } };
}

const invitationForm = /^invite\.([\w-]{1,64})\.[\w-]{43}$/;
export const newInvitation = (uid: string): string => `invite.${uid}.${randomBytes(32).toString("base64url")}`;

/** An account and its user. The password is hashed only where the invitation opens, and nothing else is wrong. */
export async function register(
  ask: (request: TenancyRequest) => Promise<TenancyResponse>,
  { link, name, password }: NewRegistration,
  more: Pick<Registration, "fresh" | "source">,
): Promise<TenancyResponse> {
  const [, invitation = ""] = invitationForm.exec(link) ?? [];
  const asked = { invitation, hash: hashCredential(link), name, ...more };
  const begun = await ask({ kind: "registration-begin", ...asked, password: null });
  if (begun.status !== 200) return begun;
  return ask({ kind: "registration-end", ...asked, password: await hashPassword(password) });
}

/** The password is hashed only where the domain is open to the address, and takes one more. */
export async function apply(
  ask: (request: TenancyRequest) => Promise<TenancyResponse>,
  { password, ...asked }: NewApplication,
  more: { readonly uid: string; readonly source: string },
): Promise<TenancyResponse> {
  const begun = await ask({ kind: "application-begin", ...asked, ...more, password: null });
  if (begun.status !== 200) return begun;
  return ask({ kind: "application-end", ...asked, ...more, password: await hashPassword(password) });
}

type Send = (response: ServerResponse, answer: TenancyResponse) => void;

/** The password is hashed, which costs much, only where the link opens. */
export async function useLink(
  ask: (request: TenancyRequest) => Promise<TenancyResponse>,
  { link, password, source }: { readonly link: string; readonly password: string; readonly source: string },
  response: ServerResponse,
  send: Send,
): Promise<void> {
  const [, user = ""] = form.exec(link) ?? [];
  const asked = { user, hash: hashCredential(link), source };
  const begun = await ask({ kind: "link-begin", ...asked, password: null });
  send(
    response,
    begun.status === 200 ? await ask({ kind: "link-end", ...asked, password: await hashPassword(password) }) : begun,
  );
}
