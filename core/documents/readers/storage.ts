import { isImageName } from "../../../model/cell/image-name.ts";
import type { OfferedImage } from "../../../model/check/check-storage.ts";
import {
  absentAs,
  branded,
  byKind,
  checked,
  count,
  dictionary,
  document,
  either,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  ordinal,
  pattern,
  secret,
} from "../../../model/json/reader.ts";
import type { AgentBinned, AgentMark, AgentSeen, Mark, VolumeAbout } from "../bin.ts";
import { isBinFileName } from "../bin.ts";
import type { SavedState } from "../saved-state.ts";
import type {
  ActualConnection,
  ActualGrant,
  ActualKept,
  ActualSuccessor,
  ActualVolume,
  AgentImage,
  AgentLease,
  AgentLeaseActual,
  AgentReaders,
  AgentReadersActual,
  AgentServer,
  AgentVolume,
  AgentVolumeActual,
  Attachment,
  BootRecord,
  DesiredConnection,
  DesiredGrant,
  DesiredVolume,
  Layer,
  LeaseHolder,
  StorageOffers,
} from "../vocabulary.ts";
import { type DesiredLetGo, type HeldFor, mostHeldFor, type VolumeSize } from "../volumes.ts";
import {
  address,
  amountMiB,
  cellText,
  hostText,
  most,
  pathText,
  port,
  progressFields,
  sentence,
  serverText,
  sha256,
  uidText,
  word,
  yes,
} from "./values.ts";

/** Readers of what is said about volumes: by controllers, Storage Managers, storage agents and hosts. */

/** Of a volume's file. Above 16 TiB, qcow2's tables of 64 KiB clusters stop being sensible. */
export const fileSizes = { leastMiB: 1, mostMiB: 16 * 1024 * 1024 } as const;
const fileMiB = integer(fileSizes.leastMiB, fileSizes.mostMiB);
const imageText = branded(String, isImageName, "an image's name: at most 63 letters, digits, `.`, `_` and `-`");

const copiesHeldFor = optional(list(object<HeldFor>({ domain: word, path: pathText }), mostHeldFor));
export const desiredVolume = document(
  checked(
    object<DesiredVolume>({
      uid: uidText,
      cell: cellText,
      path: pathText,
      origin: byKind<DesiredVolume["origin"]>({
        empty: object({ kind: oneOf("empty") }),
        image: object({ kind: oneOf("image"), image: imageText }),
        copy: object({ kind: oneOf("copy"), volume: uidText }),
      }),
      sizeMiB: nullable(fileMiB),
      access: oneOf("rw", "ro"),
      heldFor: copiesHeldFor,
    }),
    ({ origin, sizeMiB }) => (origin.kind === "empty" && sizeMiB === null ? "an empty volume with a size" : null),
  ),
  { key: { field: "uid", of: ({ uid }) => uid } },
);
export const actualVolume = document(
  object<ActualVolume>({
    ...progressFields,
    server: absentAs(null, nullable(serverText)),
    sizeMiB: absentAs(null, nullable(amountMiB)),
    smallerMiB: optional(amountMiB),
    roomMiB: optional(amountMiB),
    frozen: yes,
    owes: optional(object<NonNullable<VolumeSize["owes"]>>({ phase: oneOf("waiting", "failed"), reason: sentence })),
    available: optional(oneOf(false)),
    hidden: yes,
    noImage: yes,
    noRoom: yes,
    held: yes,
    heldFor: copiesHeldFor,
  }),
);
export const desiredLetGo = document(object<DesiredLetGo>({ uid: uidText }), {
  key: { field: "uid", of: ({ uid }) => uid },
});

export const desiredConnection = document(
  object<DesiredConnection>({
    uid: uidText,
    volume: uidText,
    vm: uidText,
    incarnation: count,
    host: hostText,
    cell: cellText,
    succession: yes,
    asksFirst: yes,
  }),
  { key: { field: "uid", of: ({ uid }) => uid } },
);

/** They become lines of a file and parts of an argument. */
const unguessable = secret(pattern(/^[A-Za-z0-9._-]{1,128}$/, "at most 128 letters, digits, `.`, `_` and `-`"));
const psk = secret(pattern(/^(?:[0-9a-f]{2}){1,128}$/, "a key of at most 256 hexadecimal digits, two for each byte"));
export const layer = object<Layer>({
  volume: uidText,
  address,
  port,
  exportName: unguessable,
  pskIdentity: unguessable,
  pskHex: psk,
  writable: oneOf(true, false),
});
const savedState = object<SavedState>({
  memoryMiB: amountMiB,
  cpus: count,
  diskMiB: amountMiB,
  engine: word,
  form: word,
  memorySha256: sha256,
  stateSha256: sha256,
  readsOnly: yes,
});
export const bootRecord = object<BootRecord>({
  digest: word,
  address,
  port,
  // The kernel's own bound is 2,048 characters on most architectures.
  commandLine: pattern(/^.{0,4096}$/s, "a command line of at most 4096 characters"),
  kernelSha256: optional(sha256),
  initrdSha256: optional(sha256),
  agent: yes,
  saved: optional(savedState),
  savedSizes: optional(list(savedState, most.savedSizes)),
});
export const attachment = object<Attachment>({
  volume: uidText,
  epoch: count,
  sizeMiB: amountMiB,
  growToMiB: optional(fileMiB),
  layers: list(layer, most.ofMachine),
  boot: nullable(bootRecord),
  pristine: yes,
});
const leaseHolder = object<LeaseHolder>({ vm: uidText, incarnation: count, host: hostText });
export const actualConnection = document(
  object<ActualConnection>({
    ...progressFields,
    incarnation: absentAs(0, count),
    attachment: absentAs(null, nullable(attachment)),
    hidden: yes,
    holder: optional(nullable(leaseHolder)),
  }),
);

const granted = {
  volume: uidText,
  to: either(
    either(object({ vm: uidText }), object({ domain: word }), "an object with `vm` or with `domain`"),
    either(object({ account: word }), object({ tenants: word }), "an object with `account` or with `tenants`"),
    "an object with `vm`, `domain`, `account` or `tenants`",
  ),
  grant: oneOf("copy", "connect"),
  hold: optional(pathText),
  holder: optional(word),
};
export const desiredGrant = document(object<DesiredGrant>({ uid: uidText, ...granted }), {
  key: { field: "uid", of: ({ uid }) => uid },
});
export const actualGrant = document(
  object<ActualGrant>({
    ...progressFields,
    copied: yes,
    grants: optional(object<NonNullable<ActualGrant["grants"]>>(granted)),
  }),
);

// --- Storage Manager ↔ storage agent -------------------------------------------------------------------------------

const volumeAbout = object<VolumeAbout>({
  cell: cellText,
  path: pathText,
  origin: nullable(uidText),
  originImage: optional(word),
});
const binFileText = branded(String, isBinFileName, "the name of a file in a bin: a UID, a dot and a number");
export const agentBinned = document(
  object<AgentBinned>({
    file: binFileText,
    volume: uidText,
    about: nullable(volumeAbout),
    overlay: oneOf(true, false),
    sizeMiB: amountMiB,
    usedMiB: amountMiB,
    deleted: pattern(/^[0-9TZ:.+-]{1,32}$/, "a time, as ISO 8601 writes it"),
    offered: oneOf(true, false),
    untouched: optional(oneOf(true)),
  }),
  { key: { field: "file", of: ({ file }) => file } },
);
export const agentVolume = document(
  checked(
    object<AgentVolume>({
      uid: uidText,
      source: byKind<AgentVolume["source"]>({
        empty: object({ kind: oneOf("empty") }),
        image: object<Extract<AgentVolume["source"], { readonly kind: "image" }>>({
          kind: oneOf("image"),
          image: imageText,
          digest: optional(word),
        }),
        overlay: object({ kind: oneOf("overlay") }),
      }),
      sizeMiB: nullable(fileMiB),
      made: yes,
      about: optional(volumeAbout),
      from: optional(binFileText),
    }),
    ({ source, sizeMiB }) =>
      sizeMiB === null && source.kind !== "image" ? "a volume with a size, as it comes from no image" : null,
  ),
  { key: { field: "uid", of: ({ uid }) => uid } },
);
export const agentVolumeActual = document(
  object<AgentVolumeActual>({
    ...progressFields,
    sizeMiB: nullable(amountMiB),
    roomMiB: optional(amountMiB),
    usedMiB: nullable(amountMiB),
    boot: nullable(bootRecord),
    image: optional(word),
    badImage: yes,
    about: optional(volumeAbout),
  }),
);

const lease = object<AgentLease>({
  volume: uidText,
  epoch: ordinal,
  holder: nullable(leaseHolder),
  succession: yes,
});
const ofVolume = { key: { field: "volume", of: ({ volume }: AgentReaders) => volume } } as const;
export const agentLease = document(lease, ofVolume);
/** A host asks for itself, or (without a holder) votes that the present holder is lost. */
export const agentSuccession = document(lease, ofVolume);
export const actualSuccessor = document(object<ActualSuccessor>({ epoch: count, holder: nullable(leaseHolder) }));
export const agentLeaseActual = document(
  object<AgentLeaseActual>({
    ...progressFields,
    epoch: count,
    holder: nullable(leaseHolder),
    layer: nullable(layer),
  }),
);
export const agentReaders = document(object<AgentReaders>({ volume: uidText }), ofVolume);
export const agentReadersActual = document(object<AgentReadersActual>({ ...progressFields, layer: nullable(layer) }));
export const agentServer = document(
  object<AgentServer>({
    server: serverText,
    address,
    totalMiB: amountMiB,
    freeMiB: amountMiB,
    binMiB: optional(amountMiB),
    mark: optional(
      object<AgentMark>({
        start: word,
        tick: count,
        adopted: yes,
        adoption: optional(object<Mark>({ start: word, tick: count })),
      }),
    ),
    promisedMiB: optional(dictionary(amountMiB, /^[a-z0-9.-]{1,64}$/, 10_000)),
  }),
  { speaker: { field: "server", of: ({ server }) => `agent.${server}` } },
);
export const agentSeen = document(
  object<AgentSeen>({ start: word, last: nullable(object<Mark>({ start: word, tick: count })) }),
);
export const agentImage = document(object<AgentImage>({ name: imageText, digest: word, sizeMiB: amountMiB }), {
  key: { field: "name", of: ({ name }) => name },
});
export const actualKept = document(
  object<ActualKept>({ keptMiB: count, left: optional(dictionary(count, /^[A-Za-z0-9-]{1,64}$/, 10_000)) }),
);

export const storageOffers = document(
  object<StorageOffers>({
    totalMiB: amountMiB,
    freeMiB: amountMiB,
    largestFreeMiB: amountMiB,
    largestMiB: amountMiB,
    largestCopyMiB: amountMiB,
    promisableMiB: amountMiB,
    images: optional(list(object<OfferedImage>({ name: imageText, sizeMiB: amountMiB }), most.networks)),
    complete: oneOf(true, false),
    saysGrants: yes,
  }),
);
