/*
 * What switches the power of a machine, apart from the machine: its management controller (BMC), or a device that a program of Debian's
 * `fence-agents` knows. It is asked by another host, for the HA Manager. What a controller says of the power counts only together with the
 * system UUID that it shows: with swapped addresses one would read another machine's power. An agent shows none; what stands for it is the
 * operator's word, which plug is whose, and that nothing it reads counts before it was asked to cut that power (decision 124).
 */
export type PowerKind = "ipmi" | "redfish" | "agent";

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
  /** Of an agent: the program, `fence_…`; the plug as its device calls it (absent: it has one alone); further options of the program. */
  readonly agent?: string;
  readonly plug?: string;
  readonly options?: { readonly [name: string]: string };
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
  /** Before one is registered: why it is nothing that switches a power, a sentence; null: it may be. Nothing is asked of the device. */
  examine?(controller: PowerController, signal: AbortSignal): Promise<string | null>;
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

/** One device and plug: no two hosts have it. */
export const isSamePlug = (one: Omit<PowerController, "password">, other: Omit<PowerController, "password">): boolean =>
  one.kind === "agent" && other.kind === "agent" && one.address === other.address && one.plug === other.plug;

export type PowerAction = "read" | "off";
/** As it is kept: the password sealed. */
export interface RegisteredController extends Omit<PowerController, "password"> {
  readonly sealed: string;
}
