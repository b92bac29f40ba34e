import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { writeView } from "../../../../../model/eucalyptus/view/write-view.ts";
import { localDefaults } from "../plan/plan.ts";
import { planFiles } from "../plan/print.ts";
import { planFor } from "../planners.ts";

/**
 * What the original's network daemon made of a view, beside ours: a folder for each case here; with CELLS_CASES another folder's
 * `eucanetd/cases/`. Compared as its recording says: counters as sets, everything else in order, chains and sets of groups by the group's
 * id, the old spelling of a match as the new one.
 */
const other = process.env.CELLS_CASES;
const base = other === undefined ? import.meta.dirname : join(other, "eucanetd", "cases");

interface Case {
  readonly peer: "NC" | "CC";
  readonly self_ip: string;
  readonly pub_interface: string;
  readonly options: { readonly META_PRIV?: string };
  readonly exit: number;
  readonly warnings: readonly string[];
  readonly chainnames: Readonly<Record<string, string>>;
}

/** In every mode a group is its id. */
const translated = (text: string, names: Case["chainnames"]): string =>
  Object.entries(names).reduce((all, [key, name]) => all.replaceAll(name, key.slice(key.indexOf("-") + 1)), text);

/** One spelling of a rule. */
function normal(rule: string): string {
  const spelled = rule
    .trim()
    .replace(/^\[\d+:\d+\] /, "")
    .replaceAll("-m set --set ", "-m set --match-set ")
    .replace(/(^| )(-[sd]) (\d+\.\d+\.\d+\.\d+)(?= |$)/g, "$1$2 $3/32");
  const [head = "", ...parts] = spelled.split(/ (?=(?:! )?-[sd] |-p |-m |-j |-i |-o |--)/);
  // Source and destination stand in any order.
  const isEnd = (part: string): boolean => /^(?:! )?-[sd] /.test(part);
  return [head, ...parts.filter(isEnd).sort(), ...parts.filter((part) => !isEnd(part))].join(" ");
}

interface Rules {
  readonly policies: Readonly<Record<string, string>>;
  readonly chains: Readonly<Record<string, readonly string[]>>;
}
function rulesOf(text: string): Rules {
  const policies: Record<string, string> = {};
  const chains: Record<string, string[]> = {};
  let table = "";
  for (const line of text.split("\n")) {
    const chain = /^:(\S+) (\S+)/.exec(line);
    const rule = /-A (\S+) /.exec(line);
    if (line.startsWith("*")) table = line.slice(1);
    else if (chain !== null) {
      policies[`${table} ${chain[1]}`] = chain[2] ?? "";
      chains[`${table} ${chain[1]}`] ??= [];
    } else if (rule !== null) {
      const key = `${table} ${rule[1]}`;
      chains[key] = [...(chains[key] ?? []), normal(line)];
    }
  }
  for (const [key, rules] of Object.entries(chains)) if (key.includes("EUCA_COUNTERS_")) rules.sort();
  return { policies, chains };
}

const setsOf = (text: string): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    [...text.matchAll(/^set (\S+)[^:]*: ?(.*)$/gm)].map(([, name = "", members = ""]) => [
      name,
      members.split(" ").sort(),
    ]),
  );
function restoredSets(text: string): Readonly<Record<string, readonly string[]>> {
  const sets: Record<string, string[]> = {};
  for (const [, verb, name = "", member = ""] of text.matchAll(/^(create|flush|add) (\S+) ?(\S*)/gm)) {
    if (verb !== "add") sets[name] = [];
    else sets[name]?.push(member);
  }
  for (const members of Object.values(sets)) members.sort();
  return sets;
}

/** Facts of a DHCP configuration, whatever the server. */
const dhcpOf = (text: string): unknown => {
  const of = (block: string, option: string): string | undefined =>
    new RegExp(`option ${option} ([^;]*);`).exec(block)?.[1]?.replaceAll(/["\s]/g, "");
  return {
    subnets: [...text.matchAll(/subnet (\S+) netmask (\S+) \{([^}]*)\}/g)].map(([, subnet, netmask, block = ""]) => ({
      subnet,
      netmask,
      mask: of(block, "subnet-mask"),
      broadcast: of(block, "broadcast-address"),
      domain: of(block, "domain-name"),
      servers: of(block, "domain-name-servers"),
      routers: of(block, "routers"),
    })),
    hosts: [...text.matchAll(/host \S+ \{\s*hardware ethernet (\S+);\s*fixed-address (\S+);/g)].map(([, mac, ip]) => [
      mac,
      ip,
    ]),
  };
};

const names = readdirSync(base, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
assert.ok(names.length >= 15, `cases in ${base}`);
for (const name of names)
  test(`a view of the original: ${name}`, () => {
    const file = (file: string): string => join(base, name, file);
    const text = (of: string): string => readFileSync(file(of), "utf8");
    const said = JSON.parse(text("case.json")) as Case;
    const read = readView(text("gni.xml"));
    assert.equal(read.ok ? 0 : 3, said.exit, read.ok ? "it is accepted" : JSON.stringify(read.error));
    if (!read.ok) return assert.ok(read.error.every(({ message }) => message.length > 10));
    const { view, warnings } = read.value;
    const written = readView(writeView(view));
    assert.ok(written.ok);
    assert.deepEqual(written.value.view, view);
    const local = {
      ...localDefaults,
      publicInterface: said.pub_interface,
      metadataPrivate: said.options.META_PRIV !== undefined,
    };
    const plan = planFor(view, { address: said.self_ip, peer: said.peer === "NC" ? "node" : "network" }, local);
    const files = new Map(planFiles(plan));
    const compare = (of: string, facts: (text: string) => unknown): void => {
      if (existsSync(file(of)))
        assert.deepEqual(facts(files.get(of) ?? ""), facts(translated(text(of), said.chainnames)), of);
    };
    compare("iptables-restore.txt", rulesOf);
    compare("ipset-restore.0.txt", restoredSets);
    compare("ipset-restore.1.txt", restoredSets);
    compare("ipsets.txt", setsOf);
    compare("ebtables-rules.txt", (rules) => rules.trim().split("\n"));
    compare("euca-dhcp.conf", dhcpOf);
    compare("segments.txt", (segments) => segments.trim().split("\n"));
    const left = said.warnings.filter((warning) => warning.includes("Could not find referenced security group"));
    for (const warning of left) {
      const group = /security group (\S+?)\./.exec(warning)?.[1] ?? "nobody";
      assert.ok(
        [...warnings, ...plan.warnings].some((ours) => ours.includes(group)),
        warning,
      );
    }
  });
