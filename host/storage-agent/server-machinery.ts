import { randomBytes } from "node:crypto";
import { mkdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { HostName, Ipv4 } from "../../model/cell/identifiers.ts";
import { isAlive } from "../drivers/hypervisor/process/process.ts";
import { takeAdoptFile } from "./adopt-file.ts";
import { endExport, findExports, isServing, mostConnections, movedBy, startExport } from "./export-process.ts";
import { listImages } from "./images/images.ts";
import { MiB } from "./images/qcow2.ts";
import type { AgentMachinery } from "./machinery.ts";
import { putOutStrangers } from "./strangers.ts";
import type { VolumeFiles } from "./volume-files.ts";

export interface MachineryOptions {
  readonly address: Ipv4;
  /** Durable. */
  readonly directory: string;
  /** Volatile; `exports/` below it. */
  readonly runDirectory: string;
  readonly imagesDirectory: string;
  /** Where a host is, or all are; none: that is not known. */
  readonly hostAddresses: (host: HostName | null) => Promise<readonly string[]>;
}

/** The real server: qcow2 files, one `qemu-storage-daemon` per export. */
export const createMachinery = (options: MachineryOptions, files: VolumeFiles): AgentMachinery => {
  const exportsDirectory = join(options.runDirectory, "exports");
  return {
    prepare: async () => {
      await files.prepare();
      await mkdir(exportsDirectory, { recursive: true, mode: 0o700 });
    },
    drawStart: () => randomBytes(12).toString("hex"),
    readMark: () => files.readMark(),
    writeMark: (mark) => files.writeMark(mark),
    takeAdoption: () => takeAdoptFile(options.directory),
    create: (volume, source, sizeMiB, from) => files.create(volume, source, sizeMiB, from),
    ready: (volume, sizeMiB) => files.ready(volume, sizeMiB),
    remove: (volume, label) => files.remove(volume, label),
    bin: () => files.bin.list(),
    empty: (file) => files.bin.empty(file),
    usage: () => files.usage(),
    space: async () => {
      const disk = await statfs(files.directory);
      return {
        totalMiB: Math.floor((disk.blocks * disk.bsize) / MiB),
        freeMiB: Math.floor((disk.bavail * disk.bsize) / MiB),
      };
    },
    images: async () =>
      (await listImages(options)).map(({ manifest: { name, digest, sizeMiB } }) => ({ name, digest, sizeMiB })),
    findExports: () => findExports(exportsDirectory),
    startExport: (desire) =>
      startExport({ exportsDirectory, address: options.address, file: files.path(desire.volume), ...desire }),
    endExport: (found) => endExport(exportsDirectory, found),
    isServing: (found, access) => isServing(exportsDirectory, found, access),
    putOutStrangers: (exports) =>
      putOutStrangers(
        exports.map(({ volume, writable, port, holder }) => ({
          volume,
          port,
          places: writable ? mostConnections.writable : mostConnections.readers,
          from: () => options.hostAddresses(holder),
        })),
      ),
    isAlive: (found) => isAlive(found.process),
    moved: movedBy,
    drawSecrets: () => ({
      exportName: `x${randomBytes(16).toString("hex")}`,
      pskIdentity: `i${randomBytes(8).toString("hex")}`,
      pskHex: randomBytes(32).toString("hex"),
    }),
    after: (ms, run) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
};
