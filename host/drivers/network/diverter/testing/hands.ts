import assert from "node:assert/strict";
import type { InterfaceCounters } from "../../driver.ts";
import { tapName } from "../devices.ts";
import { gatewayMac } from "../diverter.ts";
import { ethernet, ip, readFrame, udp } from "./frames.ts";
import { type GuestPlan, type Installation, macOf, uidOf } from "./installation.ts";
import type { Agent } from "./namespaces.ts";

/** Port that the tests' rules open for marks, and for nothing else. */
export const markPort = 4999;
let marks = 0;

/** A guest as an attacker has it: the open end of its tap, with frames made by hand. */
export class Hand {
  readonly plan: GuestPlan;
  readonly #installation: Installation;
  readonly #agent: Agent;

  private constructor(installation: Installation, plan: GuestPlan, agent: Agent) {
    this.#installation = installation;
    this.plan = plan;
    this.#agent = agent;
  }
  static async open(installation: Installation, plan: GuestPlan): Promise<Hand> {
    const agent = installation.agent(installation.hostMachines[plan.host], "guest-process.ts");
    await agent.call("openTap", tapName(uidOf(plan)));
    return new Hand(installation, plan, agent);
  }
  get address(): string {
    return this.plan.address;
  }
  get mac(): string {
    return macOf(this.plan);
  }
  /** A frame of IPv4 as this guest would honestly send it. */
  packet(to: string | Hand, protocol: number, payload: Buffer, fragment = 0, id = 0x1234): string {
    const destination = typeof to === "string" ? to : to.address;
    return this.frame(0x0800, ip(this.address, destination, protocol, payload, fragment, id));
  }
  frame(type: number, payload: string, to: string = gatewayMac): string {
    return ethernet(to, this.mac, type, payload);
  }
  async send(...frames: readonly string[]): Promise<void> {
    await this.#agent.call("sendFrames", frames);
  }
  /** One frame with a virtio header of its own (10 bytes, hexadecimal). */
  async sendWith(header: string, frame: string): Promise<void> {
    await this.#agent.call("sendFrame", frame, header);
  }
  next(timeoutMs: number): Promise<string | null> {
    return this.#agent.call("nextFrame", timeoutMs);
  }
  async counters(): Promise<InterfaceCounters> {
    const driver = this.#installation.drivers[this.plan.host];
    const all = await driver.call<{ interfaces: readonly InterfaceCounters[] }>("counters");
    return all.interfaces.find((counter) => counter.interface === uidOf(this.plan))!;
  }

  /** Entries of one of the interface's tables of flows, and how many it may have. */
  flows(table: "flows" | "openings" = "flows"): { readonly entries: number; readonly limit: number } {
    const { host } = this.plan;
    const machine = this.#installation.hostMachines[host];
    const maps = `${this.#installation.directory}/${host}/run/bpf/diverter/maps`;
    const lookUp = (map: string, key: Buffer): Buffer => {
      const found = machine.run(
        "bpftool",
        "-j",
        "map",
        "lookup",
        "pinned",
        `${maps}/${map}`,
        "key",
        ...[...key].map(String),
      );
      return Buffer.from((JSON.parse(found) as { readonly value: readonly string[] }).value.map(Number));
    };
    const device = Buffer.alloc(4);
    const links = machine.run("ip", "-j", "link", "show", "dev", tapName(uidOf(this.plan)));
    const [link] = JSON.parse(links) as readonly { readonly ifindex: number }[];
    device.writeUInt32LE(link!.ifindex);
    const id = String(lookUp(table, lookUp("slots", device)).readUInt32LE());
    const { max_entries: limit } = JSON.parse(machine.run("bpftool", "-j", "map", "show", "id", id)) as {
      readonly max_entries: number;
    };
    const entries = machine.run("sh", "-c", `bpftool -j map dump id ${id} | tr '{' '\\n' | grep -c '"key"' || true`);
    return { entries: Number(entries), limit };
  }

  /**
   * What `victim` got of all that was sent since the last call. A mark that a rule admits is sent behind it, and what came
   * before the mark is returned: frames of one sender do not overtake each other, so nothing has to be waited for in vain,
   * and a path that passes nothing at all is noticed. Fails if the mark does not arrive.
   */
  async arrivedAt(victim: Hand): Promise<readonly string[]> {
    const mark = `mark ${++marks}`;
    await this.send(this.packet(victim, 17, udp(markPort, markPort, Buffer.from(mark))));
    const before: string[] = [];
    for (;;) {
      const frame = await victim.next(10_000);
      assert.notEqual(frame, null, `an honest packet from ${this.plan.name} to ${victim.plan.name} arrives`);
      const isIp = frame!.slice(24, 28) === "0800";
      if (isIp && readFrame(frame!).payload.subarray(8).toString() === mark) return before;
      before.push(frame!);
    }
  }
  /** The frame passes: `victim` gets it once, from the gateway's MAC, otherwise as it was sent. */
  async passes(victim: Hand, frame: string, what: string): Promise<void> {
    await this.send(frame);
    const arrived = await this.arrivedAt(victim);
    assert.deepEqual(
      arrived,
      [ethernet(victim.mac, gatewayMac, Number.parseInt(frame.slice(24, 28), 16), frame.slice(28))],
      what,
    );
  }
  /** The frame does not pass, and this interface's counter says why. */
  async refused(victim: Hand, reason: string, frame: string, what = reason): Promise<void> {
    const before = await this.counters();
    await this.send(frame);
    assert.deepEqual(await this.arrivedAt(victim), [], what);
    const after = await this.counters();
    assert.equal((after.drops[reason] ?? 0) - (before.drops[reason] ?? 0), 1, `${what}: counted as ${reason}`);
    assert.equal(after.sent.packets - before.sent.packets, 1, `${what}: the mark alone was sent`);
  }
}
