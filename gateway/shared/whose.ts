import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { viaHeader } from "../../model/contract/audit/via.ts";
import type { Scope } from "../requests/credentials.ts";

/**
 * Said by the gateway with each answer to a personality: whose share of everything a request is of, so that a person with many
 * sessions has one measure there. It tells who is the same, and not who that is; a client hears nothing of it.
 */
export const whoseHeader = "cells-whose";
const whoseOf = (scope: Scope): string =>
  createHash("sha256").update(JSON.stringify(scope)).digest("base64url").slice(0, 22);

/** Where a personality asks. */
export function tellWhose(asked: IncomingHttpHeaders, answer: ServerResponse, scope: Scope): void {
  if (asked[viaHeader] !== undefined) answer.setHeader(whoseHeader, whoseOf(scope));
}
