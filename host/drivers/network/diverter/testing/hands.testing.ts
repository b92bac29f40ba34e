import assert from "node:assert/strict";
import { ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { InterfaceCounters } from "../../driver.ts";
import { gatewayMac } from "../diverter.ts";
import { flowKey } from "../program/layout.ts";
import { tapName } from "../taps/devices.ts";
import { ethernet, ip, readFrame, udp } from "./frames.testing.ts";
import { type GuestPlan, type Installation, macOf, uidOf } from "./installation.testing.ts";
import type { Agent } from "./namespaces.testing.ts";

/** Port that the tests' rules open for marks, and for nothing else. */
export const markPort = 4999;
let marks = 0;
const isMark = (frame: string, mark: string): boolean =>
  frame.slice(24, 28) === "0800" && readFrame(frame).payload.subarray(8).toString() === mark;

/** Of a flow as one of its ends sees it. */
interface Ports {
  readonly local: number;
  readonly remote: number;
}
const bytesOf = (bytes: Buffer): readonly string[] => [...bytes].map(String);

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
    const agent = installation.agent(installation.hostMachines[plan.host], "guest-process.testing.ts");
    await agent.call("openTap", tapName(uidOf(plan)));
    await installation.hostMachines[plan.host].untilUp(tapName(uidOf(plan)));
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
  /** What has come so far. */
  async forget(): Promise<void> {
    await this.#agent.call("frames");
  }
  async close(): Promise<void> {
    this.#installation.agents.delete(this.#agent);
    await this.#agent.stop();
  }
  async counters(): Promise<InterfaceCounters> {
    const driver = this.#installation.drivers[this.plan.host];
    const all = await driver.call<{ interfaces: readonly InterfaceCounters[] }>("counters");
    return all.interfaces.find((counter) => counter.interface === uidOf(this.plan))!;
  }

  /** Entries of one of the interface's tables of flows, how many it may have, and its memory in the kernel. */
  flows(table: "flows" | "openings" = "flows"): {
    readonly entries: number;
    readonly limit: number;
    readonly bytes: number;
  } {
    const machine = this.#installation.hostMachines[this.plan.host];
    const id = this.#tableOf(table);
    const shown = JSON.parse(machine.run("bpftool", "-j", "map", "show", "id", id)) as {
      readonly max_entries: number;
      readonly bytes_memlock: number;
    };
    const entries = machine.run("sh", "-c", `bpftool -j map dump id ${id} | tr '{' '\\n' | grep -c '"key"' || true`);
    return { entries: Number(entries), limit: shown.max_entries, bytes: shown.bytes_memlock };
  }
  /** Puts a pinned table in the place of one of the interface's. */
  replaceTable(table: "flows" | "openings", pin: string): void {
    const { host } = this.plan;
    const maps = `${this.#installation.directory}/${host}/run/bpf/diverter/maps`;
    const value = ["value", "pinned", pin];
    this.#installation.hostMachines[host].run(
      "bpftool",
      "map",
      "update",
      "pinned",
      `${maps}/${table}`,
      "key",
      ...bytesOf(this.#slot()),
      ...value,
    );
  }
  /**
   * Puts what is in the table for one UDP flow with another guest under the key of another one, as when an element is taken
   * for a new flow while somebody still holds a pointer to it.
   */
  mistakeFlow(remote: Hand, from: Ports, to: Ports): void {
    const machine = this.#installation.hostMachines[this.plan.host];
    const id = this.#tableOf("openings");
    const keyOf = ({ local, remote: remotePort }: Ports): readonly string[] => {
      const ports = { local_port: local, remote_port: remotePort };
      return bytesOf(flowKey.encode({ ...ports, remote: ipv4(remote.address), protocol: 17 }));
    };
    const value = bytesOf(this.#lookUp(["id", id], keyOf(from)));
    machine.run("bpftool", "map", "update", "id", id, "key", ...keyOf(to), "value", ...value);
  }
  #lookUp(map: readonly string[], key: readonly string[]): Buffer {
    const machine = this.#installation.hostMachines[this.plan.host];
    const found = machine.run("bpftool", "-j", "map", "lookup", ...map, "key", ...key);
    return Buffer.from((JSON.parse(found) as { readonly value: readonly string[] }).value.map(Number));
  }
  /** The number that the kernel knows it by. */
  #tableOf(table: "flows" | "openings"): string {
    const maps = `${this.#installation.directory}/${this.plan.host}/run/bpf/diverter/maps`;
    return String(this.#lookUp(["pinned", `${maps}/${table}`], bytesOf(this.#slot())).readUInt32LE());
  }
  /** Of the interface, as the keys of maps have it. */
  #slot(): Buffer {
    const { host } = this.plan;
    const links = this.#installation.hostMachines[host].run(
      "ip",
      "-j",
      "link",
      "show",
      "dev",
      tapName(uidOf(this.plan)),
    );
    const [link] = JSON.parse(links) as readonly { readonly ifindex: number }[];
    const device = Buffer.alloc(4);
    device.writeUInt32LE(link!.ifindex);
    return this.#lookUp(
      ["pinned", `${this.#installation.directory}/${host}/run/bpf/diverter/maps/slots`],
      bytesOf(device),
    );
  }

  async #mark(victim: Hand): Promise<string> {
    const mark = `mark ${++marks}`;
    await this.send(this.packet(victim, 17, udp(markPort, markPort, Buffer.from(mark))));
    return mark;
  }
  /**
   * What `victim` got of all that was sent since the last call. A mark that a rule admits is sent behind it, and what came
   * before the mark is returned: frames of one sender do not overtake each other, so nothing has to be waited for in vain,
   * and a path that passes nothing at all is noticed. Fails if the mark does not arrive.
   */
  async arrivedAt(victim: Hand): Promise<readonly string[]> {
    const mark = await this.#mark(victim);
    const before: string[] = [];
    for (;;) {
      const frame = await victim.next(10_000);
      assert.notEqual(frame, null, `an honest packet from ${this.plan.name} to ${victim.plan.name} arrives`);
      if (isMark(frame!, mark)) return before;
      before.push(frame!);
    }
  }
  /** All that was sent to `victim` has come to it or was lost. After a flood its queue is full at times, and marks are lost too. */
  async isOverAt(victim: Hand): Promise<void> {
    for (;;) {
      while ((await victim.next(20)) !== null);
      const mark = await this.#mark(victim);
      for (let frame = await victim.next(500); frame !== null; frame = await victim.next(500))
        if (isMark(frame, mark)) return;
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
