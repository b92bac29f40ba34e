import type { Json } from "../../json/json.ts";
import { type AuditHead, type AuditRecord, rings } from "../audit/audit.ts";
import { faultsIn } from "../audit/chain.ts";
import { inOrder, ringOf } from "../audit/rings.ts";

/** What a service has written of its audit, changes and refusals in their order. */
export const recordsIn = (written: ReadonlyMap<string, Json>): readonly AuditRecord[] =>
  [...written]
    .flatMap(([key, value]) => (/(^|\/)audit(-refusals)?\/\d+$/.test(key) ? [value as unknown as AuditRecord] : []))
    .sort(inOrder);

/** What is wrong with the two chains that it has written. @param prefix of the keys under which it says how far they go */
export const faultsOf = (written: ReadonlyMap<string, Json>, prefix = ""): readonly string[] =>
  rings.flatMap((ring) => {
    const head = written.get(`${prefix}${ring === "changes" ? "audit" : "audit-refusals"}`);
    const records = recordsIn(written).filter((record) => ringOf(record) === ring);
    if (head === undefined) return records.length === 0 ? [] : [`nothing says how far the ${ring} go`];
    return faultsIn({ ...(head as unknown as AuditHead), records });
  });
