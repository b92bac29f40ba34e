import type { Uid } from "../../../../model/cell/identifiers.ts";
import type { VolumeAbout } from "../../../documents/bin.ts";
import { write } from "../../../outbox.ts";
import { epochsOf, keepVolume, type ManagerState, placesOf, type VolumeRecord } from "../state.ts";

/*
 * An origin that was made of an image and that nobody could ever write is what the image is. Its copies say which image that was, in
 * what is kept with their files. So when the server of such an origin is lost for good, with the Storage Manager's store, the origin
 * can be made anew under its copies: of that image and no other of its name.
 */

export const aboutOf = ({ cell, path, origin, originImage }: VolumeRecord): VolumeAbout => ({
  cell,
  path,
  origin,
  ...(originImage === undefined ? {} : { originImage }),
});

/** The record of a copy with the image that its origin is, noted once that is known. An origin is never written after its first copy. */
export function noteOriginImage(state: ManagerState, copy: Uid, record: VolumeRecord): VolumeRecord {
  if (record.origin === null || record.originImage !== undefined) return record;
  const origin = state.volumes.get(record.origin);
  const agent = origin && state.agents.get(origin.agent);
  const image = agent?.volumes.get(record.origin)?.image;
  // An older server, or one that has not said all, may have forgotten that somebody wrote.
  const isKnown = origin?.frozen === true && agent?.inStep === true && !agent.older;
  if (!isKnown || image === undefined || epochsOf(state, agent, record.origin) > 0) return record;
  const noted = { ...record, originImage: image };
  write(state.outbox, `volume/${copy}`, noted);
  keepVolume(state, copy, noted);
  return noted;
}

/** Digest of the image that all copies of it say it is; null: there is no copy, or one does not say so. */
export function imageUnderCopies(state: ManagerState, volume: Uid): string | null {
  const images = new Set<string | undefined>();
  for (const copy of state.copiesHeldOf.get(volume) ?? [])
    for (const { volumes } of placesOf(state, copy)) {
      const about = volumes.get(copy)?.about;
      if (about?.origin === volume) images.add(about.originImage);
    }
  const [image, ...others] = images;
  return others.length > 0 ? null : (image ?? null);
}

export const otherImage = (name: string, digest: string): string =>
  `its file is on no storage server, and there are copies of it: it is made anew of the image with the digest ${digest} alone, and no server has that as "${name}": add that image again, or delete the copies`;
