/**
 * DNS messages (RFC 1035, 4) as far as a name server in the middle needs them: a question that came in, the same one as it
 * is asked, and what is given back. Names are lower case with dots between their labels. What is not understood as a whole
 * is none: a guest writes the one kind, somebody outside the other.
 */
export interface Question {
  readonly name: string;
  readonly type: number;
}
export interface Query extends Question {
  readonly id: number;
  readonly recursionDesired: boolean;
  /** Largest answer by UDP that the asker takes (RFC 6891), within our own bound. */
  readonly largest: number;
  /** It came with an OPT record, and gets one back. */
  readonly extended: boolean;
}
export interface NameRecord {
  readonly name: string;
  readonly type: number;
  /** Seconds. */
  readonly ttl: number;
  /** Its RDATA, with whole names in it. */
  readonly data: Uint8Array;
}

export const types = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  CAA: 257,
} as const;
export const rcodes = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 } as const;
export const classIn = 1;
/** Without OPT an answer by UDP has at most so many bytes (RFC 1035, 2.3.4); with it as many as no path cuts into pieces. */
export const smallest = 512;
export const largestUdp = 1232;
export const headerBytes = 12;

export const flags = {
  response: 0x8000,
  opcode: 0x7800,
  truncated: 0x0200,
  desired: 0x0100,
  available: 0x0080,
} as const;

/** Reads forward within a message; null: it ends too early, or what is there cannot be. */
export class Reader {
  readonly bytes: Uint8Array;
  at: number;
  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }
  u16(): number | null {
    const [high, low] = [this.bytes[this.at], this.bytes[this.at + 1]];
    if (high === undefined || low === undefined) return null;
    this.at += 2;
    return high * 256 + low;
  }
  u32(): number | null {
    const [high, low] = [this.u16(), this.u16()];
    return high === null || low === null ? null : high * 65_536 + low;
  }
  take(length: number): Uint8Array | null {
    if (this.at + length > this.bytes.length) return null;
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
  /**
   * A name, with its pointers followed. One points only further back than everything that was read of the name (RFC 1035,
   * 4.1.4), so that none leads in a circle. Labels have printable characters only, and no dot: such a name can be written.
   */
  name(): string | null {
    const labels: string[] = [];
    let [at, before, end, length] = [this.at, this.at, -1, 1];
    for (;;) {
      const size = this.bytes[at];
      if (size === undefined) return null;
      if ((size & 0xc0) === 0xc0) {
        const low = this.bytes[at + 1];
        const target = low === undefined ? -1 : (size & 0x3f) * 256 + low;
        if (target < 0 || target >= before) return null;
        if (end < 0) end = at + 2;
        [at, before] = [target, target];
        continue;
      }
      if (size > 63 || at + 1 + size > this.bytes.length) return null;
      if (size === 0) break;
      length += size + 1;
      if (length > 255) return null;
      const label = String.fromCharCode(...this.bytes.subarray(at + 1, at + 1 + size)).toLowerCase();
      if (!/^[!-\-/-~]+$/.test(label)) return null;
      labels.push(label);
      at += 1 + size;
    }
    this.at = end < 0 ? at + 1 : end;
    return labels.join(".");
  }
}

/** The bytes of a name, none of them a pointer. */
export const nameBytes = (name: string): number[] => [
  ...(name === "" ? [] : name.split(".")).flatMap((label) => [
    label.length,
    ...[...label].map((each) => each.charCodeAt(0)),
  ]),
  0,
];
export const u16 = (value: number): number[] => [(value >>> 8) & 255, value & 255];
export const u32 = (value: number): number[] => [...u16(value >>> 16), ...u16(value & 65_535)];

/** A query with one question of the Internet and nothing else but OPT; null: anything else. */
export function parseQuery(packet: Uint8Array): Query | null {
  const reader = new Reader(packet);
  const header = Array.from({ length: 6 }, () => reader.u16());
  const [id, word, questions, answers, authorities, additional] = header;
  if (id == null || word == null || (word & (flags.response | flags.opcode | flags.truncated)) !== 0) return null;
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additional !== 0 && additional !== 1)) return null;
  const [name, type, among] = [reader.name(), reader.u16(), reader.u16()];
  if (name === null || type === null || among !== classIn) return null;
  const extended = additional === 1;
  let largest = smallest;
  if (extended) {
    const [owner, kind, size] = [reader.name(), reader.u16(), reader.u16()];
    const [rest, length] = [reader.u32(), reader.u16()];
    if (owner !== "" || kind !== types.OPT || size === null || rest === null || length === null) return null;
    if (reader.take(length) === null) return null;
    largest = Math.min(largestUdp, Math.max(smallest, size));
  }
  if (reader.at !== packet.length) return null;
  return { id, name, type, recursionDesired: (word & flags.desired) !== 0, largest, extended };
}

const optRecord = (size: number): number[] => [0, ...u16(types.OPT), ...u16(size), 0, 0, 0, 0, 0, 0];

/** The question as it goes outside: nothing of the asker's own message is in it but the name and the type. */
export const questionTo = (id: number, { name, type }: Question): Uint8Array =>
  Uint8Array.from([
    ...u16(id),
    ...u16(flags.desired),
    ...u16(1),
    ...u16(0),
    ...u16(0),
    ...u16(1),
    ...nameBytes(name),
    ...u16(type),
    ...u16(classIn),
    ...optRecord(largestUdp),
  ]);

/** What the asker gets: as many whole records as he takes, and whether some are missing. */
export function answerTo(query: Query, rcode: number, records: readonly NameRecord[]): Uint8Array {
  const question = [...nameBytes(query.name), ...u16(query.type), ...u16(classIn)];
  const option = query.extended ? optRecord(largestUdp) : [];
  const body: number[] = [];
  let count = 0;
  for (const { name, type, ttl, data } of records) {
    // The question's own name is at the same place in each message.
    const owner = name === query.name ? [0xc0, headerBytes] : nameBytes(name);
    const record = [...owner, ...u16(type), ...u16(classIn), ...u32(ttl), ...u16(data.length), ...data];
    if (headerBytes + question.length + body.length + record.length + option.length > query.largest) break;
    body.push(...record);
    count += 1;
  }
  const word =
    flags.response |
    flags.available |
    (query.recursionDesired ? flags.desired : 0) |
    (count < records.length ? flags.truncated : 0) |
    rcode;
  const counts = [1, count, 0, query.extended ? 1 : 0].flatMap(u16);
  return Uint8Array.from([...u16(query.id), ...u16(word), ...counts, ...question, ...body, ...option]);
}
