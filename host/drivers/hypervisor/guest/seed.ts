import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { dataExcess } from "../../../../model/check/data-size.ts";
import type { MachineSpecification } from "../driver.ts";
import { dataTree } from "./data-tree.ts";

const run = promisify(execFile);

/**
 * The files of a machine's seed volume, by name: cloud-init's NoCloud data source (the instance is the VM: its disk and what
 * cloud-init made on it, SSH host keys above all, outlive an incarnation), `data.json` with `x.data` and the interfaces for
 * a guest without cloud-init, and `x.data` once more as a tree of files below `data/` for one without a JSON parser. Which of its nice
 * wishes are so, and what it has by them, is said to a VM that has such: in `data.json`, and their names in `nice`, one a line.
 */
export const seedFiles = (machine: MachineSpecification): Readonly<Record<string, string>> => {
  const { nice, memoryMiB, cpus } = machine;
  const first = machine.interfaces[0]?.desired;
  const hostName = first?.hostName ?? machine.name;
  const interfaces = machine.interfaces.map(({ desired }) => ({
    mac: desired.mac,
    address: desired.address,
    prefixLength: desired.prefixLength,
    gateway: desired.gateway,
    nameServer: desired.nameServer,
    hostName: desired.hostName,
    domain: desired.domain,
  }));
  const ethernets = Object.fromEntries(
    interfaces.map(({ mac }, index) => [
      `nic${index}`,
      { match: { macaddress: mac }, dhcp4: true, "dhcp4-overrides": { "use-routes": index === 0 } },
    ]),
  );
  // JSON is YAML, so cloud-init reads these as they are.
  return {
    ...(machine.data === null ? {} : dataTree(machine.data, "data")),
    "meta-data": `${JSON.stringify({ "instance-id": machine.vm, "local-hostname": hostName })}\n`,
    "user-data": "#cloud-config\n{}\n",
    ...(interfaces.length > 0 ? { "network-config": `${JSON.stringify({ version: 2, ethernets })}\n` } : {}),
    // For a guest that reads with nothing but its shell: VM HOST-NAME, and MAC ADDRESS NETMASK GATEWAY NAME-SERVER DOMAIN.
    identity: `${machine.vm} ${hostName}\n`,
    interfaces: interfaces
      .map(
        (card) =>
          `${card.mac} ${card.address} ${netmask(card.prefixLength)} ${card.gateway} ${card.nameServer} ${card.domain}\n`,
      )
      .join(""),
    ...(nice === undefined ? {} : { nice: nice.map((name) => `${name}\n`).join("") }),
    "data.json": `${JSON.stringify(
      {
        vm: machine.vm,
        incarnation: machine.incarnation,
        hostName,
        domain: first?.domain ?? null,
        data: machine.data,
        interfaces,
        ...(nice === undefined ? {} : { nice: { so: nice, memoryMiB, cpus } }),
      },
      null,
      2,
    )}\n`,
  };
};

const netmask = (prefixLength: number): string =>
  [0, 8, 16, 24].map((from) => 256 - 2 ** (8 - Math.min(8, Math.max(0, prefixLength - from)))).join(".");

/** The files that a machine is given beside those above. Throws a sentence for one that would lie elsewhere or take their place. */
const addedFiles = ({ files = {} }: MachineSpecification, made: object): readonly (readonly [string, Buffer])[] =>
  Object.entries(files).map(([path, content]) => {
    const parts = path.split("/");
    if (parts.some((part) => part === "" || part === "." || part === "..") || path.includes("\0"))
      throw new Error(`"${path}" is no path on a seed volume: names with "/" in between, none of them "." or ".."`);
    const [first = ""] = parts;
    if (first === "data" || Object.hasOwn(made, first))
      throw new Error(`"${path}" would take the place of the host's own files on the seed volume`);
    return [path, content] as const;
  });

/** Writes the seed volume, an ISO 9660 image with the label that cloud-init looks for. Its files are for its owner alone. */
export const writeSeed = async (machine: MachineSpecification, image: string): Promise<void> => {
  const excess = machine.data === null ? null : dataExcess(machine.data);
  // Each entry is a file in memory, twice while this works.
  if (excess !== null) throw new Error(`its data ${excess}`);
  const directory = `${image}.files`;
  const made = seedFiles(machine);
  const files = [...Object.entries(made), ...addedFiles(machine, made)];
  await mkdir(directory, { mode: 0o700 });
  try {
    for (const [name, content] of files) {
      await mkdir(dirname(join(directory, name)), { recursive: true });
      await writeFile(join(directory, name), content);
    }
    await run("genisoimage", ["-quiet", "-output", image, "-volid", "CIDATA", "-joliet", "-rock", directory]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
