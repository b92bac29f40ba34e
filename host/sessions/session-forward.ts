/**
 * What connects to a port of a guest, in the guest: to its own address, so that what listens there for itself alone (127.0.0.1) is not reached. OpenBSD's `nc` ends the
 * connection's one direction with `-N` when its input has ended; busybox' does so by itself and knows no such option.
 * @param address of the guest, from its host's own record @param port from 1 to 65535
 */
export const connectCommand = (address: string, port: number): readonly string[] => [
  "sh",
  "-c",
  'nc -h 2>&1 | grep -q "^.*-N" && exec nc -N "$0" "$1"; exec nc "$0" "$1"',
  address,
  String(port),
];
