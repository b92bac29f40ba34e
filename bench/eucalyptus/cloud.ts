import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ActualInstance } from "../../core/documents/network/eucalyptus.ts";
import { actualInstance } from "../../core/documents/readers/eucalyptus.ts";
import { documentsOf } from "../../core/documents/readers/table.ts";
import type { Service } from "../../core/env.ts";
import { createNetworkViewManager } from "../../core/eucalyptus/manager.ts";
import type { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import { createPlanDriver } from "../../host/drivers/network/eucalyptus/driver.ts";
import { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createObserver } from "../../runtime/observation/observer.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { killed } from "../measure.ts";
import type { HostArguments } from "./host-process.ts";

/*
 * The services that give cells networks by the rules of Eucalyptus, each with its store and mutual TLS: the Network View Manager and a cell's
 * controller here, and hosts as processes, whose networks are namespaces.
 */

const [manager, shop] = [peerName("network-view-manager"), peerName("controller.shop")] as const;
const program = fileURLToPath(new URL("host-process.ts", import.meta.url));

/** What a cell's controller says of its VMs and subnets: what it is asked to, and hears. */
const speaker = (heard: (key: string, value: Json) => void): Service<null> => ({
  restore: () => null,
  step: (state, input) => {
    if (input.kind === "actual") heard(input.key, input.value);
    if (input.kind === "start") return { state, effects: [{ kind: "subscribe", to: manager, prefix: `${shop}/` }] };
    if (input.kind !== "request") return { state, effects: [] };
    const { key, value } = input.request as { readonly key: string; readonly value: Json };
    return {
      state,
      effects: [
        { kind: "desire", to: manager, key, value },
        { kind: "reply", id: input.id, response: null },
      ],
    };
  },
  entitled: () => false,
  accepts: () => false,
  read: documentsOf("controller"),
});

export type HostPlan = Omit<HostArguments, "configuration" | "directory" | "pid" | "cluster">;

export class Cloud {
  readonly #world: World;
  #installation: TestInstallation | null = null;
  readonly #services: RunningService[] = [];
  #controller: RunningService | null = null;
  readonly #heard = new Map<string, Json>();
  readonly #hosts = new Map<
    string,
    { readonly given: HostArguments; readonly machine: Machine; child: ChildProcess }
  >();

  /** What the Network View Manager has logged. */
  readonly events: { readonly event: string; readonly atMs: number }[] = [];

  constructor(world: World) {
    this.#world = world;
  }
  /** @param hosts with the machine of each */
  async start(document: Json, hosts: readonly (readonly [HostPlan, Machine])[]): Promise<void> {
    const installation = await createTestInstallation("bench-network");
    this.#installation = installation;
    const peers = hosts.map(([{ name }]) => peerName(`host.${name}`));
    // All are known before anybody starts.
    const files = new Map<PeerName, string>();
    const configurations = new Map<PeerName, Awaited<ReturnType<TestInstallation["configure"]>>["configuration"]>();
    for (const peer of [manager, shop, ...peers]) {
      const { configuration, file } = await installation.configure(peer);
      files.set(peer, file);
      configurations.set(peer, configuration);
    }
    const run = async <State>(name: PeerName, service: Service<State>): Promise<RunningService> => {
      const configuration = configurations.get(name);
      if (configuration === undefined) throw new Error(`${name} has no configuration`);
      const running = await runService({ configuration, observer: createObserver(name, () => undefined), service });
      this.#services.push(running);
      return running;
    };
    const options = { self: manager, hosts: peers, address: "10.111.0.9", controllers: [shop] };
    const views = await run(manager, createNetworkViewManager(options));
    views.subscribeLog(({ event, wallMs }) => void this.events.push({ event, atMs: wallMs }));
    const { refused } = (await views.request({ kind: "configure", document })) as { readonly refused: Json };
    if (refused !== null) throw new Error(`the configuration is refused: ${JSON.stringify(refused)}`);
    this.#controller = await run(
      shop,
      speaker((key, value) => void this.#heard.set(key, value)),
    );
    for (const [plan, machine] of hosts) {
      const directory = join(this.#world.directory, plan.name);
      const configuration = files.get(peerName(`host.${plan.name}`)) ?? "";
      const given = { ...plan, cluster: "one", configuration, directory, pid: machine.pid };
      this.#hosts.set(plan.name, { given, machine, child: await this.#process(given) });
    }
  }
  async #process(given: HostArguments): Promise<ChildProcess> {
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, JSON.stringify(given)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const [first] = await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
    if (!String(first).startsWith("runs")) throw new Error(`the process of ${given.name} does not start`);
    return child;
  }
  #host(name: string) {
    const host = this.#hosts.get(name);
    if (host === undefined) throw new Error(`there is no host ${name}`);
    return host;
  }
  /** It ends as it stands. */
  async kill(name: string): Promise<void> {
    await killed(this.#host(name).child);
  }
  /** It starts anew. */
  async revive(name: string): Promise<void> {
    const host = this.#host(name);
    host.child = await this.#process(host.given);
  }
  look(name: string): void {
    this.#host(name).child.kill("SIGHUP");
  }
  /** The cell's controller says so, durably. */
  async want(key: string, value: Json): Promise<void> {
    await this.#controller?.request({ key, value });
  }
  /**
   * A namespace in the place of the VM `web` of the host `name`.
   * @param bits of its subnet
   * @param gatewayOf its address
   */
  async guestAt(name: string, guest: Machine, bits: number, gatewayOf: (address: string) => string): Promise<void> {
    const { machine } = this.#host(name);
    const { id, mac, address } = this.instance("web") ?? {};
    const [tap, gateway] = [`vn_${id}`, gatewayOf(address ?? "")];
    machine.run("ip", "link", "delete", "dev", tap);
    machine.cable(tap, guest, "eth0", mac?.toLowerCase());
    guest.run("ip", "address", "add", `${address}/${bits}`, "dev", "eth0");
    guest.run("ip", "route", "add", "default", "via", gateway);
    this.look(name);
    await until("the guest reaches its gateway", () => guest.succeeds("ping", "-c", "1", "-W", "1", gateway));
  }
  /** What the Network View Manager says of a VM. */
  instance(uid: string): ActualInstance | null {
    const [, value = null] = [...this.#heard].find(([key]) => key.endsWith(`instance/${uid}`)) ?? [];
    return value === null ? null : actualInstance.of(value);
  }
  async stop(): Promise<void> {
    for (const name of this.#hosts.keys()) await this.kill(name);
    for (const service of this.#services.reverse()) await service.stop();
    // What they have put in place ends with its namespace, and servers that run there do not.
    for (const { given, machine } of this.#hosts.values())
      await createPlanDriver({ run: this.#world.run(machine), dhcpDirectory: join(given.directory, "dhcp") })
        .cleanup()
        .catch(() => undefined);
    await this.#installation?.remove();
  }
}

/** What is measured in a cloud of its own, of which nothing stays. */
export const inCloud =
  (measure: (world: World, cloud: Cloud, options: BenchOptions) => Promise<readonly Figure[]>): Bench["run"] =>
  async (options) => {
    const world = new World();
    const cloud = new Cloud(world);
    try {
      return await measure(world, cloud, options);
    } finally {
      await cloud.stop();
      await world.end();
    }
  };

/** Over and over until it is so. */
export async function until(what: string, isSo: () => boolean, longestMs = 30_000): Promise<void> {
  for (const end = performance.now() + longestMs; !isSo(); ) {
    if (performance.now() > end) throw new Error(`it never came to it that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
