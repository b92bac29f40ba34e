import { parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import {
  cellName,
  cidr,
  elementPath,
  hostName,
  ipv4,
  mac,
  peerName,
  serverName,
  uid,
} from "../../../model/cell/identifiers.ts";
import type { Usage } from "../../../model/check/check-limits.ts";
import {
  absentAs,
  branded,
  count,
  type Fields,
  integer,
  maximumCount,
  nullable,
  number,
  object,
  oneOf,
  optional,
  pattern,
  text,
} from "../../../model/json/reader.ts";
import { longestSentence } from "../../outbox.ts";
import type { InUse } from "../cells.ts";
import type { CompiledRule, Phase, Progress } from "../vocabulary.ts";

/** Readers of what many kinds of documents have in common. */
const part = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const partForm = new RegExp(`^${part}$`);
const partRule = "at most 63 small letters, digits and hyphens, a hyphen neither first nor last";
const cellForm = new RegExp(`^(?=.{1,64}$)${part}(?:\\.${part})*$`);
const uidForm = /^[A-Za-z0-9-]{1,64}$/;
const peerForm = /^[a-z](?:[a-z0-9.-]{0,62}[a-z0-9])?$/;

export const uidText = branded(uid, (value) => uidForm.test(value), "a UID: at most 64 letters, digits and hyphens");
/** Names of people's making: in any language, inside one another, and bounded by what a document may be. */
const pathLength = 2 ** 20;
export const pathText = branded(elementPath, isText(pathLength), `a path of at most ${pathLength} characters`);
export const cellText = branded(cellName, (value) => cellForm.test(value), "a cell's name: labels joined by dots");
export const hostText = branded(hostName, (value) => partForm.test(value), `a host's name: ${partRule}`);
export const serverText = branded(serverName, (value) => partForm.test(value), `a server's name: ${partRule}`);
export const peerText = branded(
  peerName,
  (value) => peerForm.test(value),
  "the name of a service: `host.h1`, `placer`",
);
export const address = branded(ipv4, (value) => parseIpv4(value) !== null, "an IPv4 address");
export const network = branded(cidr, (value) => parseNetwork(value) !== null, "an IPv4 network in CIDR notation");
export const macAddress = branded(
  mac,
  (value) => /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(value),
  "a MAC address in small letters: `52:54:00:12:34:56`",
);
export const sha256 = pattern(/^[0-9a-f]{64}$/, "a SHA-256 of 64 hexadecimal digits");
/** A sentence for a person; it may name many hosts. */
export const sentence = text(longestSentence);
/** A host, or a path with its cell's whole name first; of what is about no one thing nothing. */
export const alertSubject = text(1024);
/** From what a VM boots: an image by its name, or the path of a volume of another cell. */
export const bootImage = text(pathLength);
/** A word, a version, a file's name. */
export const word = text(256);
export const port = integer(0, 65_535);
/** In the dataplane's tables, 32 bits wide; 0 stands for none there. */
export const identityNumber = integer(1, 2 ** 32 - 1);
/** Of a machine or a file, in MiB: far above what there is, and still exact when summed up. */
export const amountMiB = number(0, maximumCount);
/** A pebibyte: up to there a Placer tells hosts by their free memory and their names in one exact number (`orderOf`). */
export const mostMemoryMiB = 2 ** 30;
/** Memory of a VM or of the machine around it, which is given in whole MiB. */
export const wholeMiB = integer(0, mostMemoryMiB);
export const speedMHz = number(0, maximumCount);

/** How many of something one document may name. */
export const most = {
  /** Disks, interfaces, volumes of one VM; layers of one volume. */
  ofMachine: 1024,
  savedSizes: 64,
  hosts: 100_000,
  rules: 1_000_000,
  networks: 100_000,
  groups: 256,
  clusters: 256,
  resolvers: 8,
  servers: 8,
  doors: 32,
  authorised: 1000,
  vmsOfHost: 10_000,
  poolHosts: 10_000,
} as const;

function isText(length: number): (value: string) => boolean {
  return (value) => value.length <= length && value.isWellFormed();
}

export const phase = oneOf<Phase>("waiting", "working", "ready", "failed", "deleting");
/** The fields of `Progress`, for the documents that have them. */
export const progressFields = { phase, reason: nullable(sentence) } as const satisfies Fields<Progress>;
export const progressReader = object<Progress>(progressFields);

export const ports = object<CompiledRule["ports"]>({ from: port, to: port });
export const protocol = oneOf("any", "tcp", "udp", "icmp");

/** One that is absent is nothing: a previous version did not know it, or had nothing to say yet. */
const amount = absentAs(0, count);
const amounts = {
  vms: amount,
  memoryMiB: amount,
  cpus: amount,
  volumes: amount,
  storageMiB: amount,
  subnets: amount,
  addresses: amount,
  publicAddresses: amount,
} as const satisfies Fields<Usage>;
/** Amounts of a quota. */
export const usage = object<Usage>(amounts);
/** A parent of a version that does not count something bounds nobody by that. */
export const grantedUsage = object<Usage>({ ...amounts, publicAddresses: absentAs(2 ** 40, count) });
export const inUse = object<InUse>({ vms: count, memoryMiB: count, cpus: count, storageMiB: count });
export const yes = optional(oneOf(true));
