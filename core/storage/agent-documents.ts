import type { Uid } from "../../model/identifiers.ts";
import { isImageName } from "../../model/image-name.ts";
import type { Json, JsonObject } from "../../model/json.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import type { AgentLease, AgentReaders, AgentVolume } from "../documents.ts";

/** The desired documents that reach an agent, checked: a UID becomes a file name and a size an argument. */
export type AgentDesired =
  | { readonly kind: "volume"; readonly uid: Uid; readonly value: AgentVolume | null }
  | { readonly kind: "lease"; readonly uid: Uid; readonly value: AgentLease | null }
  | { readonly kind: "readers"; readonly uid: Uid; readonly value: AgentReaders | null }
  | { readonly kind: "succession"; readonly uid: Uid; readonly value: AgentLease | null };

const keyForm = /^(volume|lease|readers|succession)\/([A-Za-z0-9][A-Za-z0-9-]{0,62})$/;
/** 16 TiB: above it, qcow2's tables of 64 KiB clusters stop being sensible. */
const maximumMiB = 16 * 1024 * 1024;

/** Whether a key is one that an agent takes. */
export const isAgentKey = (key: string): boolean => keyForm.test(key);

/** Reads one desired document. The error is a sentence that says what is wrong with it. */
export function readDesired(key: string, value: Json): Result<AgentDesired, string> {
  const match = keyForm.exec(key);
  if (match === null)
    return fail(`"${key}" is no key of a storage agent: volume/, lease/, readers/ or succession/ and a UID`);
  const kind = match[1] as AgentDesired["kind"];
  const uid = match[2] as Uid;
  if (value === null) return ok({ kind, uid, value: null });
  if (!isObject(value)) return fail(`${key} is not an object`);
  switch (kind) {
    case "volume":
      return isVolume(value, uid)
        ? ok({ kind, uid, value: value as unknown as AgentVolume })
        : fail(`${key} needs uid, a source (empty, image with a name, overlay) and sizeMiB from 1 to ${maximumMiB}`);
    case "lease":
      return isLease(value, uid)
        ? ok({ kind, uid, value: value as unknown as AgentLease })
        : fail(`${key} needs volume, an epoch above 0 and a holder (vm, incarnation, host) or null`);
    case "succession":
      return isLease(value, uid) && value.holder !== null
        ? ok({ kind, uid, value: value as unknown as AgentLease })
        : fail(`${key} needs volume, an epoch above 0 and a holder (vm, incarnation, host)`);
    case "readers":
      return value.volume === uid ? ok({ kind, uid, value: { volume: uid } }) : fail(`${key} is of another volume`);
  }
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isVolume(value: JsonObject, uid: Uid): boolean {
  const { source, sizeMiB } = value;
  if (value.uid !== uid || !isObject(source) || (value.made !== undefined && value.made !== true)) return false;
  const image = source.kind === "image" && typeof source.image === "string" && isImageName(source.image);
  if (sizeMiB === null) return image;
  if (!Number.isInteger(sizeMiB) || (sizeMiB as number) < 1 || (sizeMiB as number) > maximumMiB) return false;
  return image || source.kind === "empty" || source.kind === "overlay";
}

function isLease(value: JsonObject, uid: Uid): boolean {
  const { epoch, holder } = value;
  if (value.volume !== uid || !Number.isSafeInteger(epoch) || (epoch as number) < 1) return false;
  if (value.succession !== undefined && value.succession !== true) return false;
  if (holder === null) return true;
  return (
    isObject(holder) &&
    typeof holder.vm === "string" &&
    Number.isSafeInteger(holder.incarnation) &&
    typeof holder.host === "string"
  );
}
