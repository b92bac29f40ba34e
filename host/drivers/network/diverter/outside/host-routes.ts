import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Ipv4 } from "../../../../../model/cell/identifiers.ts";

/**
 * Host routes of the external addresses that are here, in a kernel table from which a routing daemon of the operator's
 * (bird2) announces them, where no segment joins hosts and routers. Nothing is routed by them: they are of the
 * kind `blackhole`, which needs no device and so outlasts one that goes down, and no rule of the kernel looks into the table.
 *
 * They are known as this driver's by their protocol number, in whatever table: what an earlier configuration wrote is found
 * and taken back, and so is what an earlier process left.
 */
export const routeProtocol = 67;

interface FoundRoute {
  readonly address: string;
  readonly table: number;
}
const ip = (args: readonly string[], input?: string): string => {
  try {
    return execFileSync("ip", [...args], { encoding: "utf8", stdio: ["pipe", "pipe", "pipe"], input: input ?? "" });
  } catch (error) {
    const { stderr = "" } = error as { readonly stderr?: string };
    throw new Error(`host routes of external addresses could not be written: ${stderr.trim() || String(error)}`);
  }
};
function routes(): readonly FoundRoute[] {
  const text = ip(["-N", "-j", "-4", "route", "show", "table", "all", "proto", String(routeProtocol)]);
  const found = JSON.parse(text.trim() || "[]") as readonly { readonly dst?: string; readonly table?: string }[];
  // Without a table it is the main one.
  return found.flatMap(({ dst, table = "254" }) => (dst === undefined ? [] : [{ address: dst, table: Number(table) }]));
}

/** In numbers a route of the kind `blackhole` is 6. */
const taken = new RegExp(`^Deleted (?:6|blackhole) (\\S+) .*\\bproto ${routeProtocol}\\b`);
/**
 * Calls back with each address whose route was taken out, by whomever: a network manager may remove what it did not write. The
 * kernel says it. @returns what ends that
 */
export function watchHostRoutes(onTaken: (address: string) => void): () => void {
  const monitor = spawn("ip", ["-N", "-o", "-4", "monitor", "route"], { stdio: ["ignore", "pipe", "ignore"] });
  monitor.on("error", () => undefined);
  createInterface({ input: monitor.stdout }).on("line", (line) => {
    const address = taken.exec(line)?.[1];
    if (address !== undefined) onTaken(address);
  });
  return () => monitor.kill();
}

/** Addresses with a route in that table now. */
export const inKernel = (table: number): ReadonlySet<string> =>
  new Set(routes().flatMap((route) => (route.table === table ? [route.address] : [])));

/**
 * @param table null: none is announced
 * @returns those of the wanted that had a route before
 */
export function putHostRoutes(table: number | null, wanted: ReadonlySet<Ipv4>): ReadonlySet<string> {
  const found = routes();
  const isWanted = (route: FoundRoute): boolean => route.table === table && wanted.has(route.address as Ipv4);
  const known = new Set(found.filter(isWanted).map(({ address }) => address));
  const line = (verb: string, { address, table: at }: FoundRoute): string =>
    `route ${verb} blackhole ${address}/32 table ${at} proto ${routeProtocol}\n`;
  const changes = [
    ...found.filter((route) => !isWanted(route)).map((route) => line("del", route)),
    ...(table === null ? [] : [...wanted].filter((address) => !known.has(address))).map((address) =>
      line("replace", { address, table: table ?? 0 }),
    ),
  ];
  if (changes.length > 0) ip(["-batch", "-"], changes.join(""));
  return known;
}
