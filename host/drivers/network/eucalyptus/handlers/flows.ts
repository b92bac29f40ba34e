import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { metadataAddress } from "../plan/metadata.ts";
import type { LocalPlan, Table } from "../plan/plan.ts";
import { ruleText } from "../plan/print.ts";
import type { Run } from "./run.ts";
import type { Printed } from "./tables.ts";

/*
 * Connections that the kernel keeps of addresses which are another's by now. It goes on to translate, or to let pass, what it once did so, whatever
 * rules say since, for as long as packets come: who asks an elastic address over and over while it is nobody's would never reach whose it becomes,
 * and who had it before would go on to get what is sent there. So what is kept of such addresses goes, once rules are in place.
 */

/** By address, as text: what an address outside is translated to, or the tap that has it. */
export type Holders = ReadonlyMap<string, string>;
const translated = /-d (?<address>[\d.]+)(?:\/32)? -j DNAT --to-destination (?<holder>[\d.]+)$/;
const held = [/-i (?<holder>vn_\S+) --ip-src ! (?<address>[\d.]+) /, /^-A EUCA_COUNTERS_IN -d (?<address>[\d.]+)\/32/];
function holdersOf(rules: readonly string[], forms: readonly RegExp[]): Holders {
  const holders = new Map<string, string>();
  for (const rule of rules)
    for (const form of forms) {
      const { address, holder = "somebody" } = form.exec(rule)?.groups ?? {};
      if (address !== undefined) holders.set(address, holder);
    }
  return holders;
}
const differing = (before: Holders, now: Holders): readonly string[] =>
  [...new Set([...before.keys(), ...now.keys()])].filter((address) => before.get(address) !== now.get(address));
/** @param before rules as they are printed */
export const isTranslatedOtherwise = (before: readonly string[], now: readonly string[]): boolean =>
  differing(holdersOf(before, [translated]), holdersOf(now, [translated])).length > 0;
/**
 * Instances' addresses which another has now, or nobody any more, or somebody for the first time. Where nobody's were held before, the mode has just come
 * to this machine, and connections live on.
 * @param before rules as they are printed
 */
export function changedAddresses(before: readonly string[], now: readonly string[]): readonly string[] {
  const heldBefore = holdersOf(before, held);
  return heldBefore.size === 0 ? [] : differing(heldBefore, holdersOf(now, held));
}
const rulesOf = (tables: readonly Table[]): readonly string[] =>
  tables.flatMap(({ chains }) => chains.flatMap(({ name, rules }) => rules.map((rule) => ruleText(name, rule))));
/** What addresses outside are translated to, by tables of a plan. */
export const translationsOf = (tables: readonly Table[]): Holders => holdersOf(rulesOf(tables), [translated]);

/** One connection by both its directions, as text. */
interface Flow {
  readonly from: string;
  readonly to: string;
  readonly answersFrom: string;
  readonly answersTo: string;
}
function* flowsOf(listed: string): Iterable<Flow> {
  for (const [, from = "", to = "", answersFrom = "", answersTo = ""] of listed.matchAll(
    /src=([\d.]+) dst=([\d.]+) .*?src=([\d.]+) dst=([\d.]+) /g,
  ))
    yield { from, to, answersFrom, answersTo };
}
function* mistranslatedBy(
  { from, to, answersFrom, answersTo }: Flow,
  translations: Holders,
  isOurs: (address: string) => boolean,
): Iterable<string> {
  const inside = translations.get(to);
  const isLed = inside === undefined ? to !== answersFrom && isOurs(to) : inside !== answersFrom;
  if (isLed) yield `-D -d ${to} -r ${answersFrom}`;
  const isShown = from !== answersTo && (translations.has(answersTo) || isOurs(answersTo));
  if (isShown && translations.get(answersTo) !== from) yield `-D -s ${from} -q ${answersTo}`;
}
const metadata = formatIpv4(metadataAddress);
/**
 * What `conntrack` is told to forget, since it is translated otherwise by now: a line for each pair of addresses.
 * @param listed by `conntrack -L`
 * @param managed with ranges of addresses that are nobody's where no rule translates them
 */
export function mistranslated(listed: string, managed: LocalPlan["managed"], translations: Holders): readonly string[] {
  const ranges = managed.flatMap((each) => each.ranges);
  const isOurs = (text: string): boolean => {
    const address = parseIpv4(text) ?? -1;
    return text !== metadata && ranges.some(({ first, last }) => first <= address && address <= last);
  };
  const lines = new Set<string>();
  for (const flow of flowsOf(listed)) for (const line of mistranslatedBy(flow, translations, isOurs)) lines.add(line);
  return [...lines];
}
/** The same of all that is kept of addresses, by each of them. */
export function keptOf(listed: string, addresses: ReadonlySet<string>): ReadonlyMap<string, ReadonlySet<string>> {
  const kept = new Map<string, Set<string>>();
  for (const flow of flowsOf(listed))
    for (const address of new Set(Object.values(flow)))
      if (addresses.has(address)) {
        const lines = kept.get(address) ?? new Set();
        kept.set(address, lines.add(`-D ${sideOf(flow, address)} ${address}`));
      }
  return kept;
}
const sideOf = ({ from, to, answersFrom }: Flow, address: string): string =>
  address === from ? "-s" : address === to ? "-d" : address === answersFrom ? "-r" : "-q";

/** The kernel's table is gone through for each line: so many entries in one call, some seconds. */
const mostEntries = 2_000_000;
const linesFor = (entries: number): number => Math.max(4, Math.floor(mostEntries / Math.max(1, entries)));

/**
 * Takes what is kept of addresses that have changed. What could not be taken is tried again with the next call; a process that begins looks at elastic
 * addresses alone, since of others nothing shows whose a connection was.
 */
export class FlowHandler {
  readonly #run: Run;
  readonly #directory: string;
  /** Instances' addresses of which all goes. */
  readonly #owed = new Set<string>();
  /** Translations have changed since they were compared with what is kept. */
  #isLookDue = true;

  /** @param directory of the file by which it says what goes; made where it is missing */
  constructor(run: Run, directory: string) {
    this.#run = run;
    this.#directory = directory;
  }
  /** Before rules are written. @param tables that will be, of which `found` has what is in place */
  note(tables: readonly Table[], found: Printed): void {
    const names = new Set(tables.map(({ name }) => name));
    const before = [...found].flatMap(([name, rules]) => (names.has(name.split(" ")[0] ?? "") ? rules : []));
    const now = rulesOf(tables);
    if (isTranslatedOtherwise(before, now)) this.#isLookDue = true;
    for (const address of changedAddresses(before, now)) this.#owed.add(address);
  }
  /**
   * Once rules are written. Where the kernel keeps much, one call takes no more than it can: others wait for it.
   * @param translating tables by which addresses are translated; null: they are not written yet
   */
  async apply({ managed }: Pick<LocalPlan, "managed">, translating: readonly Table[] | null): Promise<void> {
    const looks = this.#isLookDue && translating !== null;
    if (this.#owed.size === 0 && !looks) return;
    const listed = await this.#run("conntrack", ["-L"]);
    const wrong = looks ? mistranslated(listed, managed, translationsOf(translating)) : [];
    const kept = keptOf(listed, this.#owed);
    const most = linesFor(listed.split("\n").length);
    const lines = wrong.slice(0, most);
    const done = [...this.#owed].filter((address) => {
      const own = kept.get(address) ?? [];
      const isTaken = lines.length + [...own].length <= most;
      if (isTaken) lines.push(...own);
      return isTaken;
    });
    if (lines.length > 0) await this.#forget(lines);
    for (const address of done) this.#owed.delete(address);
    if (looks && lines.length >= wrong.length) this.#isLookDue = false;
    const left = this.#owed.size + Math.max(0, wrong.length - most);
    if (left > 0) throw new Error(`connections of ${left} more addresses are kept, and go with the next passes`);
  }
  /** By a file: it opens its input by name, which it cannot where that is a socket, and one process each would be too many. */
  async #forget(lines: readonly string[]): Promise<void> {
    const file = join(this.#directory, "flows");
    await mkdir(this.#directory, { recursive: true });
    await writeFile(file, lines.map((line) => `${line}\n`).join(""));
    await this.#run("conntrack", ["-R", file]);
  }
}
