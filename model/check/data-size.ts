import type { Json } from "../json/json.ts";
import { limits } from "../limits.ts";

/** What a guest's data comes to: attributes and items at every depth, and bytes of its JSON text in UTF-8. */
export interface DataSize {
  readonly entries: number;
  readonly bytes: number;
}
/** Structures are shared between VMs; each is gone through once. */
const known = new WeakMap<object, number>();
const sizes = new WeakMap<object, DataSize>();

export function dataSize(data: Json): DataSize {
  if (typeof data !== "object" || data === null) return { entries: 0, bytes: utf8Length(JSON.stringify(data)) };
  const found = sizes.get(data) ?? { entries: entriesIn(data), bytes: utf8Length(JSON.stringify(data)) };
  sizes.set(data, found);
  return found;
}

function entriesIn(data: Json): number {
  if (typeof data !== "object" || data === null) return 0;
  const before = known.get(data);
  if (before !== undefined) return before;
  let entries = 0;
  for (const item of Object.values(data)) entries += 1 + entriesIn(item);
  known.set(data, entries);
  return entries;
}

function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    // Each half of a surrogate pair counts two.
    if (unit >= 0x80) bytes += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return bytes;
}

/**
 * Why `x.data` is more than a guest may be given, as the rest of a sentence that begins with what it is of; null: it is not. Each entry
 * is a file or a directory of the guest's seed volume, which its host keeps in memory.
 */
export function dataExcess(data: Json): string | null {
  const { entries, bytes } = dataSize(data);
  if (entries > limits.dataEntries) return `has ${entries} attributes and items, and ${limits.dataEntries} are allowed`;
  if (bytes > limits.dataBytes) return `is ${bytes} bytes as JSON, and ${limits.dataBytes} are allowed`;
  return null;
}
