import { randomBytes } from "node:crypto";
import { chown, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { savedFor } from "../../../core/documents/saved-state.ts";
import type { BootRecord, DesiredDisk } from "../../../core/documents/vocabulary.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { qemuIdentity } from "../unix-users.ts";
import { blockChain, chainNode } from "./block-chain.ts";
import { BootCache } from "./boot-cache.ts";
import type { ComposedDisk, MachineSize, StorageDriver } from "./driver.ts";
import { requireServers } from "./servers.ts";

/** qcow2 files over NBD with TLS-PSK, composed in the block layer of the VM's QEMU. */
export function createStorageDriver({
  configuration,
}: {
  readonly configuration: ProcessConfiguration;
}): StorageDriver {
  const bootCache = new BootCache(configuration);
  const credentials = join(configuration.runDirectory, "credentials");
  // By connection: machines that read one origin have the same attachment, and each lets go of its own copy.
  const directoryOf = ({ connection, attachment }: DesiredDisk): string =>
    join(credentials, `${connection}-${attachment.epoch}`);

  /** A state that cannot be fetched is no reason not to start: the machine then boots, and says why. */
  const savedFiles = async (
    boot: BootRecord,
    pristine: boolean,
    size: MachineSize,
  ): Promise<Pick<NonNullable<ComposedDisk["boot"]>, "saved">> => {
    const state = savedFor(boot, size);
    // Only worth its size where it can be used.
    if (state === undefined || !(pristine || state.readsOnly === true)) return {};
    const saved = await bootCache.saved(boot, state).catch((error: Error) => ({ missing: error.message }));
    return { saved };
  };

  return {
    async compose(disk: DesiredDisk, resumed?: MachineSize): Promise<ComposedDisk> {
      const { attachment } = disk;
      await requireServers(attachment.layers, configuration.peersFile);
      const directory = directoryOf(disk);
      const layerDirectory = (index: number): string => join(directory, String(index));
      // QEMU's user may pass through, and read only what is its own.
      await mkdir(credentials, { recursive: true, mode: 0o711 });
      await mkdir(directory, { recursive: true, mode: 0o711 });
      for (const [index, layer] of attachment.layers.entries())
        await writeKey(layerDirectory(index), `${layer.pskIdentity}:${layer.pskHex}\n`);
      const chain = blockChain(attachment, disk.connection, disk.readOnly, layerDirectory);
      const { boot } = attachment;
      return {
        desired: disk,
        objects: chain.objects.map((object) => JSON.stringify(object)),
        blockdevs: chain.blockdevs.map((node) => JSON.stringify(node)),
        node: chain.node,
        boot:
          boot === null
            ? null
            : {
                ...(await bootCache.files(boot)),
                commandLine: boot.commandLine,
                ...(resumed === undefined ? {} : await savedFiles(boot, attachment.pristine === true, resumed)),
              },
        secretDirectories: attachment.layers.map((_layer, index) => layerDirectory(index)),
      };
    },

    node: chainNode,

    async release(disk: DesiredDisk): Promise<void> {
      await rm(directoryOf(disk), { recursive: true, force: true });
    },
  };
}

async function writeKey(directory: string, line: string): Promise<void> {
  // Passable and no more: QEMU's user gets the file, and nobody but us puts another in its place.
  await mkdir(directory, { recursive: true, mode: 0o711 });
  const fresh = join(directory, `.new-${randomBytes(6).toString("hex")}`);
  await writeFile(fresh, line, { mode: 0o400, flag: "wx" });
  await chown(fresh, qemuIdentity.uid, qemuIdentity.gid);
  await rename(fresh, join(directory, "keys.psk"));
}
