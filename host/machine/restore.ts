import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { BootstrapModel } from "../../core/bootstrap/bootstrap-model.ts";
import { hostText } from "../../core/documents/readers/values.ts";
import type { Ipv4 } from "../../model/cell/identifiers.ts";
import { Fault } from "../../model/json/reader.ts";
import type { Unpacked } from "../../runtime/backup/unpack.ts";
import { makeDirectoryDurably, renameDurably } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { fingerprintOfCertificate } from "../../runtime/transport/fingerprint.ts";
import { parsePeerAddress } from "../../runtime/transport/peers.ts";
import { progressFile } from "../bootstrap/bootstrap.ts";
import { placeBackupForBirth, placesIn, readRestoredBirth } from "../bootstrap/bootstrap-restored.ts";
import { hostDirectory, requireNoHost, setAsideHost } from "./anew.ts";
import { hostFile } from "./configuration.ts";
import { listens } from "./listens.ts";
import { makeReturning } from "./returning.ts";

/**
 * The first machine of a cloud whose management is gone goes on from a backup (decision 74). Whatever does not fit is refused
 * before anything on the machine changes. What nobody can find out from here, that nothing runs any more on the hosts of then,
 * the operator says of each by its name; one that answers is not believed to be off, whatever was said.
 */
export interface MachineRestore {
  readonly unpacked: Unpacked;
  /**
   * Hosts of which the operator is sure that nothing of them runs any more. Those that the backup does not know joined after it was made: what
   * storage servers say that they had is taken from them without waiting for them.
   */
  readonly poweredOff: readonly string[];
  /** Storage servers that will not come back: what they had begins empty. */
  readonly lostServers: readonly string[];
}
export interface RestoreTarget {
  /** Of this machine. */
  readonly name: string;
  /** Of the root specification that is here. */
  readonly wanted: Pick<BootstrapModel, "vm" | "address"> & { readonly gateway: Ipv4 };
  readonly authorityDirectory: string;
  readonly say: (line: string) => void;
}

const silentMs = 2000;

/** Puts the backup into place, unless that was done before: then the birth goes on. Rejects with a sentence, nothing changed. */
export const restoreMachine = async (restore: MachineRestore, target: RestoreTarget): Promise<void> => {
  const { unpacked } = restore;
  const before = await readRestoredBirth(hostDirectory);
  if (before?.from === unpacked.issued && !hasLeft()) {
    target.say(`the backup of ${before.from} is in place already, and this goes on from it`);
    return;
  }
  await requireNoHost();
  await requireSameAuthority(target.authorityDirectory, unpacked);
  const known = placesIn(unpacked);
  for (const name of takeWord(restore, known, target.name))
    target.say(
      `the backup does not know the host ${name}: what it had since then starts anew, as you say that nothing runs there`,
    );
  const draft = `${hostDirectory}.restored`;
  await rm(draft, { recursive: true, force: true });
  await makeDirectoryDurably(draft, 0o700);
  const { authority, placed } = await placeBackupForBirth(unpacked, draft, target.wanted, restore.poweredOff);
  const secrets = ["authority.key.pem", "authority.pem"].map((name) => {
    const file = authority.files.get(`authority/${name}`);
    if (file === undefined) throw new Error(`the backup's part of the authority has no ${name}`);
    return [name, file] as const;
  });
  await requireSilence(known);
  // Nothing was touched so far but the draft.
  await makeDirectoryDurably(target.authorityDirectory, 0o700);
  for (const [name, file] of secrets)
    await replaceFile(join(target.authorityDirectory, name), await readFile(file, "utf8"));
  const left = new Set([target.name, ...restore.lostServers]);
  await makeReturning(known, left, { core: target.wanted.address, fingerprint: unpacked.fingerprint });
  await setAsideHost();
  await renameDurably(draft, hostDirectory);
  for (const name of placed) target.say(`restored ${name}`);
};

/** The machine has left since: what is in place went on once. */
const hasLeft = (): boolean => !existsSync(hostFile) && existsSync(progressFile(hostDirectory));

const requireSameAuthority = async (directory: string, { fingerprint }: Unpacked): Promise<void> => {
  const file = join(directory, "authority.pem");
  if (!existsSync(file)) return;
  const here = fingerprintOfCertificate(await readFile(file, "utf8"));
  if (here !== fingerprint)
    throw new Error(
      `the backup is of another installation: its authority is ${fingerprint}, the one in ${directory} is ${here}. Take the right backup, or move that directory away`,
    );
};

/** Places by peer name, as `PeerBook` has them; null: not known. */
type Known = ReadonlyMap<string, string | null>;
const namesOf = (known: Known, role: "host" | "agent"): readonly string[] =>
  [...known.keys()].filter((peer) => peer.startsWith(`${role}.`)).map((peer) => peer.slice(role.length + 1));

/**
 * Throws where nothing was said of a host that the backup knows, or something that nobody can mean.
 * @returns hosts that the backup does not know, sorted
 */
export const takeWord = (
  { poweredOff, lostServers }: Omit<MachineRestore, "unpacked">,
  known: Known,
  own: string,
): readonly string[] => {
  const [hosts, servers] = [namesOf(known, "host"), namesOf(known, "agent")];
  const all = (names: readonly string[]): string => names.join(", ") || "none";
  const noName = poweredOff.find((name) => hostText(name) instanceof Fault);
  if (noName !== undefined) throw new Error(`no host can have the name "${noName}"; the backup has ${all(hosts)}`);
  const noServer = lostServers.find((name) => !servers.includes(name));
  if (noServer !== undefined)
    throw new Error(
      `the backup has no storage server ${noServer}; it has ${all(servers)}: leave it out, one that joined later is not waited for`,
    );
  if (lostServers.includes(own))
    throw new Error(
      `this machine is to be the storage server ${own}, and cannot be lost as well: give it another --name`,
    );
  const unsaid = hosts.filter((name) => !poweredOff.includes(name));
  const strangers = poweredOff.filter((name) => !hosts.includes(name)).sort();
  if (unsaid.length === 0) return strangers;
  throw new Error(
    `the backup has the hosts ${all(hosts)}, and nobody has said of ${all(unsaid)} that nothing runs there any more; what they ran is started anew, and would run twice. ` +
      `On one that still works, \`cells host leave --force\` ends all of it; one that does not is switched off. Then say so: --powered-off ${[...hosts, ...strangers].join(",")}`,
  );
};

/** Of hosts and services of then; a storage server runs nothing, and is there again as soon as it can be. */
const requireSilence = async (known: Known): Promise<void> => {
  const asked = [...known].filter(([peer]) => !peer.startsWith("agent."));
  const answers = await Promise.all(asked.map(async ([, entry]) => isHeard(entry)));
  const heard = asked.filter((_each, index) => answers[index]);
  if (heard.length === 0) return;
  const named = heard.map(([peer, entry]) => `${peer} at ${entry}`).join(", ");
  throw new Error(
    `${named} still ${heard.length === 1 ? "answers" : "answer"}: what runs there would run twice. \`cells host leave --force\` on that machine, or its power off, and then this again`,
  );
};

/** A machine of then that has left has its address still. */
const isHeard = async (entry: string | null): Promise<boolean> => {
  const found = entry === null ? null : parsePeerAddress(entry);
  return found?.ok === true && listens(found.value.host, found.value.distributionPort, silentMs);
};
