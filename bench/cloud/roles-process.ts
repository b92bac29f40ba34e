import type { ServiceRole } from "../../core/documents/service-roles.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation } from "../../runtime/installation.testing.ts";
import { runRole } from "../../runtime/roles.ts";
import { transportLimits } from "../../runtime/transport/connections/connection.ts";
import { createLinks, shareLinks } from "../../runtime/transport/links/links.ts";

/*
 * One process that begins one role after another, of `roles.ts`: its resident memory after each, with garbage collected.
 */
export interface RolesReport {
  readonly role: string;
  readonly residentMiB: number;
}

export const rolesInTurn: readonly ServiceRole[] = [
  ...(["placer", "storage-manager", "address-manager", "directory"] as const),
  ...(["cell-manager", "tenancy", "ha-manager", "presence"] as const),
];

const settleMs = 1500;
const residentMiB = async (): Promise<number> => {
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  for (let times = 0; times < 3; times += 1) (globalThis as { readonly gc?: () => void }).gc?.();
  return process.memoryUsage().rss / 1_048_576;
};

/** `told` is called while the roles have their files still: without them one may fail, and the process with it. */
async function run(told: (report: readonly RolesReport[]) => void): Promise<void> {
  const installation = await createTestInstallation("roles");
  const links = createLinks(transportLimits);
  const report: RolesReport[] = [];
  try {
    for (const role of rolesInTurn) {
      const name = peerName(role === "presence" ? "presence.1" : role);
      const { configuration } = await installation.configure(name, { change: { role } });
      await shareLinks(links, () => runRole(configuration));
      report.push({ role, residentMiB: await residentMiB() });
    }
    told(report);
  } finally {
    await installation.remove();
  }
}

if (import.meta.main) {
  await run((report) => process.stdout.write(`${JSON.stringify(report)}\n`));
  process.exit(0);
}
