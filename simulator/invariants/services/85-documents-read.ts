import { kindOf, type ServiceKind } from "../../../core/documents/permissions.ts";
import { documentsOf } from "../../../core/documents/readers/table.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

/** What a service sends, whoever gets it reads whole: no reader refuses it, and none leaves a field out. */
export const documentsRead: Invariant = {
  number: 85,
  title: "every document that a service sends passes its reader as it is",
  watch: ({ kernel }, verdict) => {
    const check = (at: PeerName, verb: "desired" | "actual", from: PeerName, key: string, value: Json): void => {
      const read = documentsOf(kindOf(at) as ServiceKind)(verb, from, key, value);
      verdict.check(read.ok, () => `${from} sent ${at} ${key}: ${read.ok ? "" : read.error}`);
      // A reader returns what it was given when it leaves nothing out.
      if (read.ok) verdict.check(read.value === value, () => `the reader of ${key} leaves out a field of ${from}'s`);
    };
    kernel.watchers.push({
      frame: (from, to, frame) => {
        if (frame.frame === "desire" && frame.value !== null)
          check(peerName(to), "desired", peerName(from), frame.key, frame.value);
        if (frame.frame === "actual" && frame.value !== null)
          check(peerName(to), "actual", peerName(from), frame.key, frame.value);
      },
    });
    return undefined;
  },
};
