import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { Agent, Machine } from "../../diverter/testing/namespaces.testing.ts";
import { NetworkService } from "../../service/network-service.ts";
import { createPlanDriver, type LocalNetwork } from "../driver.ts";
import { type Run, runner } from "../handlers/run.ts";
import type { HeardTap, Learner } from "../learn/learn.ts";
import { type LocalConfiguration, type LocalPlan, localDefaults } from "../plan/plan.ts";
import { planFor } from "../planners.ts";
import type { FoundTag, Tags } from "../tags/tags.ts";

/** Machines that are network namespaces, on which the real tools run and between which real packets go. All ends with the test. */
export class World {
  readonly directory = mkdtempSync(join(tmpdir(), "cells-euca-"));
  readonly #machines: Machine[] = [];
  readonly #children: ChildProcess[] = [];
  readonly #agents: Agent[] = [];
  /** Of services, which need them to leave. */
  readonly #programs: Agent[] = [];
  readonly #services: NetworkService<LocalPlan, LocalNetwork, unknown>[] = [];

  constructor() {
    chmodSync(this.directory, 0o755);
    writeFileSync(this.#leaseScript, leaseScript, { mode: 0o755 });
  }
  get #leaseScript(): string {
    return join(this.directory, "lease.sh");
  }
  async machine(): Promise<Machine> {
    const machine = await Machine.start();
    this.#machines.push(machine);
    return machine;
  }
  /** Of a machine: where the programs of its network run. */
  run(machine: Machine): Run {
    return runner(["nsenter", "-t", String(machine.pid), "-n", "-m", "--"]);
  }
  /** A process inside that ends with the world. Nobody reads what it says: what it has forked for a connection would have that open still, and be waited for. */
  spawn(machine: Machine, ...command: readonly string[]): ChildProcess {
    const [program, args] = machine.inside(command);
    const child = spawn(program, [...args], { stdio: "ignore" });
    this.#children.push(child);
    return child;
  }
  /** What comes and goes at a device, as `tcpdump` says it, from when this is done. */
  async watch(machine: Machine, device: string, ...filter: readonly string[]): Promise<Watched> {
    const [program, args] = machine.inside(["tcpdump", "-l", "-n", "-e", "--immediate-mode", "-i", device, ...filter]);
    const child = spawn(program, [...args], { stdio: ["ignore", "pipe", "pipe"] });
    this.#children.push(child);
    const watched = { text: "" };
    child.stdout.on("data", (chunk: Buffer) => {
      watched.text += chunk.toString();
    });
    await new Promise<void>((resolve) => {
      child.stderr.on("data", (chunk: Buffer) => {
        if (chunk.toString().includes("listening")) resolve();
      });
      child.once("close", () => resolve());
    });
    return watched;
  }
  agent(machine: Machine): Agent {
    const agent = new Agent(machine, "guest-process.testing.ts");
    this.#agents.push(agent);
    return agent;
  }
  /** A network service of one machine, as a process of the host would have it. */
  service(machine: Machine, name: string, run = this.run(machine)): NetworkService<LocalPlan, LocalNetwork, unknown> {
    const driver = createPlanDriver({
      run,
      ...this.programs(machine, name),
      dhcpDirectory: join(this.directory, name, "dhcp"),
    });
    const modes = ["EDGE", "MANAGED", "MANAGED-NOVLAN", "STATIC", "SYSTEM"];
    const service = new NetworkService<LocalPlan, LocalNetwork, unknown>({
      drivers: new Map(modes.map((mode) => [mode, driver])),
      configuration: async () => ({}),
    });
    this.#services.push(service);
    return service;
  }
  /** Of a machine: a process that is there, once it is asked for anything. */
  programs(machine: Machine, name: string): { readonly tags: Tags; readonly learner: Learner } {
    let process: Agent | null = null;
    const ask = <T>(method: string, ...args: readonly unknown[]): Promise<T> => {
      if (process === null) {
        process = new Agent(
          machine,
          "../../eucalyptus/packets/programs-process.testing.ts",
          join("/run", `cells-${name}`),
        );
        this.#programs.push(process);
      }
      return process.call<T>(method, ...args);
    };
    return {
      tags: {
        read: async () => (process === null ? [] : ask<readonly FoundTag[]>("read")),
        apply: (wanted) => ask<void>("apply", wanted),
      },
      learner: {
        read: async () => (process === null ? [] : ask<readonly HeardTap[]>("heard")),
        apply: (wanted) => ask<void>("learn", wanted),
      },
    };
  }
  /** Asks for an address as a guest does, so often; false: nobody gives it one. */
  lease(guest: Machine, tries = 3): boolean {
    const once = ["-f", "-n", "-q", "-t", String(tries), "-T", "1", "-i", "eth0", "-s", this.#leaseScript];
    return guest.succeeds("busybox", "udhcpc", ...once);
  }
  async end(): Promise<void> {
    // While there is a network over which the other ends of their connections hear of it.
    for (const agent of this.#agents) await agent.stop();
    for (const service of this.#services) await service.leave().catch(() => {});
    for (const program of this.#programs) await program.stop();
    for (const child of this.#children) child.kill("SIGKILL");
    for (const machine of this.#machines) await machine.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
export interface Watched {
  readonly text: string;
}
const leaseScript = `#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip address replace "$ip/$mask" dev "$interface"
ip route replace default via "$router"
echo "$ip $mask $router $dns $domain" > "/run/lease-$$"
`;

export const planOf = (
  text: string,
  address: string,
  local: Partial<LocalConfiguration>,
  peer: "node" | "network" = "node",
): LocalPlan => {
  const read = readView(text);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return planFor(read.value.view, { address, peer }, { ...localDefaults, ...local });
};
/** Over and over until it is so; false when it was not within 5 seconds. */
export async function soon(isSo: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + 5000; performance.now() < until; ) {
    if (await isSo()) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}
