import type { WhyEnds } from "../../../core/controller/requests/connection-ends.ts";
import { read as readAs } from "../../../model/contract/schema.ts";
import { Fault } from "../../../model/json/reader.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { peerAt } from "../../transport/peers.ts";
import { askHost } from "../ask-host.ts";
import { type Check, type Examined, examinedChecks, type Question } from "./why.ts";

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

/** Why there is no answer. `busy`: the cell asks that host too often, and may ask again. */
export interface NoAnswer {
  readonly kind: "unheard" | "busy" | "unread";
  readonly why: string;
}

/** One host's checks about a packet. */
async function ask(
  configuration: ProcessConfiguration,
  { side, host }: Asked,
  { from, to }: WhyEnds,
  question: Question,
): Promise<Result<readonly Check[], NoAnswer>> {
  const body = { side, source: from.address, destination: to.address, ...question };
  const answered = await askHost(configuration, `host.${host}`, "/examine", body);
  if (!answered.ok) return fail({ kind: "unheard", why: answered.error });
  const { status, json } = answered.value;
  if (status === 429)
    return fail({
      kind: "busy",
      why: `this cell asks host ${host} about packets more often than that answers: ask again in a few seconds`,
    });
  if (status !== 200)
    return fail({ kind: "unread", why: `host ${host} could not read its maps: ${JSON.stringify(json)}` });
  const checks = readAs(examinedChecks, json);
  if (checks instanceof Fault)
    return fail({ kind: "unread", why: `what host ${host} says of its maps cannot be read: ${checks}` });
  return ok(checks);
}

/** @param asked where one of the ends is */
export async function examine(
  configuration: ProcessConfiguration,
  asked: { readonly side: ExaminedEnd["side"]; readonly host: string },
  ends: WhyEnds,
  question: Question,
): Promise<Result<ExaminedEnd, NoAnswer>> {
  const answered = await ask(configuration, asked, ends, question);
  const { side, host } = asked;
  return answered.ok ? ok({ where: `host ${host} (${side})`, side, checks: answered.value }) : answered;
}

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
): Promise<Result<readonly Examined[], NoAnswer>> {
  const asked = new Set<string>();
  const all: Examined[] = [];
  for (const part of parts) {
    const address = part.checks.find(({ ask }) => ask !== undefined)?.ask;
    const isNew = address !== undefined && !asked.has(address);
    if (address !== undefined) asked.add(address);
    const found = isNew ? await examineAt(configuration, address, between[part.side], ends, question) : null;
    if (found?.ok === false) return found;
    const more = found === null ? [] : [found.value];
    all.push(...(part.side === "sender" ? [part, ...more] : [...more, part]));
  }
  return ok(all);
}

/** A network host that does not answer is a part of the answer; one that is asked too often is none. */
async function examineAt(
  configuration: ProcessConfiguration,
  address: string,
  side: Asked["side"],
  ends: WhyEnds,
  question: Question,
): Promise<Result<Examined, NoAnswer>> {
  const host = await hostAt(configuration, address);
  const where = host === null ? "the network host" : `host ${host} (network host)`;
  const said = (passes: boolean, detail: string, apart?: string): Result<Examined, never> =>
    ok({ where, checks: [{ check: "network-host", passes, detail, ...(apart === undefined ? {} : { apart }) }] });
  if (host === null)
    return said(false, "no host of the installation has the address that is said to be the network host's", address);
  const answered = await ask(configuration, { side, host }, ends, question);
  if (answered.ok) return ok({ where, checks: answered.value });
  const { kind, why } = answered.error;
  if (kind === "busy") return answered;
  // What nobody hears carries nothing.
  if (kind === "unheard")
    return said(
      false,
      "it could not be asked, and all that leaves a group goes by it: `cells status` says more of it",
      why,
    );
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
