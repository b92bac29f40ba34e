import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { DhcpPlan } from "../plan/plan.ts";
import type { Run } from "./run.ts";

/*
 * The DHCP server: dnsmasq, which gives each MAC of the plan its address and nobody else anything. It outlives the service. Of hosts and
 * options it reads its files anew at SIGHUP; another subnet or device starts it anew, with the leases that it has.
 */

export interface DhcpFiles {
  readonly config: string;
  readonly hosts: string;
  readonly options: string;
}
/** What is in place: its files, and whether the server runs with them. */
export interface FoundDhcp {
  readonly files: DhcpFiles | null;
  readonly pid: number | null;
}
const leaseSeconds = 86_400;
const asLines = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

/** @param user as whom it runs once it has its sockets */
export function dhcpFiles(plan: DhcpPlan, directory: string, user: string): DhcpFiles | null {
  const subnets = plan.subnets.filter(({ device }) => device !== null);
  if (subnets.length === 0) return null;
  const devices = [...new Set(subnets.map(({ device }) => device))];
  return {
    config: asLines([
      "# Written by the network service; its hosts and options are in files beside it.",
      "port=0",
      "bind-dynamic",
      ...devices.map((device) => `interface=${device}`),
      "except-interface=lo",
      "no-ping",
      "dhcp-authoritative",
      // A site's other machines have their addresses from elsewhere: nobody tells them that these are wrong.
      "dhcp-ignore=tag:!known",
      // A client's identifier is what it says: under another's, its address would be refused to that one when it asks to keep it.
      "dhcp-ignore-clid",
      `user=${user}`,
      `domain=${plan.domain}`,
      ...subnets.map(
        ({ subnet, netmask, broadcast }, index) =>
          `dhcp-range=set:s${index},${formatIpv4(subnet)},static,${formatIpv4(netmask)},${formatIpv4(broadcast)},${leaseSeconds}`,
      ),
      `dhcp-hostsfile=${join(directory, "hosts")}`,
      `dhcp-optsfile=${join(directory, "options")}`,
      `dhcp-leasefile=${join(directory, "leases")}`,
    ]),
    hosts: asLines(plan.hosts.map(({ mac, address }) => `${mac.toLowerCase()},${formatIpv4(address)},${leaseSeconds}`)),
    options: asLines([
      ...subnets.map(({ router }, index) => `tag:s${index},option:router,${formatIpv4(router)}`),
      `option:dns-server,${plan.nameServers.map(formatIpv4).join(",")}`,
      `option:domain-name,${plan.domain}`,
    ]),
  };
}

export class DhcpHandler {
  readonly #run: Run;
  readonly #directory: string;

  /** @param directory of its files; made where it is missing */
  constructor(run: Run, directory: string) {
    this.#run = run;
    this.#directory = directory;
  }
  #file(name: string): string {
    return join(this.#directory, name);
  }
  async read(): Promise<FoundDhcp> {
    const [config, hosts, options, pid] = await Promise.all(
      ["config", "hosts", "options", "pid"].map((name) => readFile(this.#file(name), "utf8").catch(() => null)),
    );
    const isWhole = typeof config === "string" && typeof hosts === "string" && typeof options === "string";
    return { files: isWhole ? { config, hosts, options } : null, pid: await this.#alive(Number(pid ?? 0)) };
  }
  /** The number of a process may be another's after the machine has started anew. */
  async #alive(pid: number): Promise<number | null> {
    if (!Number.isSafeInteger(pid) || pid <= 1) return null;
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    return line.includes("dnsmasq") && line.includes(this.#file("config")) ? pid : null;
  }
  isDue(plan: DhcpPlan | null, user: string, found: FoundDhcp): boolean {
    const wanted = plan === null ? null : dhcpFiles(plan, this.#directory, user);
    if (wanted === null) return found.pid !== null;
    return found.pid === null || JSON.stringify(wanted) !== JSON.stringify(found.files);
  }
  async apply(plan: DhcpPlan | null, user: string, found: FoundDhcp): Promise<void> {
    const wanted = plan === null ? null : dhcpFiles(plan, this.#directory, user);
    if (wanted === null) return this.stop(found);
    await mkdir(this.#directory, { recursive: true });
    // It reads them as somebody who is not root.
    await chmod(this.#directory, 0o755);
    // Read when the server is told to, so a half of one does no harm: it is other than wanted, and written again.
    for (const [name, text] of Object.entries(wanted)) await writeFile(this.#file(name), text, { mode: 0o644 });
    if (found.pid !== null && found.files?.config === wanted.config) process.kill(found.pid, "SIGHUP");
    else await this.#start(found);
  }
  async #start(found: FoundDhcp): Promise<void> {
    await this.stop(found);
    await this.#run("dnsmasq", [`--conf-file=${this.#file("config")}`, `--pid-file=${this.#file("pid")}`]);
  }
  /** Its leases stay. */
  async stop({ pid }: FoundDhcp): Promise<void> {
    if (pid === null) return;
    process.kill(pid, "SIGTERM");
    for (let waited = 0; waited < longestEndMs && (await this.#alive(pid)) !== null; waited += 20)
      await new Promise((resolve) => setTimeout(resolve, 20));
    await rm(this.#file("pid"), { force: true });
  }
}
const longestEndMs = 2000;
