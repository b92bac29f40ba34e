/*
 * What switches the power of a machine, apart from the machine: its management controller (BMC). It is asked by another host, for the HA
 * Manager. What it says of the power counts only together with the system UUID that it shows: with swapped addresses one would read
 * another machine's power.
 */
export type PowerKind = "ipmi" | "redfish";

/** How a controller is reached. Of `password` nothing is written anywhere: no argument list, no log, no answer. */
export interface PowerController {
  readonly kind: PowerKind;
  /** `ADDRESS` or `ADDRESS:PORT`. */
  readonly address: string;
  readonly user: string;
  readonly password: string;
  /** Of IPMI: the cipher suite. Absent: 17 (SHA-256); older controllers know 3 (SHA-1) alone. */
  readonly suite?: 3 | 17;
  /** Of Redfish: SHA-256 of the controller's certificate, hexadecimal. Nothing is asked of another one. */
  readonly fingerprint?: string;
}

/** What a controller shows. Null: nothing that could be read, and that is never "off". */
export interface PowerReading {
  readonly power: "on" | "off" | null;
  /** As `uuidOf` writes it. */
  readonly uuid: string | null;
  /** Why it is not known, a sentence without any secret; null: it is. */
  readonly reason: string | null;
}

export interface PowerDriver {
  read(controller: PowerController, signal: AbortSignal): Promise<PowerReading>;
  /** Asks for the power to be cut. That it has answered says nothing: `read` does. */
  off(controller: PowerController, signal: AbortSignal): Promise<void>;
}

/** Lower case, with hyphens; null: it is no UUID. */
export const uuidOf = (text: string): string | null => {
  const hex = text.replaceAll("-", "").toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(hex) || /^(0+|f+)$/.test(hex)) return null;
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
};

/**
 * Whether a controller and a host's firmware mean one machine. IPMI does not say in which order its bytes are, and vendors differ: all
 * three orders are one UUID.
 */
export const isSameUuid = (one: string, other: string): boolean => {
  const bytes = one.replaceAll("-", "").match(/../g) ?? [];
  const swapped = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map((at) => bytes[at]);
  return [bytes, bytes.toReversed(), swapped].some((each) => uuidOf(each.join("")) === other);
};

/** Not more of an answer is read than this. */
export const longestAnswer = 64 * 1024;
export const nothingRead = (reason: string): PowerReading => ({ power: null, uuid: null, reason });

export type PowerAction = "read" | "off";
/** As it is kept: the password sealed. */
export interface RegisteredController extends Omit<PowerController, "password"> {
  readonly sealed: string;
}
