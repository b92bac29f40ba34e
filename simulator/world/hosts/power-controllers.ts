import type { PowerAction, PowerReading } from "../../../core/ha/power/controller.ts";
import { type DueEnd, endToSay } from "../../../core/ha/power/ends.ts";
import type { DueOrder } from "../../../core/ha/power/orders.ts";
import type { EndAnswer } from "../../../core/presence/group/end.ts";
import { type HostName, hostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type CarriedOut, carryOut } from "../../../runtime/ha/carry-out.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Life } from "../../kernel/process.ts";
import type { Random } from "../../kernel/random.ts";

/**
 * Management controllers of hosts, and what the HA Manager's edge does with them (`runtime/ha/power.ts`, `host/power/power-hand.ts`):
 * another host is asked, gives the order once and reads. `slow`: its answers take from 4 to 14 s; `deaf`: it says yes and does nothing;
 * `other`: it is another machine's, which is off; `again`: what it cuts is on again at once; `dead`: nothing comes back.
 */
export const controllerModes = ["works", "dead", "slow", "deaf", "other", "again"] as const;
export type ControllerMode = (typeof controllerModes)[number];

const everyMs = 2000;
const answerMs = 50;
const hostPatienceMs = 10_000;
const edgePatienceMs = 12_000;
const lookAgainMs = 500;
const awayMs = 30_000;
const onAgainMs = 1500;

interface Machines {
  readonly kernel: Kernel;
  readonly processes: ReadonlyMap<PeerName, { readonly state: unknown; request(request: Json): Promise<Json> | null }>;
  readonly members: ReadonlyMap<unknown, { request(request: Json): Promise<Json> | null }>;
  powerOff(machine: string, awayMs: number): unknown;
}

const uuidOf = (host: string): string => `00000000-0000-4000-8000-${host.slice(1).padStart(12, "0")}`;
const nothing: PowerReading = { power: null, uuid: null, reason: "the controller does not answer" };

export class PowerControllers {
  readonly modes = new Map<HostName, ControllerMode>();
  readonly #installation: Machines;
  readonly #random: Random;
  constructor(installation: Machines) {
    this.#installation = installation;
    this.#random = installation.kernel.random.fork("power controllers");
  }

  /** Registers the controller of a host, as `cells host power` does, where it has none yet. */
  set(host: HostName, mode: ControllerMode): void {
    const isNew = !this.modes.has(host);
    this.modes.set(host, mode);
    if (isNew) this.#register(host);
  }
  #register(host: HostName): void {
    const { processes, kernel } = this.#installation;
    const controller = { host, kind: "ipmi", address: `bmc-${host}`, user: "u", sealed: "s", uuid: uuidOf(host) };
    const request = { kind: "ha-power-register", host, controller };
    const asked = processes.get(peerName("ha-manager"))?.request(request) ?? null;
    if (asked === null) kernel.clock.after(everyMs, () => this.#register(host));
  }

  /** What the edge of one life of the HA Manager does. */
  follow(life: Life): void {
    const under = new Set<string>();
    const look = async (): Promise<void> => {
      await life.request({ kind: "ha-power-wait" });
      const due = (await life.request({ kind: "ha-power-next", under: [...under] })) as unknown as readonly DueOrder[];
      for (const order of due) {
        under.add(order.host);
        void this.#carryOut(life, order).then(({ said, ...more }) => {
          under.delete(order.host);
          const reading = { ...(said ?? nothing), ...more };
          void life.request({
            kind: "ha-power-read",
            host: order.host,
            nonce: order.nonce,
            ...reading,
          } as unknown as Json);
        });
      }
      const ends = (await life.request({ kind: "ha-ends-next" })) as unknown as readonly DueEnd[];
      for (const end of ends) {
        const name = `end of ${end.host}`;
        if (under.has(name)) continue;
        under.add(name);
        void this.#sayEnd(life, end).finally(() => under.delete(name));
      }
      life.after(everyMs, () => void look());
    };
    void look();
  }

  async #sayEnd(life: Life, due: DueEnd): Promise<void> {
    const { host, boot } = due;
    const ask = async (end: Json): Promise<readonly EndAnswer[]> => {
      const asked = [...this.#installation.members.values()].flatMap(
        (member) => member.request({ kind: "host-end", host, end }) ?? [],
      );
      return (await Promise.all(asked)) as unknown as readonly EndAnswer[];
    };
    let say = endToSay(due, await ask(null));
    if (typeof say === "object" && life.isAlive()) say = endToSay(due, await ask(say));
    if (say === "over" && life.isAlive()) await life.request({ kind: "ha-end-told", host, boot });
  }

  #carryOut(life: Life, order: DueOrder): Promise<CarriedOut> {
    const { host } = order;
    return carryOut(
      order,
      (by, action, over) => {
        const isHandedOver = this.#runs(hostName(by.slice("host.".length)));
        const answer = new Promise<PowerReading | null>((resolve) =>
          this.#ask(life, by, { host, action, over }, resolve),
        );
        return { answer, withdraw: () => !isHandedOver };
      },
      (ms) => new Promise((resolve) => void life.after(ms, () => resolve(undefined))),
    );
  }

  /** Null: that host did not answer. */
  #ask(
    life: Life,
    by: PeerName,
    { host, action, over }: { readonly host: HostName; readonly action: PowerAction; readonly over: AbortSignal },
    done: (reading: PowerReading | null) => void,
  ): void {
    const { kernel } = this.#installation;
    const executor = hostName(by.slice("host.".length));
    if (!this.#runs(executor)) {
      life.after(edgePatienceMs, () => done(null));
      return;
    }
    const untilMs = kernel.clock.nowMs + hostPatienceMs;
    let isOver = false;
    const end = (reading: PowerReading | null): void => {
      if (isOver) return;
      isOver = true;
      // The edge that asked may have ended meanwhile, and the host with its answer.
      if (life.isAlive()) done(this.#runs(executor) ? reading : null);
    };
    kernel.clock.after(hostPatienceMs, () => end(nothing));
    const read = (): void =>
      this.#answer(host, () => {
        const reading = this.#read(host);
        if (action === "read" || reading.power !== "on" || kernel.clock.nowMs >= untilMs) end(reading);
        else kernel.clock.after(lookAgainMs, read);
      });
    if (action === "read") read();
    else
      this.#answer(host, () => {
        // Who asked waits no more, or it has not come so far.
        if (!over.aborted && this.#runs(executor)) this.#cut(host);
        read();
      });
  }
  #runs(executor: HostName): boolean {
    const { kernel, processes } = this.#installation;
    return kernel.network.isUp(executor) && processes.get(peerName(`host.${executor}`))?.state != null;
  }

  #answer(host: HostName, act: () => void): void {
    const mode = this.modes.get(host);
    if (mode === "dead") return;
    this.#installation.kernel.clock.after(mode === "slow" ? this.#random.between(4000, 14_000) : answerMs, act);
  }
  #read(host: HostName): PowerReading {
    const isOn = this.#installation.kernel.network.isUp(host);
    if (this.modes.get(host) === "other") return { power: "off", uuid: uuidOf("h99"), reason: null };
    return { power: isOn ? "on" : "off", uuid: uuidOf(host), reason: null };
  }
  #cut(host: HostName): void {
    const mode = this.modes.get(host) ?? "dead";
    this.#installation.kernel.log(`bmc.${host}`, "asked to cut", { mode });
    if (mode === "deaf" || mode === "other" || mode === "dead") return;
    this.#installation.powerOff(host, mode === "again" ? onAgainMs : awayMs);
  }
}
