/*
 * Which parts of the IPv4 space are taken, as a binary tree over aligned power-of-two blocks: every node knows the largest
 * free block below it. The lowest free block of a size (first fit) is found by going left wherever there is room, so one
 * allocation takes 32 steps however many there are and however scattered. A plain list of free ranges gives the same
 * addresses but is walked from its start each time, which 20,000 scattered subnets make quadratic.
 */

/** Orders are binary logarithms of sizes: order 3 is 8 addresses, a /29. */
type Node<Owner> =
  | { readonly kind: "taken"; readonly owner: Owner }
  /** `free`: order of the largest free block below, -1 if there is none. */
  | { readonly kind: "split"; free: number; left: Node<Owner> | null; right: Node<Owner> | null };

export interface Block {
  /** Lowest address, as an unsigned number; a multiple of 2^order. */
  readonly first: number;
  readonly order: number;
}
const whole: Block = { first: 0, order: 32 };

/** null is a block that is free as a whole. */
export interface Blocks<Owner> {
  root: Node<Owner> | null;
}
export const createBlocks = <Owner>(): Blocks<Owner> => ({ root: null });

const freeOrder = <Owner>(node: Node<Owner> | null, order: number): number =>
  node === null ? order : node.kind === "taken" ? -1 : node.free;
const half = ({ first, order }: Block, right: boolean): Block => ({
  first: right ? first + 2 ** (order - 1) : first,
  order: order - 1,
});
const isRight = (at: Block, address: number): boolean => address >= at.first + 2 ** (at.order - 1);
const contains = (outer: Block, inner: Block): boolean =>
  inner.order <= outer.order && inner.first >= outer.first && inner.first < outer.first + 2 ** outer.order;

/** The lowest free block of this order inside `pool`; null if there is none. */
export function firstFree<Owner>(blocks: Blocks<Owner>, pool: Block, order: number): Block | null {
  let node = blocks.root;
  let at = whole;
  while (at.order > pool.order && node?.kind === "split") {
    const right = isRight(at, pool.first);
    node = right ? node.right : node.left;
    at = half(at, right);
  }
  if (node === null) at = pool;
  if (freeOrder(node, at.order) < order) return null;
  while (at.order > order && node?.kind === "split") {
    const right: boolean = freeOrder(node.left, at.order - 1) < order;
    node = right ? node.right : node.left;
    at = half(at, right);
  }
  return { first: at.first, order };
}

/** Someone who has a part of the block, or null if all of it is free. */
export function ownerIn<Owner>(blocks: Blocks<Owner>, block: Block): Owner | null {
  let node = blocks.root;
  let at = whole;
  while (node?.kind === "split" && at.order > block.order) {
    const right = isRight(at, block.first);
    node = right ? node.right : node.left;
    at = half(at, right);
  }
  while (node?.kind === "split") node = node.left ?? node.right;
  return node?.owner ?? null;
}

/** Takes a block that is free as a whole. */
export function take<Owner>(blocks: Blocks<Owner>, block: Block, owner: Owner): void {
  blocks.root = changed(blocks.root, whole, block, { kind: "taken", owner });
}
/** Frees a block that was taken as it stands. */
export function free<Owner>(blocks: Blocks<Owner>, block: Block): void {
  blocks.root = changed(blocks.root, whole, block, null);
}

/** `node`, which covers `at`, with `block` replaced; free halves merge. */
function changed<Owner>(node: Node<Owner> | null, at: Block, block: Block, to: Node<Owner> | null): Node<Owner> | null {
  if (!contains(at, block) || node?.kind === "taken") {
    if (at.order === block.order && to === null) return null;
    throw new Error(
      `block ${block.first}/${block.order} is not inside a free or split block: the free list is corrupt`,
    );
  }
  if (at.order === block.order) {
    if (node !== null) throw new Error(`block ${block.first}/${block.order} is in use: the free list is corrupt`);
    return to;
  }
  const split = node ?? { kind: "split", free: at.order, left: null, right: null };
  const right = isRight(at, block.first);
  const below = changed(right ? split.right : split.left, half(at, right), block, to);
  if (right) split.right = below;
  else split.left = below;
  if (split.left === null && split.right === null) return null;
  split.free = Math.max(freeOrder(split.left, at.order - 1), freeOrder(split.right, at.order - 1));
  return split;
}
