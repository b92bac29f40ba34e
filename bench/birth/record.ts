import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "../../cli/connection/client.ts";
import { isServiceRole, servicePeer } from "../../core/documents/service-roles.ts";
import { acceptedBefore } from "../../model/check/check-supply.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { checkDocument } from "../../model/specification/specification.ts";
import type { Testbed } from "../../testbed/harness.ts";
import type { Happening } from "./birth.ts";

/** What a birth left behind: the logs of whatever runs on the machines themselves, and the time line of what runs in VMs. */

type Fields = Happening["fields"];
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/** A line of a service's log; null: something else. */
export function happeningIn(line: string): Happening | null {
  try {
    const { time, service, event, fields } = JSON.parse(line) as { [key: string]: unknown };
    const atMs = Date.parse(String(time));
    if (Number.isNaN(atMs) || typeof event !== "string" || !isFields(fields)) return null;
    return {
      atMs,
      service: String(service),
      event,
      path: typeof fields.path === "string" ? fields.path : null,
      fields,
    };
  } catch {
    return null;
  }
}

/** Each once, whoever told it: a host tells its log and the time line. */
export function once(happenings: readonly Happening[]): readonly Happening[] {
  const all = new Map(happenings.map((each) => [`${each.atMs} ${each.service} ${each.event} ${each.path}`, each]));
  return [...all.values()];
}

export async function happeningsOf(
  testbed: Pick<Testbed, "at">,
  client: Pick<Client, "stream">,
): Promise<readonly Happening[]> {
  const told: Happening[] = [];
  for await (const event of client.stream("followServices", { parameters: {}, query: {} })) {
    const { time, fields, ...others } = event;
    told.push({ ...others, atMs: Date.parse(time), fields });
  }
  const logged = readdirSync(testbed.at.logs)
    .filter((name) => name.endsWith(".log"))
    .flatMap((name) => readFileSync(join(testbed.at.logs, name), "utf8").split("\n"))
    .flatMap((line) => happeningIn(line) ?? []);
  return once([...logged, ...told]);
}

/**
 * Which VM has which service, by its peer name: from the document of a cell, as `cells get CELL --output json` gives it. That is
 * what was written, with templates beside the cell and roles that are a reference to another component, so it is read as a
 * controller reads it.
 */
export function vmsOfServices(document: unknown): ReadonlyMap<string, string> {
  const cell = checkDocument(document as JsonObject, acceptedBefore);
  if (!cell.ok) throw new Error(`the cell cannot be read: ${cell.error.map(({ message }) => message).join("; ")}`);
  const found = new Map<string, string>();
  for (const element of cell.value.elements.values()) {
    const data = element.type === "VM" ? element.data : undefined;
    const service = isFields(data) ? data.service : undefined;
    const roles = isFields(service) ? service.roles : undefined;
    for (const [role, options] of Object.entries(isFields(roles) ? roles : {})) {
      if (!isServiceRole(role)) continue;
      const { number, cell: controlled } = isFields(options) ? options : {};
      const which = typeof controlled === "string" ? controlled : typeof number === "number" ? number : undefined;
      found.set(servicePeer(role, which), element.path);
    }
  }
  return found;
}
