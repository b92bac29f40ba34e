import type { Json } from "../../../model/json/json.ts";
import type { Node } from "../node/node.ts";
import type { NodeInput } from "../node/types.ts";

/**
 * Documents that may wait for each other (`Service.gathers`): each alone would cost a commit. What waits is not stepped yet, so nobody
 * was told of it, and a crash loses nothing that anybody counts on. Frames of one connection keep their order: of each at most one waits, and
 * with whatever else comes on it all go. So whoever says something all the time gathers nothing here.
 */
export class Gathering<Item extends { readonly input: NodeInput }> {
  #items: Item[] = [];
  readonly #connections = new Set<number>();

  get size(): number {
    return this.#items.length;
  }

  /** @returns what is to be taken now, in this order; nothing where the item waits */
  take(item: Item, mayWait: () => boolean): readonly Item[] {
    // That a connection takes more is no word of its peer's.
    const connection = "connection" in item.input && item.input.kind !== "sendable" ? item.input.connection : null;
    if (connection !== null && this.#connections.has(connection)) return [...this.letGo(), item];
    if (connection === null || !mayWait()) return [item];
    this.#items.push(item);
    this.#connections.add(connection);
    return [];
  }
  /** Their time is over. */
  letGo(): readonly Item[] {
    const items = this.#items;
    this.#items = [];
    this.#connections.clear();
    return items;
  }
}

/** Does the service let this wait? What takes a document back does not. */
export const mayWait = <State>({ service, state, distribution }: Node<State>, input: NodeInput): boolean => {
  if (service.gathers === undefined || input.kind !== "frame") return false;
  const link = distribution.links.get(input.connection);
  if (link?.role !== "server" || link.client === null) return false;
  const { frame, key, value = null } = (input.frame ?? {}) as { readonly [name: string]: Json | undefined };
  if (frame !== "desire" || typeof key !== "string" || value === null) return false;
  return service.gathers.isOne(state, link.peer, key, value);
};
