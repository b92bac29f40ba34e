import { boolean, exactly, integer, list, nullable, optional, record, secret, text } from "../schema.ts";

/** Names for the outside: `GET /zone`. */
export interface ZoneReport {
  /** The declared one first, then the reverse ones; none: the root cell declares no zone. */
  readonly zones: readonly string[];
  /** Of all of them. */
  readonly serial: number | null;
  readonly secondaries: readonly string[];
  /** Name of the key by which transfers are signed; null: addresses alone count. */
  readonly key: string | null;
  /** Those whose secrets were given. `lost`: it was sealed by a process whose directory is gone, so it has to be given again. */
  readonly keys: readonly { readonly name: string; readonly lost?: true }[];
}
/** `PUT /zone/keys/{name}`. The secret goes no further than it has to. */
export interface ZoneKeyWord {
  readonly secret: string;
}
export interface ZoneKeyAnswer {
  readonly name: string;
  /** There was one of this name. */
  readonly wasThere: boolean;
  /** It is the one that `x.zone.key` of the root cell names. */
  readonly declared: boolean;
}

export const zoneReport = record<ZoneReport>(
  {
    zones: list(text()),
    serial: nullable(integer()),
    secondaries: list(text()),
    key: nullable(text()),
    keys: list(record<ZoneReport["keys"][number]>({ name: text(), lost: optional(exactly(true)) })),
  },
  "ZoneReport",
);
const four = "[A-Za-z0-9+/]{4}";
const [two, three] = ["[A-Za-z0-9+/]{2}==", "[A-Za-z0-9+/]{3}="];
/** From 32 octets, as many as the signature has (RFC 8945, 10), to the 64 of a block of SHA-256. */
const secretForm = new RegExp(
  `^(?:(?:${four}){10}${three}|(?:${four}){11,20}(?:${two}|${three})?|(?:${four}){21}(?:${two})?)$`,
);
export const zoneKeyWord = record<ZoneKeyWord>(
  { secret: secret(secretForm, "from 32 to 64 bytes in base64") },
  "ZoneKeyWord",
);
export const zoneKeyAnswer = record<ZoneKeyAnswer>(
  { name: text(), wasThere: boolean, declared: boolean },
  "ZoneKeyAnswer",
);
