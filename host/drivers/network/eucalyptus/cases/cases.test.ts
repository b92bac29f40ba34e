import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { AddressRange } from "../../../../../model/eucalyptus/addresses/ranges.ts";
import type { NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { writeView } from "../../../../../model/eucalyptus/view/write-view.ts";
import { casesFrom, onlyKnown } from "../../../../../model/testing/case-folders.testing.ts";
import { type LocalPlan, localDefaults } from "../plan/plan.ts";
import { planFiles } from "../plan/print.ts";
import { planFor } from "../planners.ts";

/**
 * What the original's network daemon made of a view, beside ours: a folder for each case here; with CELLS_CASES another folder's
 * `eucanetd/cases/`. Compared as its recording says: counters as sets, everything else in order, chains and sets of groups by the group's
 * id, the old spelling of a match as the new one.
 */
const ours = new URL("./", import.meta.url);
const folder = casesFrom(ours, "eucanetd/cases");
const base = fileURLToPath(folder);

interface Case {
  readonly mode: string;
  readonly peer: "NC" | "CC";
  readonly self_ip: string;
  readonly vm_gateway_ip: string;
  readonly pub_interface: string;
  readonly options: { readonly META_PRIV?: string };
  /** What was read, in one line of counts. */
  readonly populate?: readonly string[];
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
    .replace(/(^| )(-[sd]) (\d+\.\d+\.\d+\.\d+)(?= |$)/g, "$1$2 $3/32")
    // Ports from 0 on are these ports with us, and were all of them there (decision 160).
    .replace(/ --dport 0:\d+/, "");
  const [head = "", ...parts] = spelled.split(/ (?=(?:! )?-[sd] |-p |-m |-j |-i |-o |--)/);
  // Source and destination stand in any order.
  const isEnd = (part: string): boolean => /^(?:! )?-[sd] /.test(part);
  return [head, ...parts.filter(isEnd).sort(), ...parts.filter((part) => !isEnd(part))].join(" ");
}

/** What the original made for want of an address, and of a rule that names nobody: left out with us (decision 160). */
const isLeftOut = (rule: string): boolean =>
  /(?:--to-destination|--to-source) 0\.0\.0\.0(?= |$)|-[sd] 0\.0\.0\.0(?:\/32)?(?= |$)/.test(rule) ||
  (/^(?:\[\d+:\d+\] )?-A sg-/.test(rule) && !/ -s | src /.test(rule));

interface Rules {
  readonly policies: Readonly<Record<string, string>>;
  readonly chains: Readonly<Record<string, readonly string[]>>;
}
const recordedRules = (text: string): Rules =>
  rulesOf(
    text
      .split("\n")
      .filter((line) => !isLeftOut(line))
      .join("\n"),
  );
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

/** Facts of a DHCP configuration, whatever the server: each subnet once, and hosts that have both a MAC and an address. */
const dhcpOf = (text: string): unknown => {
  const of = (block: string, option: string): string | undefined =>
    new RegExp(`option ${option} ([^;]*);`).exec(block)?.[1]?.replaceAll(/["\s]/g, "");
  return {
    subnets: new Map(
      [...text.matchAll(/subnet (\S+) netmask (\S+) \{([^}]*)\}/g)].map(([, subnet, netmask, block = ""]) => [
        `${subnet}/${netmask}`,
        ["subnet-mask", "broadcast-address", "domain-name", "domain-name-servers", "routers"].map((option) =>
          of(block, option),
        ),
      ]),
    ),
    hosts: [...text.matchAll(/host \S+ \{\s*hardware ethernet (\S+);\s*fixed-address (\S+);/g)]
      .map(([, mac = "", ip = ""]) => [mac.toUpperCase(), ip])
      .filter(([mac, ip]) => mac !== "00:00:00:00:00:00" && ip !== "0.0.0.0"),
  };
};

/** Addresses that the public interface is given and those that are taken from it, as commands say them. */
const commandsOf = (text: string): unknown => {
  const of = (verb: string): readonly string[] =>
    [...text.matchAll(new RegExp(`^ip addr ${verb} (\\S+)/32 dev`, "gm"))].map(([, ip = ""]) => ip).sort();
  return { added: of("add"), taken: of("del") };
};
function publicOf(view: NetworkView, { addresses, managed }: LocalPlan, said: Case): unknown {
  const isPublic = ({ device }: { readonly device: string }): boolean => device === said.pub_interface;
  const added = addresses.filter((each) => isPublic(each) && each.announced).map(({ address }) => formatIpv4(address));
  const node = view.clusters.flatMap(({ nodes }) => nodes).find(({ name }) => name === said.self_ip);
  // Whoever has one and no private address is given none; there it was not taken away either.
  const kept = view.instances.flatMap(({ id, publicIp }) =>
    publicIp !== undefined && node?.instances.includes(id) === true ? [formatIpv4(publicIp)] : [],
  );
  const all = managed.filter(isPublic).flatMap(({ ranges }) => ranges.flatMap(addressesOf));
  return { added: added.sort(), taken: all.filter((ip) => !added.includes(ip) && !kept.includes(ip)).sort() };
}
const addressesOf = ({ first, last }: AddressRange): readonly string[] =>
  Array.from({ length: last - first + 1 }, (_, index) => formatIpv4(first + index));

const populated = ({ instances, securityGroups, clusters, publicIps, mode }: NetworkView): string =>
  `populate rc=0 instances=${instances.length} sg=${securityGroups.length} clusters=${clusters.length} pubips=${publicIps.flatMap(addressesOf).length} mode=${mode}`;

const names = readdirSync(base, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
assert.ok(names.length >= (folder === ours ? 15 : 1), `there are cases in ${base}`);
for (const name of names)
  test(`a view of the original: ${name}`, () => {
    const file = (file: string): string => join(base, name, file);
    const text = (of: string): string => readFileSync(file(of), "utf8");
    const said = JSON.parse(text("case.json")) as Case;
    onlyKnown("options", said.options, ["META_PRIV"]);
    assert.ok(["NC", "CC"].includes(said.peer), `the runner knows nothing of a machine that is ${said.peer}`);
    const read = readView(text("gni.xml"));
    assert.equal(read.ok ? 0 : 3, said.exit, read.ok ? "it is accepted" : JSON.stringify(read.error));
    if (!read.ok) return assert.ok(read.error.every(({ message }) => message.length > 10));
    const { view, warnings } = read.value;
    for (const line of said.populate ?? []) assert.equal(populated(view), line);
    const written = readView(writeView(view));
    assert.ok(written.ok);
    assert.deepEqual(written.value.view, view);
    assert.equal(view.mode, said.mode);
    const local = {
      ...localDefaults,
      publicInterface: said.pub_interface,
      metadataPrivate: said.options.META_PRIV !== undefined,
    };
    // A machine may have been told another gateway than its cluster's.
    const told = parseIpv4(said.vm_gateway_ip) ?? 0;
    const there: NetworkView = {
      ...view,
      clusters: view.clusters.map(({ subnet, ...cluster }) =>
        subnet === undefined
          ? cluster
          : { ...cluster, subnet: { ...subnet, gateway: told === 0 ? subnet.gateway : told } },
      ),
    };
    const plan = planFor(there, { address: said.self_ip, peer: said.peer === "NC" ? "node" : "network" }, local);
    const files = new Map(planFiles(plan));
    const compare = (of: string, facts: (text: string) => unknown, recorded = facts): void => {
      if (existsSync(file(of)))
        assert.deepEqual(facts(files.get(of) ?? ""), recorded(translated(text(of), said.chainnames)), of);
    };
    compare("iptables-restore.txt", rulesOf, recordedRules);
    compare("ipset-restore.0.txt", restoredSets);
    compare("ipset-restore.1.txt", restoredSets);
    compare("ipsets.txt", setsOf);
    compare("ebtables-rules.txt", (rules) => rules.trim().split("\n"));
    compare("euca-dhcp.conf", dhcpOf);
    compare("segments.txt", (segments) => segments.trim().split("\n"));
    if (existsSync(file("commands.txt")) && text("commands.txt").trim() !== "")
      assert.deepEqual(publicOf(view, plan, said), commandsOf(text("commands.txt")), "commands.txt");
    for (const warning of said.warnings) {
      const [, group, instance] = /referenced security group (\S+?)\.|\binstance (\S+?):/.exec(warning) ?? [];
      const about = group ?? instance;
      if (about === undefined) continue;
      assert.ok(
        [...warnings, ...plan.warnings].some((ours) => ours.includes(about)),
        warning,
      );
    }
  });
