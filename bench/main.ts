import { parseArgs } from "node:util";
import type { Bench } from "./bench.ts";
import { cleanUpAtSignals } from "./cloud/interrupted.ts";
import { provenance } from "./measure.ts";
import { renderProvenance, renderTable } from "./table.ts";

/** Every bench by its name, loaded when it is run. */
export const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  clone: async () => (await import("./cloud/clone.ts")).clone,
  rules: async () => (await import("./dataplane/rules.ts")).rules,
  "rule-change": async () => (await import("./dataplane/rule-change.ts")).ruleChange,
  presence: async () => (await import("./simulated/presence.ts")).presence,
  apply: async () => (await import("./cloud/apply.ts")).apply,
  resume: async () => (await import("./cloud/resume.ts")).resume,
  restart: async () => (await import("./cloud/restart.ts")).restart,
  "host-manager": async () => (await import("./simulated/host-manager.ts")).hostManager,
  specification: async () => (await import("./specification/specification.ts")).specification,
  "language-server": async () => (await import("./specification/language-server.ts")).languageServer,
  typescript: async () => (await import("./specification/typescript.ts")).typescript,
  plan: async () => (await import("./specification/plan.ts")).plan,
  distribution: async () => (await import("./simulated/distribution.ts")).distribution,
  subscribers: async () => (await import("./simulated/subscribers.ts")).subscribers,
  "service-image": async () => (await import("./cloud/service-image.ts")).serviceImage,
  "self-hosting": async () => (await import("./cloud/self-hosting.ts")).selfHosting,
  dataplane: async () => (await import("./dataplane/dataplane.ts")).dataplane,
  neighbour: async () => (await import("./dataplane/neighbour.ts")).neighbour,
  known: async () => (await import("./dataplane/known.ts")).known,
  ways: async () => (await import("./dataplane/ways.ts")).ways,
  "fuzz-network": async () => (await import("./dataplane/fuzz-network.ts")).fuzzNetwork,
  "real-machines": async () => (await import("./cloud/real-machines.ts")).realMachines,
  "figure-6": async () => (await import("./figure-6/figure-6.ts")).figure6,
  "cell-size": async () => (await import("./simulated/cell-size.ts")).cellSize,
  roles: async () => (await import("./cloud/roles.ts")).roles,
  links: async () => (await import("./idle/links.ts")).idleLinks,
  sizing: async () => (await import("./simulated/sizing.ts")).sizing,
  "policy-slices": async () => (await import("./simulated/policy-slices.ts")).policySlices,
  documents: async () => (await import("./simulated/documents.ts")).documents,
  ha: async () => (await import("./ha/ha.ts")).ha,
  tenancy: async () => (await import("./tenancy/tenancy.ts")).tenancy,
  personalities: async () => (await import("./personalities/personalities.ts")).personalities,
  placement: async () => (await import("./placement/placement.ts")).placement,
  eucalyptus: async () => (await import("./eucalyptus/eucalyptus.ts")).eucalyptus,
  "eucalyptus-flush": async () => (await import("./eucalyptus/flush.ts")).flush,
  "eucalyptus-view": async () => (await import("./eucalyptus/view.ts")).view,
  "eucalyptus-elastic": async () => (await import("./eucalyptus/elastic.ts")).elasticAddress,
  "eucalyptus-takeover": async () => (await import("./eucalyptus/takeover.ts")).takeover,
  "eucalyptus-packets": async () => (await import("./eucalyptus/packets.ts")).packets,
  web: async () => (await import("./page/web.ts")).web,
  simulator: async () => (await import("./simulated/simulator.ts")).simulator,
};

const usage = `Usage: ./cells bench [NAME…] [--quick | --long] [--into DIR] [--trace FILE]

Measures, and writes Markdown tables to the standard output: goal, figure, whether it holds. Nothing else should run on
the machine meanwhile. --quick: seconds instead of minutes, to see that it works. --long: also what takes an hour or
more (presence: a simulated day) or disturbs what is measured (self-hosting: translations). --into: where drawings go
(figure-6, cell-size, self-hosting). --trace: VMs that arrived somewhere, for placement, in one of four formats: lines of
a period "seconds flavour,flavour,|,…", with NAME-durations, flavours.txt and duration-bins.txt beside it; vmtable.csv of
Azure's data sets of 2017 and 2019, also as .gz; its packing trace of 2020, a database of SQLite.

Names: ${Object.keys(benches).join(", ")}; none: all of them.`;

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

interface Values {
  readonly quick: boolean;
  readonly long: boolean;
  readonly into?: string;
  readonly trace?: string;
}
async function runOne(name: string, { quick, ...values }: Values): Promise<boolean> {
  const load = benches[name];
  if (load === undefined) throw new Error(`there is no bench "${name}"\n\n${usage}`);
  const bench = await load();
  say(`== ${name}`);
  const from = await provenance(quick);
  try {
    const figures = await bench.run({ ...values, quick, say: (line) => say(`   ${line}`) });
    process.stdout.write(
      `### ${bench.title}\n\n${bench.method}\n\n${renderTable(figures)}\n\n${renderProvenance(from, quick)}\n\n`,
    );
    return true;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    process.stdout.write(`### ${bench.title}\n\nNot measured: ${why}\n\n`);
    say(error instanceof Error ? (error.stack ?? why) : why);
    return false;
  }
}

export async function main(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      long: { type: "boolean", default: false },
      into: { type: "string" },
      trace: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${usage}\n`);
    return;
  }
  for (const name of positionals) if (!(name in benches)) throw new Error(`there is no bench "${name}"\n\n${usage}`);
  if (process.getuid?.() !== 0)
    throw new Error("measuring needs root, for namespaces and machines: sudo ./cells bench");
  cleanUpAtSignals();
  let measured = true;
  for (const name of positionals.length > 0 ? positionals : Object.keys(benches))
    measured = (await runOne(name, values)) && measured;
  process.exitCode = measured ? 0 : 1;
}

if (import.meta.main)
  main(process.argv.slice(2)).catch((error: Error) => {
    say(error.message);
    process.exitCode = 2;
  });
