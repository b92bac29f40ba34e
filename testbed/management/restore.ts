import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { putBack } from "../../runtime/backup/put-back.ts";
import type { Unpacked, UnpackedPart } from "../../runtime/backup/unpack.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";
import { memberFiles } from "../configuration.ts";
import { withLock } from "../lock.ts";
import { defaultDirectory, type Places, places } from "../places.ts";
import { readRecord } from "../record.ts";
import { firstProcesses } from "../supervisor/first-process.ts";
import { type Member, membersOf } from "../supervisor/members.ts";
import { supervisorPart } from "../supervisor/supervisor-backup.ts";
import { memberStatus } from "../supervisor/supervisor-client.ts";
import { type Restored, restoreSelfHosted } from "./restore-self-hosted.ts";

export interface RestoreOptions {
  readonly unpacked: Unpacked;
  /** Default: `$CELLS_HOME`, or /var/lib/cells/testbed. */
  readonly directory?: string;
  /** Peer names. Default: all that is no host and no storage server: what these have goes with their volumes and machines. */
  readonly only?: readonly string[] | undefined;
}

/** Puts stores of a backup into a testbed. Rejects, with nothing changed, where one runs. */
export const restoreTestbed = async ({ unpacked, directory, only }: RestoreOptions): Promise<Restored> => {
  if (process.getuid?.() !== 0) throw new Error("the stores belong to root: run the command with `sudo`");
  const at = places(directory || defaultDirectory());
  return withLock(at.tag, async () => {
    await requireSameInstallation(at, unpacked);
    const record = readRecord(at);
    if (record?.profile !== undefined) {
      if (only !== undefined)
        throw new Error(
          "the management of this testbed runs in VMs: it is restored as a whole, without --only; each service then takes its own part",
        );
      return restoreSelfHosted(at, { ...record, profile: record.profile }, unpacked);
    }
    const chosen = choose(unpacked, only);
    await requireStopped(at, chosen);
    const restored: string[] = [];
    const put = async (part: UnpackedPart, to: string): Promise<void> => {
      await putBack(part, to);
      restored.push(part.manifest.name);
    };
    // The record first: it says what else there is.
    const supervisor = chosen.find(({ manifest }) => manifest.name === supervisorPart);
    if (supervisor !== undefined) await put(supervisor, at.directory);
    const members = membersHere(at);
    for (const part of chosen) {
      const member = members.get(part.manifest.name);
      if (member !== undefined) await put(part, memberFiles(at, member).data);
    }
    const names = unpacked.parts.map(({ manifest }) => manifest.name);
    return { restored, left: names.filter((name) => !restored.includes(name)), anew: [] };
  });
};

const choose = ({ parts }: Unpacked, only: readonly string[] | undefined): readonly UnpackedPart[] => {
  const names = parts.map(({ manifest }) => manifest.name);
  const stranger = only?.find((name) => !names.includes(name));
  if (stranger !== undefined) throw new Error(`the backup has no part "${stranger}"; it has ${names.join(", ")}`);
  const isManagement = (name: string): boolean => !name.startsWith("host.") && !name.startsWith("agent.");
  return parts.filter(({ manifest: { name } }) => only?.includes(name) ?? isManagement(name));
};

const membersHere = (at: Places): ReadonlyMap<string, Member> => {
  const record = readRecord(at);
  if (record === undefined)
    throw new Error(
      `${at.recordFile} is missing, and the backup's part "${supervisorPart}" is not among those restored`,
    );
  return new Map(membersOf(record).map((member) => [String(member.peer), member]));
};

/** Hosts and storage servers that are left take nobody whom another authority certified. */
const requireSameInstallation = async (at: Places, { fingerprint }: Unpacked): Promise<void> => {
  const file = join(at.authority, "authority.pem");
  if (!existsSync(file)) return;
  const here = fingerprintOfCertificate(await readFile(file, "utf8"));
  if (here !== fingerprint)
    throw new Error(
      `the backup is of another installation: its authority is ${fingerprint}, the one in ${at.authority} is ${here}`,
    );
};

const requireStopped = async (at: Places, chosen: readonly UnpackedPart[]): Promise<void> => {
  if (firstProcesses(at.tag).init.length === 0) return;
  const running = ((await memberStatus(at.supervisorSocket)) ?? []).filter((member) => member.state !== "stopped");
  const names = new Set([supervisorPart, ...running.map(({ peer }) => peer)]);
  const busy = chosen.find(({ manifest }) => names.has(manifest.name));
  if (busy !== undefined)
    throw new Error(`${busy.manifest.name} runs, and would write over what is restored: \`cells down\` first`);
};
