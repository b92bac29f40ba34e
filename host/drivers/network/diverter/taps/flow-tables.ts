import type { Dataplane } from "../program/dataplane.ts";
import { flow, flowKey, word } from "../program/layout.ts";
import { createMap, mapTypes, openInner } from "../program/libbpf.ts";

/**
 * Flows that an interface may have at once: in use, and opened without that anything came of it yet. The oldest idle ones
 * of a table make room in it, never another table's or interface's. The kernel takes their memory at once, 112 bytes each,
 * and no cell's quota counts it; so who has more memory may have more flows. How long an idle one counts: `idle_limit` in
 * `../program/parts/flows.h`.
 */
const flowTables = ["flows", "openings"] as const;
type Table = (typeof flowTables)[number];
type Sizes = { readonly [table in Table]: number };

const [fewest, most] = [1024, 65536];
const perMiB = 2;

/**
 * Both at most 146 KiB for a guest of up to 512 MiB, and 9 MiB for one of 32 GiB and more. What asks once and is answered
 * once, as of a name server, is an opening for good, so there are not much fewer of them.
 */
export function flowTableSizes(memoryMiB: number): Sizes {
  const size = 2 ** Math.floor(Math.log2(Math.min(most, Math.max(fewest, memoryMiB * perMiB))));
  return { flows: (size * 3) / 4, openings: size / 2 };
}
/** Versions before gave these to every interface, and one whose guest runs keeps its flows: no guest gets them here. */
const formerly: Sizes = { flows: 6144, openings: 2048 };

/** Both tables are there, and as large as the guest may have them. */
export function hasFlowTables(dataplane: Dataplane, slot: Buffer, memoryMiB: number): boolean {
  const found = sizesOf(dataplane, slot);
  return isSame(found, flowTableSizes(memoryMiB)) || isSame(found, formerly);
}
/** Makes both tables if one is missing or of another size. Nothing passes without `flows`, so that one comes last. */
export function addFlowTables(dataplane: Dataplane, slot: Buffer, memoryMiB: number): void {
  if (hasFlowTables(dataplane, slot, memoryMiB)) return;
  const sizes = flowTableSizes(memoryMiB);
  for (const name of flowTables.toReversed()) {
    const table = createMap(mapTypes.lruHash, "flow_table", flowKey.size, flow.size, sizes[name], 0);
    try {
      dataplane.maps[name].set(slot, word.encode({ value: table.fd }));
    } finally {
      table.close();
    }
  }
}
export function removeFlowTables({ maps }: Dataplane, slot: Buffer): void {
  for (const name of flowTables) maps[name].delete(slot);
}

const isSame = (a: Partial<Sizes>, b: Sizes): boolean => flowTables.every((name) => a[name] === b[name]);

function sizesOf({ maps }: Dataplane, slot: Buffer): Partial<Sizes> {
  const sizes: { [table in Table]?: number } = {};
  for (const name of flowTables) {
    const id = maps[name].get(slot);
    const table = id === null ? null : openInner(word.decode(id).value, flowKey.size, flow.size);
    if (table === null) continue;
    sizes[name] = table.mostEntries();
    table.close();
  }
  return sizes;
}
