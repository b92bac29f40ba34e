import { createReadStream } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { localDefaults } from "../../host/drivers/network/eucalyptus/plan/plan.ts";
import { planFiles } from "../../host/drivers/network/eucalyptus/plan/print.ts";
import { planFor } from "../../host/drivers/network/eucalyptus/planners.ts";
import { parseIpv4 } from "../../model/addresses/addresses.ts";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { type ReadView, readView, type ViewFault } from "../../model/eucalyptus/view/read-view.ts";
import { xmlLimits } from "../../model/eucalyptus/xml/read-xml.ts";
import { type Context, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";

/** `cells network view`: what one machine makes of a global network view (GNI), without a gateway and without touching anything. */
export interface ViewOptions {
  readonly self: string;
  readonly peer: "node" | "network";
  readonly metadataPrivate: boolean;
  readonly bridgeMac?: string;
  readonly out?: string;
}

/** A view that is refused as a whole, as by the original's daemon. */
export const refusedView = 3;
/** Of all files that a plan can have; those of an earlier plan do not stay. */
const allFiles = [
  "iptables-restore.txt",
  "ipset-restore.0.txt",
  "ipset-restore.1.txt",
  "ipsets.txt",
  "ebtables-rules.txt",
  "euca-dhcp.conf",
  "segments.txt",
];

/** No more of a file than a view can have. */
async function textOf(file: string): Promise<string> {
  const most = 4 * xmlLimits.length;
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of createReadStream(file, { end: most })) chunks.push(chunk as Buffer);
  } catch (error) {
    throw new CommandFailure(exitCodes.refused, `${printable(file)} cannot be read (${(error as Error).message})`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new CommandFailure(refusedView, `${printable(file)}: the text is not UTF-8; the view is refused as a whole`);
  }
}

const shown = (file: string, { line, message }: ViewFault): string => printable(`${file}:${line}: ${message}`);

async function viewOf(context: Context, file: string): Promise<ReadView | null> {
  const read = readView(await textOf(file));
  if (read.ok) return read.value;
  if (context.json) {
    printJson(context, { ok: false, faults: read.error });
    process.exitCode = refusedView;
    return null;
  }
  throw new CommandFailure(
    refusedView,
    [...read.error.map((fault) => shown(file, fault)), "the view is refused as a whole"].join("\n"),
  );
}

const checked = ({ self, bridgeMac }: ViewOptions): void => {
  if (parseIpv4(self) === null && !/^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/.test(self))
    throw usage(`--self is this machine as the view names it, an address: not ${JSON.stringify(self)}`);
  if (bridgeMac !== undefined && !/^[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}$/.test(bridgeMac))
    throw usage(`--bridge-mac is a MAC address: not ${JSON.stringify(bridgeMac)}`);
};
const planOf = ({ view }: ReadView, { self, peer, metadataPrivate, bridgeMac }: ViewOptions) =>
  planFor(
    view,
    { address: self, peer },
    { ...localDefaults, metadataPrivate, ...(bridgeMac === undefined ? {} : { bridgeMac: bridgeMac.toUpperCase() }) },
  );

/** `cells network view check FILE`: whether a view is accepted, and what of it would be left out on that machine. */
export const checkView = async (context: Context, file: string, options: ViewOptions): Promise<void> => {
  checked(options);
  const read = await viewOf(context, file);
  if (read === null) return;
  const { mode, clusters, instances, securityGroups } = read.view;
  const warnings = [...read.warnings, ...planOf(read, options).warnings];
  const counts = { clusters: clusters.length, instances: instances.length, securityGroups: securityGroups.length };
  if (context.json) return printJson(context, { ok: true, mode, ...counts, warnings });
  for (const warning of warnings) context.terminal.warn(printable(`${file}: ${warning}`));
  context.terminal.print(
    printable(
      `${file}: mode ${mode}, clusters ${counts.clusters}, instances ${counts.instances}, security groups ${counts.securityGroups}: accepted`,
    ),
  );
};

/** `cells network view plan FILE`: the plan, file by file on standard output, or into a directory. */
export const planView = async (context: Context, file: string, options: ViewOptions): Promise<void> => {
  checked(options);
  const read = await viewOf(context, file);
  if (read === null) return;
  const plan = planOf(read, options);
  const files = planFiles(plan);
  const warnings = [...read.warnings, ...plan.warnings];
  const { out } = options;
  if (out !== undefined) {
    await mkdir(out, { recursive: true });
    for (const name of allFiles) await rm(join(out, name), { force: true });
    for (const [name, text] of files) await writeFile(join(out, name), text);
  }
  if (context.json) return printJson(context, { ok: true, plan, warnings });
  for (const warning of warnings) context.terminal.warn(printable(`${file}: ${warning}`));
  if (out !== undefined) return context.terminal.print(files.map(([name]) => printable(join(out, name))).join("\n"));
  if (files.length === 0) return context.terminal.print("nothing to do on this machine");
  context.terminal.print(files.map(([name, text]) => `# ${name}\n${text.trimEnd()}`).join("\n\n"));
};
