import type { PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { AgentBinned, VolumeAbout } from "../documents/bin.ts";

/**
 * The bin of a storage server. A volume that is taken back leaves its file here, since what was taken back by mistake, by a
 * service that lost its store, or by somebody who got in, must not be gone at once. What may go, and when, is decided here.
 *
 * A file is kept for a time that is counted while the agent runs, not by the wall clock: a clock that leaps empties no bin,
 * and a server that was off for a month keeps what it had.
 *
 * A file that something else needs (an origin, of a copy that is still there or in the bin) goes after what needs it.
 */
export interface BinFile {
  /** `<uid of the volume>.<number>`: a volume that was brought back and deleted again has several. */
  readonly file: string;
  readonly volume: Uid;
  readonly about: VolumeAbout | null;
  readonly overlay: boolean;
  readonly manager: PeerName | null;
  readonly sizeMiB: number;
  readonly usedMiB: number;
  /** ISO 8601, for people. */
  readonly deleted: string;
  /** How long it has been here while the agent ran. */
  readonly ageMs: number;
  readonly offered: boolean;
  /** See `AgentBinned`. */
  readonly untouched?: true;
}

/** As an agent is configured. */
export interface BinOptions {
  /** 7 days if absent. */
  readonly keepHours?: number;
  /** A twentieth of the server's space, at most 16 GiB, if absent. */
  readonly reserveMiB?: number;
}
export interface BinRules {
  readonly keepMs: number;
  /** Below so much free space the oldest files give way. */
  readonly reserveMiB: number;
}
const hourMs = 60 * 60_000;
export const usualKeepHours = 7 * 24;
/** A bin with more has its oldest files emptied: each is a file to list and a document to tell. */
export const mostBinFiles = 10_000;
const largestReserveMiB = 16 * 1024;

/** @param totalMiB the server's whole space */
export const binRules = ({ keepHours, reserveMiB }: BinOptions, totalMiB: number): BinRules => ({
  keepMs: (keepHours ?? usualKeepHours) * hourMs,
  reserveMiB: reserveMiB ?? Math.min(largestReserveMiB, Math.floor(totalMiB / 20)),
});

export interface Emptied {
  readonly file: BinFile;
  /** A sentence. */
  readonly why: string;
}

/**
 * What goes now, oldest first: what has been here for its time, and, while there is too little room, what has been here
 * longest. Nothing that is needed.
 * @param needed origins of what is there, by UID
 */
export function whatGoes(
  files: readonly BinFile[],
  rules: BinRules,
  freeMiB: number | null,
  needed: ReadonlySet<Uid>,
): readonly Emptied[] {
  const left = new Map([...files].sort((one, other) => other.ageMs - one.ageMs).map((file) => [file.file, file]));
  const copies = new Map<Uid, number>();
  for (const { overlay, about } of files)
    if (overlay && about?.origin) copies.set(about.origin, (copies.get(about.origin) ?? 0) + 1);
  const gone: Emptied[] = [];
  let free = freeMiB ?? Number.POSITIVE_INFINITY;
  // What goes may have been all that needed another: then that may go as well.
  for (let again = true; again; ) {
    again = false;
    for (const file of left.values()) {
      const why = whyGoes(file, rules, free, left.size);
      if (why === null || needed.has(file.volume) || (copies.get(file.volume) ?? 0) > 0) continue;
      left.delete(file.file);
      if (file.overlay && file.about?.origin) copies.set(file.about.origin, (copies.get(file.about.origin) ?? 0) - 1);
      gone.push({ file, why });
      free += file.usedMiB;
      again = true;
    }
  }
  return gone;
}

function whyGoes(file: BinFile, rules: BinRules, freeMiB: number, count: number): string | null {
  if (file.ageMs >= rules.keepMs) return `it was in the bin for ${Math.round(rules.keepMs / hourMs)} hours`;
  if (freeMiB < rules.reserveMiB && file.usedMiB > 0)
    return `the server has ${Math.floor(freeMiB)} MiB free, less than the ${rules.reserveMiB} MiB that are kept free, and it was among the oldest in the bin`;
  return count > mostBinFiles ? `the bin holds ${mostBinFiles} files at most, and it was the oldest` : null;
}

/** Another file of the bin whose bytes are of use only above this one's. */
function whoNeeds(file: BinFile, all: Iterable<BinFile>): BinFile | null {
  for (const other of all) if (other !== file && other.overlay && other.about?.origin === file.volume) return other;
  return null;
}

/** What an operator wants emptied, and why some of it is not. A copy and its origin may go together. */
export function mayBeEmptied(
  files: ReadonlyMap<string, BinFile>,
  wanted: readonly string[],
  needed: ReadonlySet<Uid>,
): { readonly empty: readonly string[]; readonly kept: readonly { readonly file: string; readonly why: string }[] } {
  const rest = [...files.values()].filter(({ file }) => !wanted.includes(file));
  const kept: { file: string; why: string }[] = [];
  const empty: string[] = [];
  for (const name of wanted) {
    const file = files.get(name);
    if (file === undefined) {
      kept.push({ file: name, why: "there is no such file in the bin" });
      continue;
    }
    const by = whoNeeds(file, rest);
    if (needed.has(file.volume)) kept.push({ file: name, why: "it is the origin of a copy that is still there" });
    else if (by !== null) kept.push({ file: name, why: `${by.file} in the bin is a copy of it: empty that first` });
    else empty.push(name);
  }
  return { empty, kept };
}

/**
 * Is nothing hidden where its volume is made anew? What nobody could write is the same again, unless a copy in a bin that somebody
 * wrote would then be read above something else. So may a cell have again what it gave back before it had all of it.
 */
export const holdsNothing = (file: AgentBinned, all: readonly AgentBinned[]): boolean =>
  file.untouched === true &&
  !file.offered &&
  !all.some((other) => other.untouched !== true && other.overlay && other.about?.origin === file.volume);

/** What others are told of a file; its age changes all the time, and is not. */
export const binnedOf = ({ ageMs: _age, manager: _manager, ...told }: BinFile): AgentBinned => told;

/** Why a volume of that UID is not made, while its former file is in the bin. @param server its name */
export const isInBin = (server: string, { file, deleted, offered }: AgentBinned): string =>
  offered
    ? `its former file ${server}/${file} is being brought back`
    : `its former file, deleted at ${deleted}, is in the bin of storage server ${server}: \`cells bin restore ${server}/${file}\` ` +
      `brings it back, and after \`cells bin empty ${server}/${file}\` the volume is made anew`;
