import type { FastifyReply } from "fastify";
import { nextHeader, type PagedList, pageOf } from "../../model/contract/tenancy/pages.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { refused } from "./refused.ts";

/** A list as it was asked for: a page of it, or all. */
export function pageFor<T extends object>(
  list: PagedList,
  all: readonly T[],
  { limit, after }: { readonly limit?: number | undefined; readonly after?: string | undefined },
  reply: FastifyReply,
): readonly T[] {
  if (limit === undefined && after === undefined) return all;
  const asked = { ...(limit === undefined ? {} : { limit }), ...(after === undefined ? {} : { after }) };
  const page = pageOf(list, all as unknown as readonly JsonObject[], asked);
  if (!page.ok) throw refused(400, "bad-request", page.error);
  if (page.value.next !== null) reply.header(nextHeader, page.value.next);
  return page.value.items as unknown as readonly T[];
}
