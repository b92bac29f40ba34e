import { isUpload } from "../../../model/cell/image-name.ts";
import type { VolumeOrigin, VolumeSource } from "../../../model/contract/tenancy/volumes/volumes.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { refused } from "../../requests/refused.ts";
import type { Harvest, Release, Users } from "./harvest.ts";
import { pathOf, type StoredVolume, versionIn } from "./layout.ts";
import type { StorageOf } from "./quota.ts";
import { type Asker, rightsOf } from "./rights.ts";
import { type FindUpload, heldUpload } from "./uploads.ts";

type Stored = (asker: Asker, uid: string) => Promise<StoredVolume>;

/** Where the bytes of a version come from, as the element that it is. */
export interface Asked {
  readonly asker: Asker;
  /** By the credential of who asks. */
  readonly users: Users;
  readonly harvest: Harvest;
  readonly release: Release;
  readonly upload: FindUpload;
  /** Of an account. */
  readonly storage: StorageOf;
}
export interface Made {
  readonly element: JsonObject;
  /** What its origin has, of a copy; null: it is none, or nobody knows. */
  readonly originMiB: number | null;
  /** Where the grant is that holds it, as `StoredVersion` has it. */
  readonly held: string | null;
  /** What has to be done once it is there. */
  readonly next?: () => Promise<void>;
}

/**
 * @param at path that it gets
 * @param stored another volume, if who asks may see it
 */
export async function elementFrom(
  { asker, harvest, upload: findUpload }: Asked,
  source: VolumeSource,
  { at, stored }: { readonly at: string; readonly stored: Stored },
): Promise<Made> {
  requireOneSource(source);
  const { sizeMiB, image, upload, from, access } = source;
  const size = sizeMiB === undefined ? {} : { "x.size": sizeMiB };
  const common = { "x.public": true, ...size };
  if (from?.cell !== undefined && from.path !== undefined) {
    const hold = await harvest({ cell: from.cell, path: from.path, hold: at });
    return {
      element: { "x.type": "VolumeCopy", "x.image": hold.reference, ...common },
      originMiB: hold.sizeMiB,
      held: hold.at,
      next: hold.grant,
    };
  }
  if (from?.volume !== undefined) {
    const { origin, version } = await copied(asker, { ...from, volume: from.volume }, stored);
    const { number } = version;
    const element = { "x.type": "VolumeCopy", "x.image": `<ref:/${pathOf(origin.uid)}/v${number}>`, ...common };
    return { element, originMiB: version.countedMiB === 0 ? null : version.countedMiB, held: null };
  }
  const readOnly = access === undefined ? {} : { "x.access": access };
  if (upload !== undefined) {
    const found = await findUpload(upload);
    if (sizeMiB !== undefined && sizeMiB < found.sizeMiB)
      throw refused(400, "bad-request", `the upload has ${found.sizeMiB} MiB, and its volume as much at least`);
    const element = { "x.type": "Volume", ...common, "x.size": sizeMiB ?? found.sizeMiB, ...readOnly };
    const held = heldUpload(upload, asker.account);
    return { element: { ...element, "x.import": found.image }, originMiB: null, held };
  }
  const imported = image === undefined ? {} : { "x.import": image };
  return { element: { "x.type": "Volume", ...common, ...imported, ...readOnly }, originMiB: null, held: null };
}

/** Who has the copy in the primary cell has its bytes: no grant of the storage layer is asked for within one cell. */
async function copied(asker: Asker, from: VolumeOrigin & { readonly volume: string }, stored: Stored) {
  const origin = await stored(asker, from.volume);
  const number = from.version ?? origin.version;
  const version = versionIn(origin, number);
  if (version === undefined) throw refused(404, "not-found", `${origin.name} has no version ${number}`);
  if (!rightsOf(asker, origin).includes("copy"))
    throw refused(403, "forbidden", `${origin.name} is shared with you, and not to be copied`);
  return { origin, version };
}
/** Whether it may still be copied, in the turn of who copies it: a right may have been taken back since it was looked at. */
export async function requireCopied(
  { asker }: Pick<Asked, "asker">,
  { from }: VolumeSource,
  stored: Stored,
): Promise<void> {
  if (from?.volume !== undefined) await copied(asker, { ...from, volume: from.volume }, stored);
}

function requireOneSource({ sizeMiB, image, upload, from, access }: VolumeSource): void {
  const wrong = (why: string) => refused(400, "bad-request", why);
  // Whose it is, is looked at where it is asked for as an upload, and nowhere behind this.
  if (image !== undefined && isUpload(image))
    throw wrong("such a name is of what users upload: a volume of an upload names it as `upload`, by its number");
  if (from !== undefined) {
    const ofCell = from.cell !== undefined && from.path !== undefined;
    const isVolume = from.volume !== undefined && from.cell === undefined && from.path === undefined;
    const isCell = ofCell && from.volume === undefined && from.version === undefined;
    if (!isVolume && !isCell)
      throw wrong(
        "from names a persistent volume, with a version or without, or a cell and the path of a volume there",
      );
    if (image !== undefined || upload !== undefined)
      throw wrong("a volume is of an image or from another one, or of an upload, and of one of these alone");
    if (access === "ro") throw wrong("a copy is writable: access is for what is empty or of an image");
  } else if (image !== undefined && upload !== undefined)
    throw wrong("a volume is of an image or an upload, and not both");
  else if (sizeMiB === undefined && upload === undefined)
    throw wrong("an empty volume, or one of an image, needs a sizeMiB");
}
