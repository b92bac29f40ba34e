import { createHash } from "node:crypto";
import { dirname, join } from "node:path";

/** Where a host keeps the keys of its datagrams by epoch (decision 58), beside the file of one key. */
export const gossipRingFile = (gossipKeyFile: string): string => join(dirname(gossipKeyFile), "gossip-ring.json");

/** By this, who has a key shows that it has the same one as another: the first 16 digits of a SHA-256. It tells nothing of the key. */
export const markOfGossipKey = (key: Uint8Array): string =>
  createHash("sha256").update("cells gossip key mark").update(key).digest("hex").slice(0, 16);

/** The bytes of a key (hexadecimal) as its file has them: a file of one key ends its line, and the line's end is part of the key. */
export const gossipKeyBytes = (key: string): Buffer => Buffer.from(`${key}\n`);
