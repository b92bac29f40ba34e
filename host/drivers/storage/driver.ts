import type { DesiredDisk } from "../../../core/documents/vocabulary.ts";

/** A disk ready to be given to QEMU. Secrets are in files that the arguments name, never in the arguments. */
export interface ComposedDisk {
  readonly desired: DesiredDisk;
  /** `-object` values in JSON form (TLS credentials, one per layer), in order. */
  readonly objects: readonly string[];
  /** `-blockdev` values in JSON form, in order; the last one's node name is `node`. */
  readonly blockdevs: readonly string[];
  readonly node: string;
  /** Local paths of the recorded kernel, when this disk's image has one. */
  readonly boot: {
    readonly kernel: string;
    readonly initrd: string;
    readonly commandLine: string;
    /** Local files of the image's saved state, or why they are not here; absent: not asked for, or none is recorded. */
    readonly saved?: SavedFiles | { readonly missing: string };
  } | null;
  /** Directories of secrets that QEMU must be able to read. */
  readonly secretDirectories: readonly string[];
}

export interface MachineSize {
  readonly memoryMiB: number;
  readonly cpus: number;
}

export interface SavedFiles {
  readonly memory: string;
  readonly state: string;
}

/** Composes a volume on the host that uses it: overlay over origin over origin, in QEMU's block layer. */
export interface StorageDriver {
  /**
   * Writes the credentials, fetches the kernel into the cache if needed. Idempotent per connection. Rejects with a
   * sentence, which names the storage server where one is the reason. `resumed`: of a machine of this size that is to go on
   * from a saved state.
   */
  compose(disk: DesiredDisk, resumed?: MachineSize): Promise<ComposedDisk>;
  /** The name of the block node that `compose` made for the disk. */
  node(disk: DesiredDisk): string;
  /** Forgets the credentials of a connection. Others that read the same volume keep theirs. */
  release(disk: DesiredDisk): Promise<void>;
}
