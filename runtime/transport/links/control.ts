import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";

/** Messages about the link itself, on its channel 0. */
export type Control =
  /** The services that this end has now, each with the port at which it listens. At most `limits.services`. */
  | { readonly say: "serves"; readonly services: readonly Served[] }
  /** A service of this end wants a connection to a service of the other end. */
  | ({ readonly say: "open"; readonly channel: number; readonly from: PeerName; readonly to: PeerName } & Proof)
  | ({ readonly say: "opened"; readonly channel: number } & Proof)
  | { readonly say: "refused"; readonly channel: number; readonly why: string }
  /** The channel is closed in both directions. */
  | { readonly say: "closed"; readonly channel: number };
export interface Served {
  readonly name: PeerName;
  readonly port: number;
}
/** Proves that a service holds the key of its certificate (`proof.ts`). */
export interface Proof {
  /** DER, in Base64. */
  readonly certificate: string;
  /** In Base64. */
  readonly signature: string;
}

/** Longest texts in characters, and most services, that a message may have. */
const limits = { name: 256, certificate: 16_384, signature: 1024, why: 1024, services: 64 } as const;
/** Services of a process beyond the limit are left out; they are reached by links of their own. */
export const servesOf = (services: Iterable<Served>): Control => ({
  say: "serves",
  services: [...services].slice(0, limits.services).map(({ name, port }) => ({ name, port })),
});
/** A reason for a refusal, cut to the length that may be sent. */
export const shortened = (why: string): string => why.slice(0, limits.why);

/** Null: it is not a valid message. */
export const readControl = (value: Json): Control | null => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const fields = value as Readonly<Record<string, Json | undefined>>;
  const { say } = fields;
  if (say === "serves") {
    if (!Array.isArray(fields.services) || fields.services.length > limits.services) return null;
    const services = fields.services.map(servedOf);
    return services.includes(null) ? null : { say, services: services as readonly Served[] };
  }
  const { channel } = fields;
  if (!isNumber(channel, 0xffff_ffff)) return null;
  if (say === "closed") return { say, channel };
  const why = textOf(fields.why, limits.why);
  if (say === "refused") return why === null ? null : { say, channel, why };
  const proof = proofOf(fields);
  if (proof === null) return null;
  if (say === "opened") return { say, channel, ...proof };
  const [from, to] = [nameOf(fields.from), nameOf(fields.to)];
  return say === "open" && from !== null && to !== null ? { say, channel, from, to, ...proof } : null;
};

const isNumber = (value: Json | undefined, most: number): value is number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value <= most;
const textOf = (value: Json | undefined, longest: number): string | null =>
  typeof value === "string" && value !== "" && value.length <= longest ? value : null;
const nameOf = (value: Json | undefined): PeerName | null => {
  const text = textOf(value, limits.name);
  return text === null ? null : peerName(text);
};
const proofOf = (fields: Readonly<Record<string, Json | undefined>>): Proof | null => {
  const certificate = textOf(fields.certificate, limits.certificate);
  const signature = textOf(fields.signature, limits.signature);
  return certificate === null || signature === null ? null : { certificate, signature };
};
const servedOf = (value: Json): Served | null => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { name, port } = value as Readonly<Record<string, Json | undefined>>;
  const named = nameOf(name);
  return named !== null && isNumber(port, 65_535) ? { name: named, port } : null;
};
