import type { Chain, Table } from "../plan/plan.ts";
import { ruleText } from "../plan/print.ts";
import type { Run } from "./run.ts";

/*
 * Rules of this machine, chain by chain. The kernel's tools print a rule in words of their own, so what is in place is compared with what
 * was in place when it was put there: a chain is written anew where its plan is another one, or where it reads otherwise than it did
 * then. A service that has just started writes all of its chains once, each table in one transaction; connections live on.
 */

/** By table and chain, what is printed of it. */
export type Printed = ReadonlyMap<string, readonly string[]>;
export type Tool = "iptables" | "ebtables";
const programs = {
  iptables: { save: ["iptables-save"], restore: ["iptables-restore", "--noflush"] },
  ebtables: { save: ["ebtables-nft-save"], restore: ["ebtables-nft-restore", "--noflush"] },
} as const;

const key = (table: string, chain: string): string => `${table} ${chain}`;

export async function readTables(run: Run, tool: Tool): Promise<Printed> {
  const [program] = programs[tool].save;
  return printedOf(await run(program, []));
}
/** @param table of chains before which no table is named */
function printedOf(text: string, table = ""): Printed {
  const printed = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [, chain] = /^:(\S+)/.exec(line) ?? [];
    const [, of] = /^-A (\S+)/.exec(line) ?? [];
    if (line.startsWith("*")) table = line.slice(1);
    else if (chain !== undefined) printed.set(key(table, chain), [line.replace(/ \[.*$/, "")]);
    else if (of !== undefined) printed.get(key(table, of))?.push(line);
  }
  return printed;
}
/**
 * One table of iptables, or one chain of it: to save reads all tables with all their rules, whichever it is asked for. The words of a rule are
 * those of a save, and only how a chain is declared is said otherwise.
 */
async function readTable(run: Run, table: string, chain: readonly string[]): Promise<Printed> {
  const said = await run("iptables", ["-t", table, "-S", ...chain]);
  return printedOf(said.replace(/^-P /gm, ":").replace(/^-N (.*)$/gm, ":$1 -"), table);
}

/** Right before the next one of ours that is there: what the site has put behind the one before it is asked first, as it was. */
function placeBefore(jump: string, lines: readonly string[], wanted: readonly string[], behind: number): number {
  const next = lines.findIndex((line, at) => at > behind && wanted.indexOf(line) > wanted.indexOf(jump));
  return next === -1 ? behind + 1 : next;
}

/** What of a chain was put in place, and how it read then. */
interface Applied {
  readonly plan: string;
  readonly printed: string;
}
const planOf = ({ policy, rules }: Chain): string => JSON.stringify([policy, rules]);
const textOf = (printed: Printed, name: string): string => (printed.get(name) ?? ["absent"]).join("\n");
/** Chains of the site's own rules: they are there, and nobody else writes into them but a jump of ours. */
const isHook = (name: string): boolean => name.endsWith("USERHOOK");
/** One of a mode, or of what came before it. */
const isMode = (name: string): boolean => /^(?:EUCA_|EU_|sg-|CELLS_)/.test(name);
/** Of the mode: where a policy or nothing but jumps stands, others' rules may stand beside them. */
const isShared = ({ policy, rules, isWhole }: Chain): boolean =>
  isWhole !== true && policy === "ACCEPT" && rules.every(([first]) => first === "-j");

export class TableHandler {
  readonly #run: Run;
  readonly tool: Tool;
  readonly #applied = new Map<string, Applied>();
  /** Counted for who wants to know what was written. */
  written: readonly string[] = [];

  constructor(run: Run, tool: Tool) {
    this.#run = run;
    this.tool = tool;
  }

  /** Chains that are to be written, by table. */
  due(wanted: readonly Table[], found: Printed): readonly string[] {
    return wanted.flatMap(({ name: table, chains }) =>
      chains.filter((chain) => this.#isDue(table, chain, found)).map(({ name }) => key(table, name)),
    );
  }
  #isDue(table: string, chain: Chain, found: Printed): boolean {
    const name = key(table, chain.name);
    if (isHook(chain.name) && !found.has(name)) return true;
    if (isHook(chain.name) || isShared(chain)) return this.#missingJumps(table, chain, found).length > 0;
    const applied = this.#applied.get(name);
    return applied === undefined || applied.plan !== planOf(chain) || applied.printed !== textOf(found, name);
  }
  /** Jumps of ours stand in their order, wherever the site's own rules are: what is asked first decides. */
  #missingJumps(table: string, { name, rules }: Chain, found: Printed): readonly string[] {
    const before = `-A ${name} `;
    const lines = (found.get(key(table, name))?.slice(1) ?? []).map((line) => line.slice(before.length));
    const wanted = rules.map((rule) => rule.join(" "));
    const changes: string[] = [];
    let behind = -1;
    for (const jump of wanted) {
      let at = lines.indexOf(jump);
      for (; at !== -1 && at < behind; at = lines.indexOf(jump)) {
        changes.push(`-D ${name} ${jump}`);
        lines.splice(at, 1);
        behind -= 1;
      }
      if (at === -1) {
        at = behind === -1 ? this.#placeOfFirst(name, jump, lines, wanted) : placeBefore(jump, lines, wanted, behind);
        changes.push(at === lines.length ? `${before}${jump}` : `-I ${name} ${at + 1} ${jump}`);
        lines.splice(at, 0, jump);
      }
      behind = at;
    }
    return changes;
  }
  #placeOfFirst(chain: string, jump: string, lines: readonly string[], wanted: readonly string[]): number {
    // What the original has not is asked before the site's own rules take anything.
    if (!isHook(chain) && jump.startsWith("-j CELLS_")) return 0;
    const next = lines.findIndex((line) => wanted.includes(line));
    return next === -1 ? lines.length : next;
  }
  /** In chains that are not written whole. */
  #jumpsTo(table: string, gone: readonly string[], found: Printed): readonly string[] {
    const ends = gone.map((name) => ` -j ${name}`);
    return [...found]
      .filter(([name]) => name.startsWith(`${table} `) && (isHook(name) || !isMode(name.slice(table.length + 1))))
      .flatMap(([, lines]) => lines.filter((line) => ends.some((end) => line.endsWith(end))));
  }

  /** Whatever is in place counts as something else: the next `apply` writes each chain anew, each table in one transaction. */
  forget(): void {
    this.#applied.clear();
  }

  /**
   * Writes what is due, and takes away chains of the mode's that the plan has no more.
   * @param all tables of the plan, of which `wanted` are those to be written
   * @returns what is printed now: what was written is read behind it, and of the rest what was found
   */
  async apply(wanted: readonly Table[], found: Printed, all = wanted): Promise<Printed> {
    const due = new Set(this.due(wanted, found));
    const isTouched = this.#isTouched(due, found);
    const stale = this.stale(all, found);
    const tables = new Map<string, readonly string[]>();
    const named = new Set(wanted.map(({ name }) => name));
    const others = new Set(stale.map((name) => name.split(" ")[0] ?? "").filter((name) => !named.has(name)));
    for (const { name: table, chains } of [...wanted, ...[...others].map((name) => ({ name, chains: [] }))]) {
      const changed = chains.filter((chain) => due.has(key(table, chain.name)));
      const gone = stale.filter((name) => name.startsWith(`${table} `)).map((name) => name.slice(table.length + 1));
      if (changed.length === 0 && gone.length === 0) continue;
      const own = changed.filter(
        (chain) => !isShared(chain) && !(isHook(chain.name) && found.has(key(table, chain.name))),
      );
      tables.set(table, [
        ...own.map(({ name, policy }) => this.#declared(name, policy)),
        ...gone.map((name) => this.#declared(name, null)),
        ...changed.flatMap((chain) =>
          isShared(chain) || isHook(chain.name)
            ? this.#missingJumps(table, chain, found)
            : [
                ...(chain.policy === null ? [] : [`-F ${chain.name}`]),
                ...chain.rules.map((rule) => ruleText(chain.name, rule)),
              ],
        ),
        // Behind what is put at a place among those that were found; a chain that is written whole has none of them any more.
        ...this.#jumpsTo(table, gone, found)
          .filter((line) => !own.some(({ name }) => line.startsWith(`-A ${name} `)))
          .map((line) => line.replace(/^-A/, "-D")),
        ...gone.map((name) => `-X ${name}`),
      ]);
    }
    this.written = [...due];
    if (tables.size === 0) return found;
    await this.#restore(tables);
    const now = await this.#readBack([...tables.keys()], due, stale, found, isTouched);
    for (const { name: table, chains } of wanted)
      for (const chain of chains) {
        const name = key(table, chain.name);
        if (due.has(name)) this.#applied.set(name, { plan: planOf(chain), printed: textOf(now, name) });
      }
    return now;
  }
  /** Some of them read otherwise than they were put there. */
  #isTouched(due: ReadonlySet<string>, found: Printed): boolean {
    return [...due].some((name) => {
      const applied = this.#applied.get(name);
      return applied !== undefined && applied.printed !== textOf(found, name);
    });
  }
  /**
   * No more than was written. What reads otherwise than it did is read as it will be read at each look: were the words ever others, a chain would be
   * written twice and not for ever.
   */
  async #readBack(
    tables: readonly string[],
    due: ReadonlySet<string>,
    gone: readonly string[],
    found: Printed,
    isTouched: boolean,
  ): Promise<Printed> {
    const [table, ...more] = tables;
    if (this.tool !== "iptables" || table === undefined || more.length > 0 || isTouched)
      return readTables(this.#run, this.tool);
    const [only, ...others] = [...due].map((name) => name.slice(table.length + 1));
    if (only !== undefined && others.length + gone.length === 0)
      return new Map([...found, ...(await readTable(this.#run, table, [only]))]);
    const rest = [...found].filter(([name]) => !name.startsWith(`${table} `));
    return new Map([...rest, ...(await readTable(this.#run, table, []))]);
  }
  /** Each table in one transaction. */
  async #restore(tables: ReadonlyMap<string, readonly string[]>): Promise<void> {
    const end = this.tool === "iptables" ? ["COMMIT"] : [];
    const text = [...tables].flatMap(([table, lines]) => [`*${table}`, ...lines, ...end]);
    const [program, ...args] = programs[this.tool].restore;
    await this.#run(program, args, text.map((line) => `${line}\n`).join(""));
  }
  #declared(name: string, policy: Chain["policy"]): string {
    if (this.tool === "ebtables") return `:${name} ${policy ?? "ACCEPT"}`;
    return `:${name} ${policy ?? "-"} [0:0]`;
  }

  /**
   * Takes the mode's chains away, and the jumps to them; the site's own rules stay.
   * @param wanted of the plan in force: which of the system's own chains are the mode's
   */
  async clear(wanted: readonly Table[], found: Printed): Promise<void> {
    const own = wanted.flatMap(({ name, chains }) =>
      chains.filter((chain) => chain.policy !== null && !isShared(chain)).map((chain) => key(name, chain.name)),
    );
    const tables = new Map<string, string[]>();
    const say = (table: string, ...lines: readonly string[]) =>
      tables.set(table, [...(tables.get(table) ?? []), ...lines]);
    const chains = [...found.keys()].map((name) => name.split(" ") as [string, string]);
    for (const [table, chain] of chains) {
      if (own.includes(key(table, chain))) say(table, `-P ${chain} ACCEPT`, `-F ${chain}`);
      const jumps = (found.get(key(table, chain)) ?? []).filter(
        (line) => / -j (?:EUCA|CELLS)_\S*$/.test(line) && !isHook(line),
      );
      if ((isHook(chain) || !isMode(chain)) && !own.includes(key(table, chain)))
        say(table, ...jumps.map((line) => line.replace(/^-A/, "-D")));
    }
    const ours = chains.filter(([, chain]) => isMode(chain) && !isHook(chain));
    for (const [table, chain] of ours) say(table, `-F ${chain}`);
    for (const [table, chain] of ours) say(table, `-X ${chain}`);
    this.forget();
    if (tables.size === 0) return;
    await this.#restore(tables);
  }

  /** Chains of the mode's, by table, that are in place and not in the plan. */
  stale(wanted: readonly Table[], found: Printed): readonly string[] {
    const keep = new Set(wanted.flatMap(({ name, chains }) => chains.map((chain) => key(name, chain.name))));
    return [...found.keys()].filter(
      (name) => isMode(name.slice(name.indexOf(" ") + 1)) && !isHook(name) && !keep.has(name),
    );
  }
}
