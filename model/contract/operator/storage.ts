import type * as api from "../../api.ts";
import {
  boolean,
  described,
  type Fields,
  integer,
  list,
  nullable,
  number,
  record,
  type Schema,
  text,
  time,
} from "../schema.ts";
import { missingServers } from "../values.ts";

/*
 * What requests and answers carry of storage servers, backups and stores that were lost: schemas as in `../values.ts`.
 */

const maybe = { text: nullable(text()), number: nullable(number), time: nullable(time) };

export const storeReturned = record<api.StoreReturned>({ returned: text() }, "StoreReturned");
const leftovers: Fields<Omit<api.ServiceOrphans, "service">> = {
  clients: list(
    record<api.ServiceOrphans["clients"][number]>({
      client: text(),
      forked: boolean,
      kept: integer(),
      orphans: integer(),
      keys: list(text()),
    }),
  ),
  receivers: list(
    record<api.ServiceOrphans["receivers"][number]>({ receiver: text(), forked: boolean, itForked: boolean }),
  ),
};
/** As a service says it of itself. */
export const leftoversOf = record(leftovers);
export const serviceOrphans = record<api.ServiceOrphans>({ service: text(), ...leftovers }, "ServiceOrphans");
export const orphanList = record<api.OrphanList>(
  {
    services: list(serviceOrphans),
    missing: list(record<api.MissingService>({ service: text(), why: text() }, "MissingService")),
  },
  "OrphanList",
);
const binned: Fields<Omit<api.BinEntry, "server">> = {
  file: text(),
  volume: text(),
  path: maybe.text,
  sizeMiB: number,
  usedMiB: number,
  deleted: time,
  overlay: boolean,
  offered: boolean,
};
/** As a storage server says it. */
export const binnedFile = record(binned);
export const binEntry = record<api.BinEntry>({ server: text(), ...binned }, "BinEntry");
export interface BinFile {
  readonly server: string;
  readonly file: string;
}
export const binFile = record<BinFile>({ server: text(), file: text() }, "BinFile");
export const binList = record<api.BinList>({ files: list(binEntry), missing: missingServers }, "BinList");
/** As a storage server says it. */
export const adoptedLeases: Schema<api.ServerAdopted["leases"]> = list(
  record<api.ServerAdopted["leases"][number]>({
    volume: text(),
    path: maybe.text,
    epoch: integer(),
    known: integer(),
  }),
);
export const serverAdopted = record<api.ServerAdopted>({ server: text(), leases: adoptedLeases }, "ServerAdopted");

export interface BackupRecipient {
  readonly recipient: string;
}
export const backupRecipient = record<BackupRecipient>(
  { recipient: described(text(), "X25519 public key, base64url") },
  "BackupRecipient",
);
/** As `runtime/backup/order.ts` makes it. */
export interface SignedBackupOrder {
  readonly text: string;
  readonly signature: string;
  readonly authority: string;
}
export const signedBackupOrder = record<SignedBackupOrder>(
  { text: text(), signature: text(), authority: text() },
  "SignedBackupOrder",
);
export const backupList = record<api.BackupList>(
  {
    backups: list(record<api.BackupList["backups"][number]>({ name: text(), bytes: integer(), servers: list(text()) })),
    missing: missingServers,
  },
  "BackupList",
);
