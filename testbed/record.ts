import { randomBytes } from "node:crypto";
import { bind, firstServices } from "../core/cells/binding.ts";
import type { CellServices } from "../core/documents/cells.ts";
import type { Mode } from "../model/cell/network/modes.ts";
import { readJson, writeJson } from "./files.ts";
import type { Places } from "./places.ts";

/** One cell's controller as the installation knows it. */
export interface CellRecord {
  readonly cellUid: string;
  /** Never 0 and never used again, so that old identities in a host's maps cannot mean a new cell. */
  readonly cellNumber: number;
  /** Absent: the first ones. */
  readonly services?: CellServices;
}
/** A personality that `up` starts. */
export const doors = ["caas"] as const;
export type Door = (typeof doors)[number];

/** What a testbed is, durable: the next `up` finds it here. */
export interface InstallationRecord {
  readonly hosts: number;
  readonly servers: number;
  readonly hostMemoryMiB: number;
  readonly hostCpus: number;
  /** Loopback port, kept from start to start where it is free. */
  readonly port: number;
  readonly credentialHash: string;
  /** Its management runs in VMs of its own root cell; absent: as processes, members of the testbed. */
  readonly profile?: "small" | "large";
  /** Placers, and Storage Managers, that run as processes; absent: one. */
  readonly services?: number;
  /** There is an HA Manager. */
  readonly ha?: true;
  /** Cells are child cells of a root cell, made by a Cell Manager: the test starts their controllers where hosts would (tenants/placing/child-cells.testing.ts). */
  readonly rootCell?: true;
  /** By cell, the mode of Eucalyptus that makes its networks; with it there is a Network View Manager, and each host is one of its nodes. Absent: Diverter alone. */
  readonly networkModes?: Readonly<Record<string, Mode>>;
  /** Hosts that carry their cluster to the outside under the MANAGED modes, and take no VMs there. Absent: none. */
  readonly networkHosts?: readonly string[];
  /** Loopback ports of the personalities beside the gateway, by their names, as `caas`; absent: there are none. */
  readonly doors?: Readonly<Partial<Record<Door, number>>>;
  /** They stand in VMs of their own, and not beside the gateway in its VM. Of a cloud that runs in itself. */
  readonly apart?: true;
  readonly nextCellNumber: number;
  readonly cells: Readonly<Record<string, CellRecord>>;
}

/** Controllers have addresses 10.0.3.1 to 10.0.3.254, one per cell number. */
export const mostCells = 254;

export const readRecord = (at: Places): InstallationRecord | undefined => readJson<InstallationRecord>(at.recordFile);
export const writeRecord = (at: Places, record: InstallationRecord): void => writeJson(at.recordFile, record, 0o600);

/** Root cells have these for good. */
export const rootRecord: CellRecord = { cellUid: "root", cellNumber: 1 };

/**
 * The record with a cell more; unchanged when the cell is there already.
 *
 * @param given what a Cell Manager has given it; absent: it gets a UID and the next number here
 */
export const withCell = (record: InstallationRecord, cell: string, given?: CellRecord): InstallationRecord => {
  if (record.cells[cell] !== undefined) return record;
  if (given !== undefined) return { ...record, cells: { ...record.cells, [cell]: given } };
  if (record.nextCellNumber > mostCells) {
    throw new Error(
      `this testbed has made ${mostCells} cells, and their numbers are not used again: start a new one with another --directory`,
    );
  }
  const numbers = Array.from({ length: record.services ?? 1 }, (_, index) => index + 1);
  const others = Object.values(record.cells).map(({ services = firstServices }) => services);
  const services = bind(undefined, null, { placer: numbers, storageManager: numbers, haManager: [1] }, others);
  const added: CellRecord = {
    cellUid: randomBytes(3).toString("hex"),
    cellNumber: record.nextCellNumber,
    ...(services.ok ? { services: services.value } : {}),
  };
  return { ...record, nextCellNumber: record.nextCellNumber + 1, cells: { ...record.cells, [cell]: added } };
};

export const withoutCell = (record: InstallationRecord, cell: string): InstallationRecord => {
  const { [cell]: _, ...cells } = record.cells;
  return { ...record, cells };
};
