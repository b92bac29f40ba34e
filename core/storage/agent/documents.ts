import type { Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { Fault } from "../../../model/json/reader.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { beatKey } from "../../documents/ha.ts";
import * as read from "../../documents/readers/storage.ts";
import type { AgentImage, AgentLease, AgentReaders, AgentVolume } from "../../documents/vocabulary.ts";
import { isRequestsKey } from "../heartbeat/requests.ts";
import type { LeaseRecord, OriginRecord, VolumeRecord } from "./work.ts";

/** The desired documents that reach an agent: a UID becomes a file name and a size an argument. */
export type AgentDesired =
  | { readonly kind: "volume"; readonly uid: Uid; readonly value: AgentVolume | null }
  | { readonly kind: "lease"; readonly uid: Uid; readonly value: AgentLease | null }
  | { readonly kind: "readers"; readonly uid: Uid; readonly value: AgentReaders | null }
  | { readonly kind: "succession"; readonly uid: Uid; readonly value: AgentLease | null };

/** What is to be said of the server's images; null: no longer there. */
export function imageDocuments(
  state: { readonly images: Set<string> },
  images: readonly AgentImage[],
): ReadonlyMap<string, Json> {
  const told = new Map<string, Json>([...state.images].map((name) => [`image/${name}`, null]));
  state.images.clear();
  for (const image of images) {
    state.images.add(image.name);
    told.set(`image/${image.name}`, { ...image });
  }
  return told;
}

const keyForm = /^(volume|lease|readers|succession)\/([A-Za-z0-9][A-Za-z0-9-]{0,62})$/;

/** Whether a key is one that an agent takes. */
export const isAgentKey = (key: string): boolean =>
  key === "seen" || key === beatKey || isRequestsKey(key) || keyForm.test(key);

const kinds = {
  volume: read.agentVolume,
  lease: read.agentLease,
  readers: read.agentReaders,
  succession: read.agentSuccession,
} as const;

/** Reads one desired document. The error is a sentence that says what is wrong with it. */
export function readDesired(key: string, value: Json): Result<AgentDesired, string> {
  const match = keyForm.exec(key);
  if (match === null)
    return fail(`"${key}" is no key of a storage agent: volume/, lease/, readers/ or succession/ and a UID`);
  const kind = match[1] as AgentDesired["kind"];
  const uid = match[2] as Uid;
  if (value === null) return ok({ kind, uid, value: null });
  const document = kinds[kind].of(value, uid);
  if (document !== null) return ok({ kind, uid, value: document } as AgentDesired);
  const fault = kinds[kind].read(value);
  return fail(fault instanceof Fault ? `${key}: ${fault}` : `${key} is of another volume`);
}

/**
 * What stands for a stored desire that cannot be read: that all of it stays as it is. A file that nobody seems to want would be
 * removed, and an export ended. Null: there is nothing of it.
 */
export function asItIs(
  key: string,
  records: {
    readonly volumes: ReadonlyMap<Uid, VolumeRecord>;
    readonly leases: ReadonlyMap<Uid, LeaseRecord>;
    readonly origins: ReadonlyMap<Uid, OriginRecord>;
  },
): AgentDesired | null {
  const [kind, uid] = key.split("/") as [string, Uid];
  const [volume, lease] = [records.volumes.get(uid), records.leases.get(uid)];
  if (kind === "volume" && volume !== undefined)
    return { kind, uid, value: { uid, source: volume.source, sizeMiB: volume.sizeMiB, made: true } };
  if (kind === "lease" && lease !== undefined)
    return { kind, uid, value: { volume: uid, epoch: lease.epoch, holder: lease.holder } };
  return kind === "readers" && records.origins.has(uid) ? { kind, uid, value: { volume: uid } } : null;
}
