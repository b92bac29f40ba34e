import { createHash } from "node:crypto";

/**
 * Unprivileged users of the processes that touch what a guest can influence. Numbers above Debian's dynamic range, so
 * that no account has to exist; each has nothing but the files that were given to it.
 */
export interface ProcessOwner {
  readonly uid: number;
  readonly gid: number;
}
/** A QEMU that belongs to no VM, and whoever owns what is handed to QEMUs as descriptors alone. */
export const qemuIdentity: ProcessOwner = { uid: 64055, gid: 64055 };
/**
 * The QEMU of one VM, the same at every start. Users are what keeps processes apart that are both without rights: with one
 * user for all, a guest that takes over its QEMU would have the control sockets, keys and seeds of all others on the host.
 * One of 2^26 above the dynamic ranges; that two of a hundred VMs meet is less likely than 1 in 10,000.
 */
export const machineIdentity = (vm: string): ProcessOwner => {
  const drawn = createHash("sha256").update(`cells qemu ${vm}`).digest().readUInt32BE(0) >>> 6;
  const number = 1_800_000_000 + drawn;
  return { uid: number, gid: number };
};
/** `qemu-storage-daemon` and `qemu-img` on a storage server. */
export const storageIdentity: ProcessOwner = { uid: 64056, gid: 64056 };
/**
 * Whatever reads an uploaded image, in its sandbox: nothing on the machine belongs to it. One of 65,536, to be drawn anew
 * for each, so that no sandbox uses up another's number of processes; above all that systemd and containers hand out.
 */
export const imageIdentity = (drawn: number): ProcessOwner => {
  const number = 1_900_000_000 + (drawn % 65_536);
  return { uid: number, gid: number };
};

/** Arguments of `setpriv` in front of a command: that user, no capabilities, no way to gain any. */
export const setprivArguments = ({ uid, gid }: ProcessOwner): readonly string[] => [
  `--reuid=${uid}`,
  `--regid=${gid}`,
  "--clear-groups",
  "--bounding-set=-all",
  "--inh-caps=-all",
  "--no-new-privs",
];
