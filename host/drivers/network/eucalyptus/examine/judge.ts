import { formatIpv4, parseIpv4, parseNetwork } from "../../../../../model/addresses/addresses.ts";
import type { Sets } from "../handlers/sets.ts";
import type { Printed } from "../handlers/tables.ts";

/*
 * What the rules in force do with one packet that opens a connection. Goes through chains as the kernel does, by what its tools print of
 * them and nothing else: a rule that is wrong in the kernel is wrong here. Pure.
 *
 * A condition that nobody can tell from here (a device that only the kernel chooses, a match of the site's own) makes a doubt: its rule
 * counts as one that does not match, and whoever reads the answer is told.
 */

export interface Packet {
  readonly source: number;
  /** As it is now: another one than `asked` behind a DNAT. */
  readonly destination: number;
  /** The address to which the connection was opened. */
  readonly asked: number;
  readonly protocol: "tcp" | "udp" | "icmp";
  /** Of the destination; 0 for ICMP, which is an echo. */
  readonly port: number;
  readonly mark: number;
  /** Devices by which it comes and goes; null: not known. */
  readonly from: string | null;
  readonly to: string | null;
  /** Of its sender on the wire; null: not known. */
  readonly mac: string | null;
}
/** What is in force of one tool. */
export interface InForce {
  readonly printed: Printed;
  readonly sets: Sets;
}
export interface Judged {
  /** `RETURN`: no rule took it, and the chain has no policy. */
  readonly verdict: "ACCEPT" | "DROP" | "RETURN";
  /** The rule that decided, as it is printed behind its chain's name; null: a policy, or nothing. */
  readonly by: { readonly chain: string; readonly rule: string } | null;
  /** As it is behind the table: another destination, source or mark. */
  readonly packet: Packet;
  /** Chains that were entered, as `filter FORWARD`, and sets that were asked, each with the addresses for which. */
  readonly chains: ReadonlySet<string>;
  readonly sets: Asked;
  /** Rules that ask for what cannot be told from here. */
  readonly doubts: readonly NonNullable<Judged["by"]>[];
}

export type Asked = ReadonlyMap<string, ReadonlySet<number>>;
type Truth = boolean | null;
const deepest = 32;

export function judge(inForce: InForce, table: string, chain: string, packet: Packet): Judged {
  const walk = new Walk(inForce, table, packet);
  const end = walk.enter(chain, 0);
  const policy = inForce.printed.get(`${table} ${chain}`)?.[0]?.split(" ")[1];
  const ended = end?.verdict === "RETURN" ? null : end;
  const verdict = ended?.verdict ?? (policy === "ACCEPT" || policy === "DROP" ? policy : "RETURN");
  const { packet: now, chains, sets, doubts } = walk;
  return { verdict, by: ended?.by ?? null, packet: now, chains, sets, doubts };
}

type End = Pick<Judged, "verdict" | "by">;
class Walk {
  readonly #inForce: InForce;
  readonly #table: string;
  packet: Packet;
  readonly chains = new Set<string>();
  readonly sets = new Map<string, Set<number>>();
  readonly doubts: NonNullable<Judged["by"]>[] = [];

  constructor(inForce: InForce, table: string, packet: Packet) {
    this.#inForce = inForce;
    this.#table = table;
    this.packet = packet;
  }

  /** Null: its end was reached. `RETURN`: whoever entered goes on behind the jump. */
  enter(chain: string, depth: number): End | null {
    this.chains.add(`${this.#table} ${chain}`);
    if (depth > deepest) return null;
    for (const line of this.#inForce.printed.get(`${this.#table} ${chain}`)?.slice(1) ?? []) {
      const rule = line.replace(/^-A \S+ ?/, "");
      const { conditions, target } = parsed(rule);
      const truths = conditions.map((condition) => this.#holds(condition));
      if (truths.includes(false)) continue;
      if (truths.includes(null)) {
        this.doubts.push({ chain, rule });
        continue;
      }
      const end = this.#take(target, { chain, rule }, depth);
      if (end !== null) return end;
    }
    return null;
  }

  #take(target: Target | null, by: NonNullable<Judged["by"]>, depth: number): End | null {
    if (target === null) return null;
    const { name, options, isGoto } = target;
    switch (name) {
      case "ACCEPT":
        return { verdict: "ACCEPT", by };
      case "DROP":
      case "REJECT":
        return { verdict: "DROP", by };
      case "RETURN":
        return { verdict: "RETURN", by };
      case "MARK": {
        const [value = "0"] = (options.get("--set-xmark") ?? "0").split("/");
        this.packet = { ...this.packet, mark: Number(value) };
        return null;
      }
      case "DNAT":
        this.packet = { ...this.packet, destination: this.#address(options.get("--to-destination"), "destination") };
        return { verdict: "ACCEPT", by };
      case "SNAT":
        this.packet = { ...this.packet, source: this.#address(options.get("--to-source"), "source") };
        return { verdict: "ACCEPT", by };
      case "MASQUERADE":
        return { verdict: "ACCEPT", by };
      default: {
        if (!this.#inForce.printed.has(`${this.#table} ${name}`)) return null;
        const end = this.enter(name, depth + 1);
        // Whoever goes on from a chain that was gone to is behind the one from which that was entered.
        if (end === null || end.verdict === "RETURN") return isGoto ? { verdict: "RETURN", by } : null;
        return end;
      }
    }
  }
  #address(text: string | undefined, kept: "source" | "destination"): number {
    return parseIpv4(text?.split(":")[0] ?? "") ?? this.packet[kept];
  }

  #holds({ option, values, isNegated }: Condition): Truth {
    const truth = this.#asked(option, values);
    return truth === null || !isNegated ? truth : !truth;
  }
  #asked(option: string, [value = "", more = ""]: readonly string[]): Truth {
    const { source, destination, asked, protocol, port, mark, from, to, mac } = this.packet;
    switch (option) {
      case "-s":
        return value.includes(":") ? isMac(value, mac) : isIn(value, source);
      case "--ip-src":
        return isIn(value, source);
      case "-d":
        // No packet that opens a connection goes to all; whose MAC it has is not known.
        return /^(?:Broadcast|Multicast)$/.test(value) ? false : value.includes(":") ? null : isIn(value, destination);
      case "--ip-dst":
        return isIn(value, destination);
      case "-i":
        return isDevice(value, from);
      case "-o":
        return isDevice(value, to);
      case "-p":
      case "--ip-proto":
        return value === "IPv4" || value === "all" || value === protocol || Number(value) === numbers[protocol];
      case "--dport":
      case "--ip-dport":
        return isPort(value, port);
      case "--sport":
      case "--ip-sport":
        return null;
      case "--match-set":
        return this.#isMember(value, more.split(",")[0] === "src" ? source : destination);
      case "--ctstate":
      case "--state":
        return value.split(",").includes("NEW");
      case "--ctorigdst":
        return isIn(value, asked);
      case "--mark": {
        const [wanted = "0", mask = "0xffffffff"] = value.split("/");
        return (mark & Number(mask)) === (Number(wanted) | 0);
      }
      case "--icmp-type":
        return value === "any" || /^8(?:\/0)?$/.test(value);
      default:
        return null;
    }
  }
  #isMember(name: string, address: number): boolean {
    this.sets.set(name, (this.sets.get(name) ?? new Set()).add(address));
    return isMember(this.#inForce.sets.get(name) ?? none, address);
  }
}
const none: ReadonlySet<string> = new Set();
/** Members are networks: each that could hold the address is looked for. */
export function isMember(members: ReadonlySet<string>, address: number): boolean {
  for (let length = 32; length >= 0; length -= 1) {
    const network = length === 0 ? 0 : ((address >>> (32 - length)) << (32 - length)) >>> 0;
    if (members.has(`${formatIpv4(network)}/${length}`)) return true;
  }
  return false;
}
const numbers = { icmp: 1, tcp: 6, udp: 17 } as const;

function isIn(text: string, address: number): Truth {
  const network = parseNetwork(text);
  return network === null ? null : network.first <= address && address <= network.last;
}
const isDevice = (pattern: string, name: string | null): Truth =>
  name === null ? null : pattern.endsWith("+") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
/** Some masks are printed with it, which no rule of ours has. */
const isMac = (wanted: string, mac: string | null): Truth =>
  mac === null || wanted.includes("/") ? null : wanted.toLowerCase() === mac.toLowerCase();
function isPort(text: string, port: number): boolean {
  const [first = 0, last = first] = text.split(":").map(Number);
  return first <= port && port <= last;
}

interface Condition {
  readonly option: string;
  readonly values: readonly string[];
  readonly isNegated: boolean;
}
interface Target {
  readonly name: string;
  readonly options: ReadonlyMap<string, string>;
  readonly isGoto: boolean;
}
/** What people write into rules of theirs asks for nothing; one of several words stands in quotes. */
const comment = /-m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+) ?/g;
/** A rule as the tools print it. They say `! -s x` and `-s ! x`. */
function parsed(rule: string): { readonly conditions: readonly Condition[]; readonly target: Target | null } {
  const conditions: Condition[] = [];
  const words = rule.replaceAll(comment, "").split(" ");
  let isNegated = false;
  for (let at = 0; at < words.length; ) {
    const option = words[at] ?? "";
    at += 1;
    if (option === "!") {
      isNegated = true;
      continue;
    }
    const values: string[] = [];
    for (let word = words[at]; word !== undefined && !word.startsWith("-"); word = words[at]) {
      // One that is the next option's own.
      if (word === "!" && (words[at + 1]?.startsWith("-") ?? false)) break;
      if (word === "!") isNegated = true;
      else values.push(word);
      at += 1;
    }
    if (option === "-j" || option === "-g")
      return {
        conditions,
        target: { name: values[0] ?? "", options: optionsOf(words.slice(at)), isGoto: option === "-g" },
      };
    if (option !== "-m" && option !== "") conditions.push({ option, values, isNegated });
    isNegated = false;
  }
  return { conditions, target: null };
}
const optionsOf = (words: readonly string[]): ReadonlyMap<string, string> =>
  new Map(words.flatMap((word, at) => (word.startsWith("--") ? [[word, words[at + 1] ?? ""] as const] : [])));
