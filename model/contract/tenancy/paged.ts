import { gives, may } from "../route.ts";
import { integer, list, type Schema, text } from "../schema.ts";
import { longestCursor, mostOfPage } from "./pages.ts";

/* What rows of the table of routes (`../routes.ts`) have whose answer is a list. */

/** A list, which comes in pages for whoever asks for that. */
export const paged = {
  limit: may(
    integer(1, mostOfPage),
    "So many at most; absent, with `after`: 1000; without it all. Items of what can be changed have an `etag` then.",
  ),
  after: may(
    text(longestCursor),
    "Those behind the page whose answer gave this as `Cells-Next`. What came or went meanwhile moves nothing.",
  ),
};
export const givesPages = <T>(schema: Schema<T>) =>
  ({
    ...gives(list(schema)),
    headers: { "Cells-Next": { schema: text(), doc: "`after` of the next page; without it this one is the last." } },
  }) as const;
/** The same of an answer that has more beside the items, which are what comes in pages. */
export const givesPagesOf = <T>(schema: Schema<T>) =>
  ({ ...gives(schema), headers: givesPages(schema).headers }) as const;
