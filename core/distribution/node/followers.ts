import type { Distribution, ServerLink } from "./types.ts";

/**
 * Who follows a key? Prefixes are found by the beginnings of the key that have the length of some prefix, so a
 * publication costs its followers and not all connections.
 */
export const follow = (node: Distribution, link: ServerLink, prefix: string): void => {
  link.prefixes.add(prefix);
  const links = node.followers.get(prefix);
  if (links !== undefined) {
    links.add(link);
    return;
  }
  node.followers.set(prefix, new Set([link]));
  node.prefixLengths.set(prefix.length, (node.prefixLengths.get(prefix.length) ?? 0) + 1);
};

export const unfollow = (node: Distribution, link: ServerLink, prefix: string): void => {
  link.prefixes.delete(prefix);
  const links = node.followers.get(prefix);
  if (links === undefined || !links.delete(link) || links.size > 0) return;
  node.followers.delete(prefix);
  const left = (node.prefixLengths.get(prefix.length) ?? 1) - 1;
  if (left > 0) node.prefixLengths.set(prefix.length, left);
  else node.prefixLengths.delete(prefix.length);
};

export const followersOf = (node: Distribution, key: string): ReadonlySet<ServerLink> => {
  const found = new Set<ServerLink>();
  for (const length of node.prefixLengths.keys()) {
    if (length > key.length) continue;
    for (const link of node.followers.get(key.slice(0, length)) ?? []) found.add(link);
  }
  return found;
};

/** Whether one of the link's prefixes covers the key. */
export const follows = (link: ServerLink, key: string): boolean => {
  if (link.prefixes.size <= key.length) {
    for (const prefix of link.prefixes) if (key.startsWith(prefix)) return true;
    return false;
  }
  for (let length = 0; length <= key.length; length += 1) if (link.prefixes.has(key.slice(0, length))) return true;
  return false;
};
