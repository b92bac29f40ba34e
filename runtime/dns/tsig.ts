import { createHmac, timingSafeEqual } from "node:crypto";
import { nameBytes, Reader, u16, u32 } from "../../core/dns/outside/message.ts";

/**
 * Signatures of DNS messages by a secret that both ends have (TSIG, RFC 8945), with hmac-sha256, which everybody has to know. The
 * signature is the last record of a message; it covers all before it, the time, and of an answer the signature of the question.
 */
export interface TsigKey {
  /** Small letters. */
  readonly name: string;
  readonly secret: Buffer;
}
/** What a message brings. `error`: it does not count, and its answer says why. */
export type Signature =
  | { readonly kind: "none" }
  /** No message, or one whose signature stands where none may. */
  | { readonly kind: "malformed" }
  | { readonly kind: "good"; readonly key: TsigKey; readonly mac: Buffer; readonly message: Buffer }
  | {
      readonly kind: "bad";
      readonly error: (typeof errors)[keyof typeof errors];
      readonly claimed: Claim;
      /** Null: the answer is not signed, since this is no key of ours. */
      readonly key: TsigKey | null;
      readonly message: Buffer;
    };

export const errors = { BADSIG: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22 } as const;
const [typeTsig, classAny] = [250, 255];
const algorithm = "hmac-sha256";
const macBytes = 32;
/** Seconds by which the clocks may differ, as the RFC recommends. */
const fudge = 300;
const [headerBytes, additionalAt] = [12, 10];

interface Claim {
  readonly name: string;
  readonly algorithm: string;
  readonly signedAt: number;
  readonly fudge: number;
  readonly mac: Buffer;
  readonly originalId: number;
  readonly error: number;
  readonly other: readonly number[];
}
interface Found {
  readonly claim: Claim;
  /** Without the signature, as it was signed. */
  readonly message: Buffer;
}

/** Octets that a signature adds to a message. */
export const bytesOf = ({ name }: TsigKey): number =>
  recordOf(name, variablesOf(0, 0), Buffer.alloc(macBytes), 0).length;

const u48 = (value: number): number[] => [...u16(Math.floor(value / 2 ** 32)), ...u32(value % 2 ** 32)];
interface Variables {
  readonly signedAt: number;
  readonly fudge: number;
  readonly error: number;
  readonly other: readonly number[];
}
const variablesOf = (signedAt: number, error: number, other: readonly number[] = []): Variables => ({
  signedAt,
  fudge,
  error,
  other,
});
const timersOf = ({ signedAt, fudge: apart }: Variables): number[] => [...u48(signedAt), ...u16(apart)];

/** RFC 8945, 4.3: what is covered beside the message itself. A further message of an answer covers the timers alone. */
const coveredOf = (name: string, variables: Variables): number[] => [
  ...nameBytes(name),
  ...u16(classAny),
  ...u32(0),
  ...nameBytes(algorithm),
  ...timersOf(variables),
  ...u16(variables.error),
  ...u16(variables.other.length),
  ...variables.other,
];
const macOf = (key: TsigKey, before: Buffer | null, message: Uint8Array, covered: readonly number[]): Buffer => {
  const hash = createHmac("sha256", key.secret);
  if (before !== null) hash.update(Uint8Array.from(u16(before.length))).update(before);
  return hash.update(message).update(Uint8Array.from(covered)).digest();
};
function recordOf(name: string, variables: Variables, mac: Uint8Array, originalId: number): Buffer {
  const { error, other } = variables;
  const data = [
    ...nameBytes(algorithm),
    ...timersOf(variables),
    ...u16(mac.length),
    ...mac,
    ...u16(originalId),
    ...u16(error),
    ...u16(other.length),
    ...other,
  ];
  return Buffer.from([...nameBytes(name), ...u16(typeTsig), ...u16(classAny), ...u32(0), ...u16(data.length), ...data]);
}
const withRecord = (message: Buffer, record: Buffer): Buffer => {
  const whole = Buffer.concat([message, record]);
  whole.writeUInt16BE(message.readUInt16BE(additionalAt) + 1, additionalAt);
  return whole;
};

/** Messages of one answer in their order, each signed. @param question its signature; null: these are no answer */
export function signed(key: TsigKey, question: Buffer | null, messages: readonly Buffer[], nowS: number): Buffer[] {
  const variables = variablesOf(nowS, 0);
  let before = question;
  return messages.map((message, index) => {
    const covered = index === 0 ? coveredOf(key.name, variables) : timersOf(variables);
    const mac = macOf(key, before, message, covered);
    before = mac;
    return withRecord(message, recordOf(key.name, variables, mac, message.readUInt16BE(0)));
  });
}

/** To a question whose signature does not count: with the same error, and signed only where the asker is known to have the key. */
export function refusalOf(
  { error, claimed, key }: Extract<Signature, { kind: "bad" }>,
  message: Buffer,
  nowS: number,
): Buffer {
  const id = message.readUInt16BE(0);
  if (key === null) {
    const variables = { ...variablesOf(claimed.signedAt, error), fudge: claimed.fudge };
    return withRecord(message, recordOf(claimed.name, variables, Buffer.alloc(0), id));
  }
  const variables = variablesOf(claimed.signedAt, error, u48(nowS));
  const mac = macOf(key, claimed.mac, message, coveredOf(key.name, variables));
  return withRecord(message, recordOf(key.name, variables, mac, id));
}

/** @param keyNamed small letters; null: there is no such key here */
export async function signatureOf(
  packet: Buffer,
  keyNamed: (name: string) => Promise<TsigKey | null>,
  nowS: () => number,
): Promise<Signature> {
  const found = find(packet);
  if (found === "none" || found === "malformed") return { kind: found };
  const { claim, message } = found;
  const bad = (error: (typeof errors)[keyof typeof errors], known: TsigKey | null = null): Signature => ({
    kind: "bad",
    error,
    claimed: claim,
    key: known,
    message,
  });
  const key = claim.algorithm === algorithm ? await keyNamed(claim.name) : null;
  if (key === null) return bad(errors.BADKEY);
  if (claim.mac.length > macBytes || claim.mac.length < macBytes / 2) return { kind: "malformed" };
  if (claim.mac.length < macBytes) return bad(errors.BADTRUNC);
  const mac = macOf(key, null, message, coveredOf(claim.name, claim));
  if (!timingSafeEqual(mac, claim.mac)) return bad(errors.BADSIG);
  if (Math.abs(nowS() - claim.signedAt) > claim.fudge) return bad(errors.BADTIME, key);
  return { kind: "good", key, mac: claim.mac, message };
}

/** The signature is the last record, and there is one (RFC 8945, 5.2). */
function find(packet: Buffer): Found | "none" | "malformed" {
  if (packet.length < headerBytes) return "malformed";
  const [questions = 0, answers = 0, authorities = 0, additional = 0] = [4, 6, 8, additionalAt].map((at) =>
    packet.readUInt16BE(at),
  );
  const reader = new Reader(packet, headerBytes);
  for (let index = 0; index < questions; index += 1)
    if (reader.name() === null || reader.take(4) === null) return "malformed";
  const records = answers + authorities + additional;
  for (let index = 0; index < records; index += 1) {
    const from = reader.at;
    const [name, type] = [reader.name(), reader.u16()];
    const [among, ttl, length] = [reader.u16(), reader.u32(), reader.u16()];
    const data = length === null ? null : reader.take(length);
    if (name === null || among === null || ttl === null || data === null) return "malformed";
    if (type !== typeTsig) continue;
    if (index < records - 1 || additional === 0 || reader.at !== packet.length || among !== classAny || ttl !== 0)
      return "malformed";
    const claim = claimIn(name, data);
    if (claim === null) return "malformed";
    const message = Buffer.from(packet.subarray(0, from));
    message.writeUInt16BE(additional - 1, additionalAt);
    message.writeUInt16BE(claim.originalId, 0);
    return { claim, message };
  }
  return "none";
}
function claimIn(name: string, data: Uint8Array): Claim | null {
  const reader = new Reader(data);
  const [by, high, low, apart] = [reader.name(), reader.u16(), reader.u32(), reader.u16()];
  const size = reader.u16();
  const mac = size === null ? null : reader.take(size);
  const [originalId, error, otherBytes] = [reader.u16(), reader.u16(), reader.u16()];
  const other = otherBytes === null ? null : reader.take(otherBytes);
  if (by === null || high === null || low === null || apart === null || mac === null) return null;
  if (originalId === null || error === null || other === null || reader.at !== data.length) return null;
  const times = { signedAt: high * 2 ** 32 + low, fudge: apart };
  return { name, algorithm: by, ...times, mac: Buffer.from(mac), originalId, error, other: [...other] };
}
