import type { Chain, Rule, Table } from "./plan.ts";

/** Arguments as one text. What is put into it has no spaces: identifiers, addresses, numbers. */
export const words = (text: string): Rule => text.split(" ");

/** Chains of one table in the order in which they are named; a rule that a chain has already is not added again. */
export class TableBuilder {
  readonly #name: string;
  readonly #chains = new Map<string, { policy: Chain["policy"]; readonly rules: Map<string, Rule> }>();

  constructor(name: string, builtIn: readonly string[]) {
    this.#name = name;
    for (const chain of builtIn) this.chain(chain, "ACCEPT");
  }
  chain(name: string, policy: Chain["policy"] = null): void {
    const chain = this.#chains.get(name);
    if (chain === undefined) this.#chains.set(name, { policy, rules: new Map() });
    else chain.policy = policy;
  }
  add(chain: string, rule: string): void {
    const found = this.#chains.get(chain);
    if (found === undefined)
      throw new Error(`a rule for the chain ${chain}, which the table ${this.#name} does not have`);
    if (!found.rules.has(rule)) found.rules.set(rule, words(rule));
  }
  table(): Table {
    const chains = [...this.#chains].map(([name, { policy, rules }]) => ({ name, policy, rules: [...rules.values()] }));
    return { name: this.#name, chains };
  }
}

/** Parts of a rule, of which some may say nothing. */
export const joined = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join(" ");

/** Chains that count what comes to and leaves each network that is `counted`; they are entered from `chain`. */
export function addCounters(filter: TableBuilder, chain: string): void {
  for (const name of ["EUCA_COUNTERS_IN", "EUCA_COUNTERS_OUT"]) {
    filter.chain(name);
    filter.add(chain, `-j ${name}`);
  }
}
/** @param network `a.b.c.d/n` */
export function counted(filter: TableBuilder, network: string): void {
  filter.add("EUCA_COUNTERS_IN", `-d ${network}`);
  filter.add("EUCA_COUNTERS_OUT", `-s ${network}`);
}

export const natTable = (): TableBuilder => new TableBuilder("nat", ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]);
export const filterTable = (): TableBuilder => new TableBuilder("filter", ["INPUT", "FORWARD", "OUTPUT"]);
