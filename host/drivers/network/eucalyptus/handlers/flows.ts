import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { metadataAddress } from "../plan/metadata.ts";
import type { LocalPlan, Table } from "../plan/plan.ts";
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
/**
 * Addresses which another has now, or nobody any more, or somebody for the first time. Where no machine's were held before, the mode has just come to
 * this machine, and connections live on.
 * @param before rules as they are printed
 */
export function changedAddresses(before: readonly string[], now: readonly string[]): readonly string[] {
  const heldBefore = holdersOf(before, held);
  return [
    ...differing(holdersOf(before, [translated]), holdersOf(now, [translated])),
    ...(heldBefore.size === 0 ? [] : differing(heldBefore, holdersOf(now, held))),
  ];
}
const rulesOf = (tables: readonly Table[]): readonly string[] =>
  tables.flatMap(({ chains }) =>
    chains.flatMap(({ name, rules }) => rules.map((rule) => `-A ${name} ${rule.join(" ")}`)),
  );
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
/** Of what is translated otherwise than by now. @param managed with ranges of addresses that are nobody's where no rule translates them */
function* mistranslated(
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
 * What `conntrack` is told to forget: a line for each pair of addresses that are translated otherwise by now, and of changed ones all that there is.
 * @param listed by `conntrack -L`
 * @param translations null: they are not written yet
 */
export function forgotten(
  listed: string,
  managed: LocalPlan["managed"],
  translations: Holders | null,
  changed: ReadonlySet<string>,
): readonly string[] {
  const ranges = managed.flatMap((each) => each.ranges);
  const isOurs = (text: string): boolean => {
    const address = parseIpv4(text) ?? -1;
    return text !== metadata && ranges.some(({ first, last }) => first <= address && address <= last);
  };
  const lines = new Set<string>();
  for (const flow of flowsOf(listed)) {
    if (translations !== null) for (const line of mistranslated(flow, translations, isOurs)) lines.add(line);
    for (const address of Object.values(flow))
      if (changed.has(address)) for (const side of ["-s", "-d", "-r", "-q"]) lines.add(`-D ${side} ${address}`);
  }
  return [...lines];
}

/** Takes what is kept of addresses that have changed; what could not be taken is tried again with the next call. */
export class FlowHandler {
  readonly #run: Run;
  readonly #directory: string;
  readonly #owed = new Set<string>();
  /** What became of addresses before this process began is seen by what is kept alone. */
  #isFirst = true;

  /** @param directory of the file by which it says what goes; made where it is missing */
  constructor(run: Run, directory: string) {
    this.#run = run;
    this.#directory = directory;
  }
  /** Before rules are written. @param tables that will be, of which `found` has what is in place */
  note(tables: readonly Table[], found: Printed): void {
    const names = new Set(tables.map(({ name }) => name));
    const before = [...found].flatMap(([name, rules]) => (names.has(name.split(" ")[0] ?? "") ? rules : []));
    for (const address of changedAddresses(before, rulesOf(tables))) this.#owed.add(address);
  }
  /** Once rules are written. @param translating tables by which addresses are translated; null: they are not written yet */
  async apply({ managed }: Pick<LocalPlan, "managed">, translating: readonly Table[] | null): Promise<void> {
    if (this.#owed.size === 0 && !(this.#isFirst && translating !== null)) return;
    const translations = translating === null ? null : translationsOf(translating);
    // Of those that are translated, what is as it should be lives on.
    const changed = new Set([...this.#owed].filter((address) => translations?.has(address) !== true));
    const lines = forgotten(await this.#run("conntrack", ["-L"]), managed, translations, changed);
    if (lines.length > 0) await this.#forget(lines);
    this.#owed.clear();
    if (translations !== null) this.#isFirst = false;
  }
  /** By a file: it opens its input by name, which it cannot where that is a socket, and one process each would be too many. */
  async #forget(lines: readonly string[]): Promise<void> {
    const file = join(this.#directory, "flows");
    await mkdir(this.#directory, { recursive: true });
    await writeFile(file, lines.map((line) => `${line}\n`).join(""));
    await this.#run("conntrack", ["-R", file]);
  }
}
