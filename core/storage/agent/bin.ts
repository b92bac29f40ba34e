import type { PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { AgentVolume } from "../../documents/vocabulary.ts";
import type { Effect } from "../../env.ts";
import { type BinFile, binnedOf, binRules, holdsNothing, isInBin, mayBeEmptied, whatGoes } from "../bin.ts";
import type { AgentState } from "./records.ts";
import type { BinAnswer, BinLabel, VolumeRecord } from "./work.ts";

/** What an agent makes of its bin; the rules are in `bin.ts`. */

type Publish = (key: string, value: Json) => void;

/** Takes over what is in the bin. */
export function keepBin(state: AgentState, files: readonly BinFile[], effects: Effect[], publish: Publish): void {
  for (const name of state.bin?.keys() ?? [])
    if (!files.some(({ file }) => file === name)) publish(`bin/${name}`, null);
  for (const { file, volume, about, offered } of files)
    if (offered && state.bin?.get(file)?.offered === false)
      effects.push({ kind: "log", event: "bin/offered", fields: { file, volume, path: about?.path ?? null } });
  state.bin = new Map(files.map((file) => [file.file, file]));
  for (const file of files) publish(`bin/${file.file}`, binnedOf(file) as unknown as Json);
}

/** One more, known at the same moment as that its volume is gone. */
export function addToBin(state: AgentState, file: BinFile, publish: Publish): void {
  state.bin ??= new Map();
  state.bin.set(file.file, file);
  publish(`bin/${file.file}`, binnedOf(file) as unknown as Json);
}

/** What is to go now by its age, or for want of room. */
export function sweepBin(state: AgentState, effects: Effect[]): BinAnswer {
  // What an older server has may be the only copy of something that was brought back since.
  if (state.marks.older !== null) return { empty: [], kept: [] };
  const { totalMiB, freeMiB } = state.space ?? { totalMiB: 0, freeMiB: null };
  const rules = binRules(state.options.bin ?? {}, totalMiB);
  const gone = whatGoes([...(state.bin?.values() ?? [])], rules, freeMiB, originsThere(state));
  for (const { file, why } of gone) logEmptied(file, why, effects);
  return { empty: gone.map(({ file }) => file.file), kept: [] };
}

export function emptyBin(state: AgentState, wanted: readonly string[], effects: Effect[]): BinAnswer {
  const answer = mayBeEmptied(state.bin ?? new Map(), wanted, originsThere(state));
  for (const name of answer.empty) {
    const file = state.bin?.get(name);
    if (file !== undefined) logEmptied(file, "an operator emptied it", effects);
  }
  for (const { file, why } of answer.kept) effects.push({ kind: "log", event: "bin/kept", fields: { file, why } });
  return answer;
}

function logEmptied({ file, volume, about }: BinFile, why: string, effects: Effect[]): void {
  effects.push({ kind: "log", event: "bin/emptied", fields: { file, volume, path: about?.path ?? null, why } });
}

/** Origins of the copies on this server. */
const originsThere = ({ volumes }: AgentState): ReadonlySet<Uid> =>
  new Set([...volumes.values()].flatMap(({ about }) => (about?.origin ? [about.origin] : [])));

/** Why a volume that is wanted is not made: its file may be brought back, and a blank one would hide that. */
export function whyNotAnew(state: AgentState, uid: Uid, { from }: AgentVolume): string | null {
  if (from !== undefined)
    return state.bin === null || state.bin.has(from)
      ? null
      : `${from}, which it was to begin with, is not in the bin of storage server ${state.options.server} any more`;
  return whyInBin(state, uid);
}

/** What is to be done about a former file of the volume; null: there is none. */
export function whyInBin(state: AgentState, uid: Uid): string | null {
  const files = [...(state.bin?.values() ?? [])];
  const [binned] = files
    .filter((file) => file.volume === uid && !holdsNothing(file, files))
    .sort((one, other) => one.ageMs - other.ageMs);
  return binned === undefined ? null : isInBin(state.options.server, binnedOf(binned));
}

/**
 * What goes into the bin with the file.
 * @param wasLeased to anybody, ever. A record of a lease outlives its volume, and every version has written it.
 */
export const labelOf = ({ about, source, manager, fresh }: VolumeRecord, wasLeased: boolean): BinLabel => ({
  about: about ?? null,
  manager: manager ?? null,
  overlay: source.kind === "overlay",
  ...(fresh === true && !wasLeased ? { untouched: true as const } : {}),
});

/** A manager sees the files of its own volumes. */
export const mayRestore = ({ bin }: AgentState, peer: PeerName, name: string): boolean =>
  (bin?.get(name)?.manager ?? peer) === peer;

export const binMiBOf = ({ bin }: AgentState): { readonly binMiB?: number } =>
  bin === null ? {} : { binMiB: [...bin.values()].reduce((sum, { usedMiB }) => sum + usedMiB, 0) };

/** Another key has no file that is anybody's. */
export const isBinToSee = (state: AgentState, peer: PeerName, key: string): boolean =>
  !key.startsWith("bin/") || mayRestore(state, peer, key.slice("bin/".length));
