import type { Cell, OutwardZone } from "../../cell/cell.ts";
import { type Ipv4, ipv4 } from "../../cell/identifiers.ts";
import { zoneKeyName } from "../../limits.ts";
import type { ReportFault } from "../fault.ts";

/** Only one cell speaks for all names of the installation. */
const rootName = "root";
const mostServers = 8;
const label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
/** RFC 1123, 2.1; one label alone is a top-level domain. */
const hostName = new RegExp(`^(?=.{1,253}$)${label}(\\.${label})+$`);

/** The zone from the cell's attributes; null: there is none. */
export function zoneOf(read: {
  text(attribute: string): string | undefined;
  texts(attribute: string): readonly string[] | undefined;
}): OutwardZone | null {
  const [name, servers] = [read.text("x.zone.name"), read.text("x.zone.servers")];
  const [secondaries, key] = [read.texts("x.zone.secondaries"), read.text("x.zone.key")];
  if ([name, servers, secondaries, key].every((each) => each === undefined)) return null;
  return Object.freeze({
    name: name ?? "",
    servers: Object.freeze((servers ?? "").split(/\s+/).filter((each) => each !== "")),
    secondaries: Object.freeze((secondaries ?? []).map((each): Ipv4 => ipv4(each))),
    ...(key === undefined ? {} : { key }),
  });
}

export function checkZone({ zone, name, path }: Cell, fault: ReportFault): void {
  if (zone === undefined) return;
  const refuse = (attribute: string, message: string, hint: string): void =>
    fault("cell/zone", message, path, { attribute, hint });
  if (name !== rootName) {
    refuse(
      "x.zone.name",
      `\`${name}\` hands names of the installation outside, which is the root cell's alone`,
      "Leave `x.zone` out here, and put it into the root cell's specification.",
    );
    return;
  }
  if (!hostName.test(zone.name))
    refuse(
      "x.zone.name",
      zone.name === "" ? "`x.zone` has no `x.zone.name`" : `\`x.zone.name\` is "${zone.name}", which is no domain`,
      'Write it in small letters with a dot, as in `x.zone.name "cloud.example.org"`.',
    );
  const wrong = zone.servers.find((each) => !hostName.test(each));
  if (zone.servers.length === 0 || zone.servers.length > mostServers || wrong !== undefined)
    refuse(
      "x.zone.servers",
      wrong === undefined
        ? `\`x.zone.servers\` has ${zone.servers.length} names of name servers`
        : `\`x.zone.servers\` has "${wrong}", which is no name of a host`,
      'Name from one to eight, as in `x.zone.servers "ns1.example.org ns2.example.org"`.',
    );
  if (zone.secondaries.length === 0)
    refuse(
      "x.zone.secondaries",
      "`x.zone` has no `x.zone.secondaries`, so nobody would fetch it",
      'Name the addresses of its name servers on the management network, as in `x.zone.secondaries ["10.0.0.9"]`.',
    );
  if (zone.key !== undefined && !zoneKeyName.test(zone.key))
    refuse(
      "x.zone.key",
      `\`x.zone.key\` is "${zone.key}", which is no name of a key`,
      'Write it in small letters as a name of a host, as in `x.zone.key "transfer"`, and give its secret to `cells zone key` alone.',
    );
}
