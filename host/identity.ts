/**
 * Unprivileged users of the processes that touch what a guest can influence. Numbers above Debian's dynamic range, so
 * that no account has to exist; each has nothing but the files that were given to it.
 */
export interface ProcessOwner {
  readonly uid: number;
  readonly gid: number;
}
/** QEMU on a host. */
export const qemuIdentity: ProcessOwner = { uid: 64055, gid: 64055 };
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
