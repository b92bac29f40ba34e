import type { HostName } from "../cell/identifiers.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import type { Cause, RefusedBy } from "./cause.ts";
import { sentenceOf } from "./sentence.ts";

/*
 * What those may read who are not to learn which machines there are: the same answers without names of machines. Names come from everywhere, from
 * services of other versions and from what was written down long ago, so they are taken out last, of whole answers, and not where each sentence
 * is made. Facts of causes say themselves which of them name a host; sentences are looked through word by word for the names of machines that are
 * known. Of hosts that refuse a VM alike, one line is left with how many they are.
 *
 * Rejected: a name in place of each name, the same every time. Who has two VMs would learn when they stand at one machine, and with the order of
 * such names how many machines there are.
 */
/** What follows is told; what is in a document of a tenant's own is his. */
export interface Veil {
  /** Names of hosts and storage servers. */
  readonly machines: ReadonlySet<string>;
}
const aHost = "a host" as HostName;

/** Fields of answers that are sentences. */
const told: ReadonlySet<string> = new Set([
  "reason",
  "why",
  "lifts",
  "sentence",
  "said",
  "detail",
  "check",
  "where",
  "verdict",
  "message",
  "hint",
  "says",
  "what",
  "refused",
]);
/** Fields that name a machine, if the value is one. */
const naming: ReadonlySet<string> = new Set(["host", "server"]);

/** A whole answer, in the shapes of the contract. Attributes (`x.…`) are left as they were written. */
export function veiled(value: Json, veil: Veil): Json {
  if (Array.isArray(value)) return value.map((each) => veiled(each, veil));
  if (!isObject(value)) return value;
  const causes = Array.isArray(value.causes) ? veiledCauses(value.causes as unknown as readonly Cause[], veil) : null;
  const fields = Object.entries(value).map(([key, field]): [string, Json] => {
    if (key.startsWith("x.")) return [key, field];
    if (key === "causes" && causes !== null) return [key, causes as unknown as Json];
    if (key === "checks" && Array.isArray(field)) return [key, alike(field.map((each) => veiled(each, veil)))];
    if (naming.has(key) && typeof field === "string" && veil.machines.has(field)) return [key, null];
    if (typeof field !== "string" || !told.has(key)) return [key, veiled(field, veil)];
    // A sentence that has a line for each host is made anew, with one for those that are alike.
    const isAnew = key === "reason" && causes !== null && causes.some(({ kind }) => refusing.has(kind));
    return [key, veiledText((isAnew ? sentenceOf(causes) : null) ?? field, veil)];
  });
  return Object.fromEntries(fields);
}
const refusing: ReadonlySet<Cause["kind"]> = new Set(["no-host", "cannot-leave"]);

/** A document of the tenant's own, in which only the state of each element is what others say. */
export function veiledStates(document: Json, veil: Veil): Json {
  if (Array.isArray(document)) return document.map((each) => veiledStates(each, veil));
  if (!isObject(document)) return document;
  return Object.fromEntries(
    Object.entries(document).map(([key, value]) => [
      key,
      key === "$state" ? veiled(value, veil) : veiledStates(value, veil),
    ]),
  );
}

/** The same of causes, as they are kept: facts of kinds of later versions are looked through, too. */
export function veiledCauses(causes: readonly Cause[], veil: Veil): readonly Cause[] {
  return causes.map((cause) => {
    const facts = Object.entries(cause as unknown as JsonObject).map(([key, fact]): [string, Json] => {
      if (key === "because" && Array.isArray(fact))
        return [key, veiledCauses(fact as unknown as readonly Cause[], veil) as unknown as Json];
      if (key === "refusals" && Array.isArray(fact))
        return [key, counted(fact as unknown as readonly RefusedBy[], veil) as unknown as Json];
      if (key === "host") return [key, aHost];
      if (key === "hosts" && Array.isArray(fact)) return [key, fact.length === 0 ? fact : [hosts(fact.length)]];
      if (key === "by" || key === "service" || key === "to") return [key, veiledPeer(fact, veil)];
      if (key === "peers" || key === "services") return [key, veiledPeers(fact, veil)];
      return [key, typeof fact === "string" && told.has(key) ? veiledText(fact, veil) : fact];
    });
    return Object.fromEntries(facts) as unknown as Cause;
  });
}
const hosts = (count: number): HostName => (count === 1 ? aHost : (`${count} hosts` as HostName));

/** One for all that refuse alike. A host of a pool is called by the name that its owner gave it, which is no name of a machine. */
function counted(refusals: readonly RefusedBy[], veil: Veil): readonly RefusedBy[] {
  const alike = new Map<string, { readonly refusal: RefusedBy; count: number }>();
  for (const { host, why, lifts, ...more } of refusals) {
    const isNamed = !veil.machines.has(host);
    const refusal = { ...more, host, why: veiledText(why, veil), lifts: veiledText(lifts, veil) };
    const key = JSON.stringify(isNamed ? refusal : { ...refusal, host: "" });
    const known = alike.get(key);
    if (known === undefined) alike.set(key, { refusal: isNamed ? refusal : { ...refusal, host: aHost }, count: 1 });
    else known.count += 1;
  }
  return [...alike.values()].map(({ refusal, count }) => (count === 1 ? refusal : { ...refusal, host: hosts(count) }));
}

/** `host.h1`: of machines the kind alone is left. */
function veiledPeer(peer: Json, { machines }: Veil): Json {
  const [, kind, name = ""] = /^(host|agent|presence)\.(.*)$/.exec(String(peer)) ?? [];
  return kind !== undefined && machines.has(name) ? kind : peer;
}
const veiledPeers = (peers: Json, veil: Veil): Json =>
  Array.isArray(peers) ? [...new Set(peers.map((each) => veiledPeer(each, veil)))] : peers;

/** Checks that say the same of several hosts are one. */
function alike(checks: readonly Json[]): readonly Json[] {
  const all = new Map<string, { readonly check: Json; count: number }>();
  for (const check of checks) {
    const key = JSON.stringify(check);
    const known = all.get(key);
    if (known === undefined) all.set(key, { check, count: 1 });
    else known.count += 1;
  }
  return [...all.values()].map(({ check, count }) =>
    count === 1 || !isObject(check) || typeof check.check !== "string"
      ? check
      : { ...check, check: check.check.replace(/\ba host\b/, `${count} hosts`) },
  );
}

const command = /`[^`]*`/g;
const word =
  /(?:\b(host|server) )?(\b(?:host|agent|presence)\.|\broot\/hosts\/)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/g;
/** A sentence: in a command `HOST` stands for a name, elsewhere "a host". A name within a path ("shop/h1") or a longer word is none of a machine. */
export function veiledText(text: string, { machines }: Veil): string {
  const without = (part: string, instead: (kind: string) => string): string =>
    part.replace(word, (found: string, kind: string | undefined, prefix: string | undefined, at: number) => {
      const [before, after] = [part[at - 1], part[at + found.length]];
      const name = found.slice((kind === undefined ? 0 : kind.length + 1) + (prefix?.length ?? 0));
      if (!machines.has(name) || before === "/" || before === "_" || after === "/" || after === "_") return found;
      return instead(kind ?? (prefix?.startsWith("agent") === true ? "server" : "host"));
    });
  let [made, from] = ["", 0];
  const plain = (part: string): string =>
    without(part, (kind) => (kind === "server" ? "a storage server" : "a host"))
      .replace(/\bhosts? (a host|\d+ hosts)\b/g, "$1")
      .replace(/\ba host(?:, a host)+\b/g, (list) => `${list.split(",").length} hosts`);
  for (const { 0: found, index } of text.matchAll(command)) {
    made += plain(text.slice(from, index)) + without(found, () => "HOST");
    from = index + found.length;
  }
  return made + plain(text.slice(from));
}
