import type { ServerResponse } from "node:http";

/**
 * What is not the page is nothing for a browser to show: whoever opens an answer by its address, and shows the page's cookie with that, has no script run by
 * it, whatever a controller in somebody else's hands calls its bytes.
 */
const noDocument = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
} as const;

/** Says so of an answer before anybody writes one: also what is written past the framework has these headers. */
export function asNoDocument(answer: ServerResponse): void {
  for (const [name, value] of Object.entries(noDocument)) answer.setHeader(name, value);
}

/** A file of the page is what it is called, and the page says itself what it may do. */
export const asFileOfPage = (answer: ServerResponse): void => answer.removeHeader("content-security-policy");
