/**
 * A machine of this size that booted the image and has no identity yet: `/boot/<digest>/memory`, the guest's memory,
 * and `/boot/<digest>/state`, its devices. They belong to the image's disk as it is unwritten.
 */
export interface SavedState {
  readonly memoryMiB: number;
  readonly cpus: number;
  /** Size of the disk that it knows. */
  readonly diskMiB: number;
  /** QEMU's version and processor, and the SHA-256 of the machine's form: no other machine can take the state. */
  readonly engine: string;
  readonly form: string;
  /** SHA-256 (hexadecimal) of the two files. */
  readonly memorySha256: string;
  readonly stateSha256: string;
  /** Its guest never writes to that disk: it is right for every start, and on a disk that is larger. */
  readonly readsOnly?: true;
}

/** An image's states, as its record and a host's have them. */
interface Saved {
  readonly saved?: SavedState;
  readonly savedSizes?: readonly SavedState[];
}
/** One of the two files of a saved state, beside the image's other files. */
export interface SavedPart {
  readonly name: string;
  readonly sha256: string;
}
type Size = Pick<SavedState, "memoryMiB" | "cpus">;

/**
 * Names of the two files of a saved state, of an image that is saved in several sizes (`savedSizes`). Such a
 * memory is packed (`packed-memory.ts`).
 */
export const savedPart = (name: "memory" | "state", { memoryMiB, cpus }: Size): string =>
  `${name}-${memoryMiB}-${cpus}${name === "memory" ? ".zst" : ""}`;

/** The state of an image for a machine of this size; undefined: none was saved, or of other sizes alone. */
export const savedFor = ({ saved, savedSizes }: Saved, { memoryMiB, cpus }: Size): SavedState | undefined =>
  saved ?? savedSizes?.find((each) => each.memoryMiB === memoryMiB && each.cpus === cpus);

/** All files of saved states that an image has. */
export const savedParts = ({ saved, savedSizes = [] }: Saved): readonly SavedPart[] => [
  ...(saved === undefined
    ? []
    : [
        { name: "memory", sha256: saved.memorySha256 },
        { name: "state", sha256: saved.stateSha256 },
      ]),
  ...savedSizes.flatMap((state) => [
    { name: savedPart("memory", state), sha256: state.memorySha256 },
    { name: savedPart("state", state), sha256: state.stateSha256 },
  ]),
];
