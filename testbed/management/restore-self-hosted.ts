import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { bootstrapModel } from "../../core/bootstrap/bootstrap-model.ts";
import { readBundle, readRoot } from "../../host/bootstrap/bootstrap.ts";
import { placeBackupForBirth } from "../../host/bootstrap/bootstrap-restored.ts";
import { asideDirectory } from "../../runtime/backup/put-back.ts";
import type { Unpacked } from "../../runtime/backup/unpack.ts";
import { memberFiles } from "../configuration.ts";
import { memberDirectory, type Places } from "../places.ts";
import type { InstallationRecord } from "../record.ts";
import { bootstrapHost, type Profile, rootSpecification } from "../self-hosted.ts";
import { firstProcesses } from "../supervisor/first-process.ts";
import { membersOf } from "../supervisor/members.ts";

/**
 * Puts a backup into a testbed whose management runs in VMs: the next `up` is a birth that goes on from it. The hosts begin as
 * fresh machines, since what theirs did was told them by a management that is gone; storage servers stay as they are.
 * Rejects, with nothing changed, where the testbed runs, or the backup does not fit.
 */
export const restoreSelfHosted = async (
  at: Places,
  record: InstallationRecord & { readonly profile: Profile },
  unpacked: Unpacked,
): Promise<Restored> => {
  if (firstProcesses(at.tag).init.length > 0)
    throw new Error("the testbed runs, and would write over what is restored: `cells down` first");
  const specification = rootSpecification(at, record.profile);
  if (!existsSync(specification))
    throw new Error(`${specification} is missing: put the root specification of the installation there`);
  const wanted = bootstrapModel(readRoot(await readBundle(specification)));
  if (!wanted.ok) throw new Error(`${specification}: ${wanted.error}`);
  // Into a draft first: what does not fit is refused before anything is set aside.
  const own = memberFiles(at, bootstrapHost).data;
  const draft = `${own}.restored`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  const { placed, authority } = await placeBackupForBirth(unpacked, draft, wanted.value);
  mkdirSync(at.authority, { recursive: true, mode: 0o700 });
  for (const name of ["authority.key.pem", "authority.pem"]) {
    const from = authority.files.get(`authority/${name}`);
    if (from === undefined) throw new Error(`the backup's part of the authority has no ${name}`);
    await copyFile(from, join(at.authority, name));
  }
  for (const member of membersOf(record)) {
    if (member.role !== "host") continue;
    const { data } = memberFiles(at, member);
    const aside = join(memberDirectory(at, member.name), asideDirectory);
    if (!existsSync(data)) continue;
    rmSync(aside, { recursive: true, force: true });
    renameSync(data, aside);
  }
  renameSync(draft, own);
  const names = unpacked.parts.map(({ manifest }) => manifest.name);
  return {
    restored: placed,
    left: names.filter((name) => name.startsWith("agent.")),
    anew: names.filter((name) => !name.startsWith("agent.") && !placed.includes(name)),
  };
};

export interface Restored {
  readonly restored: readonly string[];
  /** In the backup, and not put back. */
  readonly left: readonly string[];
  /** They begin without a store, and hear what they need from the others. */
  readonly anew: readonly string[];
}
