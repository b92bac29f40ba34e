import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { firstPlaces } from "../../core/bootstrap/bootstrap-model.ts";
import type { Ipv4 } from "../../model/cell/identifiers.ts";
import { isMachineName, type JoinToken, readJoinToken, writeJoinToken } from "../../runtime/identity/join-token.ts";
import { hashOfToken, newToken } from "../../runtime/identity/own/keys.ts";
import { agentPorts, ports } from "../../runtime/installation.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { parsePeerAddress } from "../../runtime/transport/peers.ts";
import { places } from "./configuration.ts";

/**
 * Tokens of the machines that come back after a restore, made with it: otherwise they come from the gateway, whose VM may
 * have its volumes on one of these machines. The authority of the birth knows them from its start.
 */
const directory = join(places.configuration, "returning");
const goodMs = 24 * 3_600_000;

export interface Returning {
  readonly name: string;
  /** File that holds its token. */
  readonly file: string;
  readonly isServer: boolean;
  /** Its host and its storage agent; entries as in `PeerBook`. */
  readonly peers: Readonly<Record<string, string>>;
  /** By the same names. */
  readonly tokenHashes: Readonly<Record<string, string>>;
}

/**
 * @param known where hosts and storage agents of then were, by peer name; null: not known
 * @param left names of machines that get none
 */
export const makeReturning = async (
  known: ReadonlyMap<string, string | null>,
  left: ReadonlySet<string>,
  { core, fingerprint }: { readonly core: Ipv4; readonly fingerprint: string },
): Promise<void> => {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = new Set([...known.keys()].flatMap((peer) => /^(?:host|agent)\.(.+)$/.exec(peer)?.[1] ?? []));
  for (const name of names) {
    const agent = known.get(`agent.${name}`) ?? null;
    const found = parsePeerAddress(known.get(`host.${name}`) ?? agent ?? "");
    if (left.has(name) || !found.ok || !isMachineName(name)) continue;
    const token: JoinToken = {
      name,
      address: found.value.host,
      authority: `${core}:${ports.enrolment}`,
      fingerprint,
      peers: firstPlaces(core),
      host: newToken().token,
      ...(agent === null ? {} : { agent: newToken().token }),
      endsAtMs: Date.now() + goodMs,
      anew: true,
    };
    await replaceFile(join(directory, `${name}.token`), `${writeJoinToken(token)}\n`);
  }
};

export const readReturning = async (): Promise<readonly Returning[]> => {
  const files = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".token")).sort();
  return Promise.all(files.map((name) => returningIn(join(directory, name))));
};

const returningIn = async (file: string): Promise<Returning> => {
  const read = readJoinToken(await readFile(file, "utf8"));
  if (!read.ok) throw new Error(`${file}: ${read.error}`);
  const { name, address, host, agent } = read.value;
  const peers: Record<string, string> = { [`host.${name}`]: address };
  const tokenHashes: Record<string, string> = { [`host.${name}`]: hashOfToken(host) ?? "" };
  if (agent !== undefined) {
    peers[`agent.${name}`] = `${address}:${agentPorts.distribution}:${agentPorts.http}`;
    tokenHashes[`agent.${name}`] = hashOfToken(agent) ?? "";
  }
  return { name, file, isServer: agent !== undefined, peers, tokenHashes };
};
