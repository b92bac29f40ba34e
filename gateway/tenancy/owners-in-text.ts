import type { Changed } from "../../model/api.ts";
import { optional, read, record } from "../../model/contract/schema.ts";
import { givenAnew } from "../../model/contract/values.ts";
import { Fault } from "../../model/json/reader.ts";
import { parseJson, readBody } from "../../runtime/http/http.ts";
import type { PeerResponse } from "../../runtime/http/https.ts";
import type { Forwarded } from "../requests/forward.ts";
import { RefusedError, refused } from "../requests/refused.ts";
import type { OwnerThere } from "../requests/whole-hosts.ts";

/*
 * To whom a change of the root cell gives hosts, whoever sends it: the root controller says what it would give anew, since texts are read there alone, and
 * the service `tenancy` whether those are there. `cells apply` has asked before, with places in the text; other clients have not.
 */
const concerned: ReadonlySet<string | undefined> = new Set(["putModel", "putElement", "patchModel"]);
/** What names neither the place nor the type of a dedication gives nobody anything, and is planned once. A letter may be written by its number. */
const aboutDedications = /dedicat|\\[ux]/i;
export const givesHosts = (name: string | undefined, { url, body }: Pick<Forwarded, "url" | "body">): boolean =>
  concerned.has(name) && (aboutDedications.test(url) || url.includes("%") || aboutDedications.test(String(body ?? "")));
const said = record<Pick<Changed, "dedicates">>({ dedicates: optional(givenAnew) });
const longestAnswerBytes = 64 * 2 ** 20;

/** Rejects with a refusal where the change gives something to whom nobody knows. What is wrong with it otherwise is said as it is made. */
export async function requireOwners(
  what: Forwarded,
  ask: (what: Forwarded) => Promise<PeerResponse>,
  isThere: OwnerThere,
): Promise<void> {
  // It is another request than the one that is made.
  const { "idempotency-key": _key, ...headers } = what.headers;
  const { pathname, searchParams } = new URL(what.url, "http://gateway");
  searchParams.set("dryRun", "true");
  const answer = await ask({ ...what, headers, url: `${pathname}?${searchParams}` }).catch((error: unknown) => {
    // Who may not change it is told so as everywhere.
    if (error instanceof RefusedError && [401, 403, 404].includes(error.statusCode)) return null;
    throw error;
  });
  if (answer === null) return;
  const text = await readBody(answer.body, longestAnswerBytes);
  if (answer.status !== 200) return;
  if (!text.ok) throw refused(502, "controller-unreachable", "what the change would give to whom cannot be read");
  const json = parseJson(text.value);
  const shown = json.ok ? read(said, json.value) : null;
  if (shown === null || shown instanceof Fault)
    throw refused(502, "controller-unreachable", "what the change would give to whom cannot be read");
  const found = new Set<string>();
  for (const { path, of, to } of shown.dedicates ?? []) {
    if (found.has(`${to.kind} ${to.path}`)) continue;
    found.add(`${to.kind} ${to.path}`);
    try {
      await isThere(to);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      const { code, message } = error.refusal;
      throw refused(error.statusCode, code, `${path} gives ${of} to ${to.path}: ${message}`);
    }
  }
}
