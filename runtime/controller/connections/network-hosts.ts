import type { WhyEnds } from "../../../core/controller/requests/connection-ends.ts";
import { read as readAs } from "../../../model/contract/schema.ts";
import { Fault } from "../../../model/json/reader.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { peerAt } from "../../transport/peers.ts";
import { askHost } from "../ask-host.ts";
import { type Examined, examinedChecks, type Question } from "./why.ts";

/** Who is asked about a packet, and at which place of its way it is: a `PacketQuestion` of the network driver, a layer above. */
export interface Asked {
  readonly side: "sender" | "behind-sender" | "before-receiver" | "receiver";
  readonly host: string;
}
/** What one of the ends' hosts says. */
export interface ExaminedEnd extends Examined {
  readonly side: "sender" | "receiver";
}
const between = { sender: "behind-sender", receiver: "before-receiver" } as const;

export async function examine(
  configuration: ProcessConfiguration,
  { side, host }: { readonly side: ExaminedEnd["side"]; readonly host: string },
  ends: WhyEnds,
  question: Question,
): Promise<Result<ExaminedEnd, string>> {
  const answered = await askHost(configuration, `host.${host}`, "/examine", bodyOf({ side, host }, ends, question));
  if (!answered.ok) return answered;
  const { status, json } = answered.value;
  if (status !== 200) return fail(`host ${host} could not read its maps: ${JSON.stringify(json)}`);
  const checks = readAs(examinedChecks, json);
  if (checks instanceof Fault) return fail(`what host ${host} says of its maps cannot be read: ${checks}`);
  return ok({ where: `host ${host} (${side})`, side, checks });
}

const bodyOf = ({ side }: Asked, { from, to }: WhyEnds, question: Question) => ({
  side,
  source: from.address,
  destination: to.address,
  ...question,
});

/**
 * Adds what network hosts say that the hosts of the ends have named: behind the sender's, before the receiver's, and one that is both once. A host can
 * have nobody asked but other hosts.
 * @param parts in the order in which a packet meets them
 */
export async function withNetworkHosts(
  configuration: ProcessConfiguration,
  parts: readonly ExaminedEnd[],
  ends: WhyEnds,
  question: Question,
): Promise<readonly Examined[]> {
  const asked = new Set<string>();
  const all: Examined[] = [];
  for (const part of parts) {
    const address = part.checks.find(({ ask }) => ask !== undefined)?.ask;
    const isNew = address !== undefined && !asked.has(address);
    if (address !== undefined) asked.add(address);
    const found = isNew ? [await examineAt(configuration, address, between[part.side], ends, question)] : [];
    all.push(...(part.side === "sender" ? [part, ...found] : [...found, part]));
  }
  return all;
}

async function examineAt(
  configuration: ProcessConfiguration,
  address: string,
  side: Asked["side"],
  ends: WhyEnds,
  question: Question,
): Promise<Examined> {
  const host = await hostAt(configuration, address);
  const where = host === null ? `${address} (network host)` : `host ${host} (network host)`;
  const said = (passes: boolean, detail: string): Examined => ({
    where,
    checks: [{ check: "network-host", passes, detail }],
  });
  if (host === null)
    return said(
      false,
      `no host of the installation has the address ${address}, which is said to be the network host's`,
    );
  const answered = await askHost(configuration, `host.${host}`, "/examine", bodyOf({ side, host }, ends, question));
  // What nobody hears carries nothing.
  if (!answered.ok)
    return said(
      false,
      `it could not be asked (${answered.error}), and all that leaves a group goes by it: \`cells status\` says more of it`,
    );
  const { status, json } = answered.value;
  const checks = status === 200 ? readAs(examinedChecks, json) : null;
  if (checks !== null && !(checks instanceof Fault)) return { where, checks };
  return said(
    true,
    "it does not say what is in force there, as a host of an earlier version does not: rules of groups are not judged here",
  );
}

/** By the peers file, which is read once: a cloud may have thousands of hosts. Null: there is none. */
async function hostAt(configuration: ProcessConfiguration, address: string): Promise<string | null> {
  const peer = await peerAt(configuration, "host.", address).catch(() => null);
  return peer?.slice("host.".length) ?? null;
}
