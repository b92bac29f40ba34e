import type { FollowEvent } from "../../model/contract/follow/follow.ts";

/** What a tab and the worker that all tabs share say to each other. */
export type FromTab =
  | { readonly kind: "follow"; readonly topics: readonly string[] }
  | { readonly kind: "alive" }
  | { readonly kind: "leave" };
export type ToTab =
  | { readonly kind: "event"; readonly event: FollowEvent }
  /** The stream is broken, and is tried again. */
  | { readonly kind: "broken" }
  /** Nobody is signed in any more. */
  | { readonly kind: "signed-out" };

export const aliveMs = 10_000;
export const goneMs = 35_000;
