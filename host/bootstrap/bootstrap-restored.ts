import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type BootstrapModel, bootstrapModel, gatewayAddress } from "../../core/bootstrap/bootstrap-model.ts";
import type { IdentityGrant } from "../../core/documents/identity.ts";
import type { GoneHosts } from "../../core/env.ts";
import { entryOf } from "../../core/identity/peer-book.ts";
import type { ElementPath, Ipv4 } from "../../model/cell/identifiers.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { acceptedBefore } from "../../model/check/check-supply.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { checkDocument } from "../../model/specification/specification.ts";
import { keepPart, keepsItsOwn } from "../../runtime/backup/kept-parts.ts";
import { asideDirectory, putBack } from "../../runtime/backup/put-back.ts";
import type { Unpacked, UnpackedPart } from "../../runtime/backup/unpack.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";

/**
 * A birth that begins with a backup (decision 59): authority and root controller go on from their stores of then, as a process
 * first and then in the VM that they make anew. The Storage Manager and the Placer begin blank: what they know follows from
 * what controllers desire and servers have, and volumes of the root cell that no server has any more are made again. The authority
 * takes the parts of the others along, for those that come up without a store.
 */
export interface RestoredBirth {
  /** When the backup was ordered, ISO 8601. */
  readonly from: string;
  /** Where the root controller ran then, and runs again. */
  readonly vm: ElementPath;
  readonly address: Ipv4;
}
const restoredFile = (directory: string): string => join(directory, "bootstrap", "restored.json");
/** Where a birth's roles have their stores: `<role>/…`. @param directory of the Host Manager */
export const birthStores = (directory: string): string => join(directory, "bootstrap", "stores");

/** Null: this birth begins with nothing. */
export const readRestoredBirth = async (directory: string): Promise<RestoredBirth | null> =>
  existsSync(restoredFile(directory))
    ? (JSON.parse(await readFile(restoredFile(directory), "utf8")) as RestoredBirth)
    : null;

const goesOn = { authority: "authority", controller: "controller.root" } as const;
/** Their own stores, keys and names; where others are they are told anew. */
const isTaken = ({ path }: { readonly path: string }): boolean => path !== "peers.json";

export interface PlacedBirth {
  /** Peer names: those that go on, and those whose parts wait for them. */
  readonly placed: readonly string[];
  /** Of the authority, PEM, by file name. */
  readonly authority: UnpackedPart;
}

/**
 * Puts the backup where the birth of this host begins, which must not have begun. The mark that there is one is durable last.
 * Rejects with a sentence for a backup that no root cell can come from.
 * @param wanted the bootstrap model of the root specification that is there; null: any
 * @param goneHosts where whoever does is sure of that
 */
export const placeBackupForBirth = async (
  { parts, issued }: Unpacked,
  directory: string,
  wanted: (Pick<BootstrapModel, "vm" | "address"> & { readonly gateway?: Ipv4 | undefined }) | null,
  goneHosts: GoneHosts = "all",
): Promise<PlacedBirth> => {
  const partOf = (name: string): UnpackedPart => {
    const found = parts.find(({ manifest }) => manifest.name === name);
    if (found === undefined) throw new Error(`the backup has no part of "${name}": no root cell can come from it`);
    return found;
  };
  const authority = partOf(goesOn.authority);
  const { vm, address, gateway } = modelIn(partOf(goesOn.controller));
  const instead = "put the specification of then in its place";
  if (wanted !== null && (wanted.vm !== vm || wanted.address !== address))
    throw new Error(
      `the root controller of the backup runs in ${vm} at ${address}, and the root specification here says ${wanted.vm} at ${wanted.address}: ${instead}`,
    );
  if (wanted?.gateway !== undefined && wanted.gateway !== gateway)
    throw new Error(
      `the gateway of the backup is at ${gateway ?? "no fixed address"}, and the root specification here says ${wanted.gateway}: ${instead}`,
    );
  await rm(restoredFile(directory), { force: true });
  const stores = birthStores(directory);
  await rm(stores, { recursive: true, force: true });
  const placed: string[] = [];
  for (const [role, name] of Object.entries(goesOn)) {
    const { manifest, files } = partOf(name);
    const own = join(stores, role);
    await mkdir(own, { recursive: true, mode: 0o700 });
    const taken = { ...manifest, files: manifest.files.filter(isTaken) };
    await putBack({ manifest: taken, files }, own, goneHosts);
    await rm(join(own, asideDirectory), { recursive: true, force: true });
    placed.push(name);
  }
  for (const part of parts) {
    const { name } = part.manifest;
    if (placed.includes(name) || !keepsItsOwn(peerName(name))) continue;
    await keepPart(part, join(stores, goesOn.authority), goneHosts);
    placed.push(name);
  }
  const mark: RestoredBirth = { from: issued, vm, address };
  await replaceFile(restoredFile(directory), `${JSON.stringify(mark, null, 2)}\n`);
  return { placed, authority };
};

/** The model of the root cell as the backup has it. */
const modelIn = (part: UnpackedPart): BootstrapModel & { readonly gateway: Ipv4 | undefined } => {
  const { document } = (recordsIn(part, "model").get("model") ?? {}) as { readonly document?: JsonObject | null };
  if (document == null) throw new Error("the root controller of the backup has no model yet");
  const cell = checkDocument(document, acceptedBefore);
  if (!cell.ok) throw new Error(`the root cell of the backup is refused: ${cell.error[0]?.message}`);
  const model = bootstrapModel(cell.value);
  if (!model.ok) throw new Error(`the root cell of the backup: ${model.error}`);
  return { ...model.value, gateway: gatewayAddress(cell.value) };
};

/** Own records of a service's store whose key is this, or begins with it where it ends in `/`. */
const recordsIn = ({ files }: UnpackedPart, key: string): ReadonlyMap<string, Json> => {
  const database = new DatabaseSync(files.get("state.sqlite") ?? "", { readOnly: true });
  try {
    const pattern = key.endsWith("/") ? `own/${key}*` : `own/${key}`;
    const rows = database.prepare("SELECT key, value FROM entries WHERE key GLOB ?").all(pattern);
    return new Map(rows.map((row) => [String(row.key).slice("own/".length), JSON.parse(String(row.value)) as Json]));
  } finally {
    database.close();
  }
};

/**
 * Everybody whom the authority of the backup had let in, or of whom there is a part, and where it was: an entry as in `PeerBook`;
 * null: not known.
 */
export const placesIn = ({ parts, missing }: Unpacked): ReadonlyMap<string, string | null> => {
  const found = new Map<string, string | null>();
  for (const { manifest } of parts) found.set(manifest.name, null);
  for (const { name } of missing) found.set(name, null);
  const authority = parts.find(({ manifest }) => manifest.name === goesOn.authority);
  const identities = authority === undefined ? [] : recordsIn(authority, "identity/").values();
  for (const each of identities) {
    const identity = each as unknown as IdentityGrant;
    found.set(identity.name, entryOf(identity));
  }
  return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)));
};
