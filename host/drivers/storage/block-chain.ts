import { createHash } from "node:crypto";
import type { Attachment, DesiredDisk, Layer } from "../../../core/documents/vocabulary.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";

/** What QEMU is told about one volume: `-object` and `-blockdev` values as data, in the order in which it needs them. */
export interface BlockChain {
  readonly objects: readonly { readonly [key: string]: unknown }[];
  readonly blockdevs: readonly { readonly [key: string]: unknown }[];
  /** Node name of the whole chain. */
  readonly node: string;
}

/**
 * How long requests wait for a server that restarts before the machine is stopped (`werror=stop`: the guest sees no
 * error). Longer than an export takes to be started again, short enough to be told of a server that is gone.
 */
const reconnectDelaySeconds = 10;
/** How long the first connection may take. */
const openTimeoutSeconds = 10;

/**
 * Overlay over origin over origin, top first in `attachment.layers`. Every layer's qcow2 has no backing file of its own:
 * what it leaves unallocated is read from the node named here, and the bottom has none. Only the top may be written.
 *
 * @param credentials directory of layer n's `keys.psk`
 */
export function blockChain(
  attachment: Attachment,
  connection: Uid,
  readOnly: boolean,
  credentials: (index: number) => string,
): BlockChain {
  const objects: { readonly [key: string]: unknown }[] = [];
  const blockdevs: { readonly [key: string]: unknown }[] = [];
  let below: string | null = null;
  for (let index = attachment.layers.length - 1; index >= 0; index -= 1) {
    const layer = attachment.layers[index] as Layer;
    const name = nodeName(connection, attachment.epoch, index);
    const frozen = index > 0 || readOnly || !layer.writable;
    objects.push({
      "qom-type": "tls-creds-psk",
      id: `${name}k`,
      dir: credentials(index),
      endpoint: "client",
      username: layer.pskIdentity,
    });
    blockdevs.push({
      driver: "nbd",
      "node-name": `${name}n`,
      server: { type: "inet", host: layer.address, port: String(layer.port) },
      export: layer.exportName,
      "tls-creds": `${name}k`,
      "reconnect-delay": reconnectDelaySeconds,
      "open-timeout": openTimeoutSeconds,
      "read-only": frozen,
      discard: "unmap",
    });
    blockdevs.push({
      driver: "qcow2",
      "node-name": `${name}q`,
      file: `${name}n`,
      backing: below,
      "read-only": frozen,
      ...(frozen ? {} : { discard: "unmap", "detect-zeroes": "unmap" }),
    });
    below = `${name}q`;
  }
  if (below === null) throw new Error(`the attachment of volume ${attachment.volume} has no layers`);
  return { objects, blockdevs, node: below };
}

/** Node name of a disk's whole chain. */
export const chainNode = ({ connection, attachment }: DesiredDisk): string =>
  `${nodeName(connection, attachment.epoch, 0)}q`;

/** QEMU allows 31 characters, letters first; a UID may be longer, so a hash stands for it. */
function nodeName(connection: Uid, epoch: number, index: number): string {
  const hash = createHash("sha256").update(`${connection}/${epoch}`).digest("hex").slice(0, 16);
  return `d${hash}-${index}`;
}
