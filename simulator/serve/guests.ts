import type { Socket } from "node:net";
import type { HypervisorDriver, MachineEnd } from "../../host/drivers/hypervisor/driver.ts";
import type { ConsoleViewer, MachineConsole } from "../../host/drivers/hypervisor/guest/console.ts";
import type { Incarnation } from "../../host/drivers/hypervisor/guest/kept-consoles.ts";
import type { HostName, Uid } from "../../model/cell/identifiers.ts";
import { sendPacket } from "../world/dataplane.ts";
import type { Installation } from "../world/installation.ts";
import type { MachineTruth } from "../world/truth.ts";

/** What sessions reach at a simulated host: a console that answers each line, and the screens that whoever serves the simulation has. */
export type Guests = Pick<HypervisorDriver, "onEnd" | "console" | "kept" | "display" | "run">;
export type Screens = (path: string) => Socket | null;

export function guestsAt(installation: Installation, host: HostName, screens: Screens): Guests {
  const { truth } = installation;
  const consoles = new Map<string, EchoConsole>();
  const kept: (Incarnation & { readonly said: Buffer })[] = [];
  const listeners: ((end: MachineEnd) => void)[] = [];
  truth.watchers.push({
    machineEnded: ({ vm, incarnation, cell, name, host: at }, how) => {
      if (at !== host) return;
      const key = `${vm} ${incarnation}`;
      const said = (consoles.get(key) ?? new EchoConsole(name, incarnation, () => false)).past;
      kept.push({ cell, vm, incarnation, said });
      if (kept.length > mostKept) kept.shift();
      consoles.delete(key);
      for (const listener of listeners) listener({ vm, incarnation, ended: "crashed", detail: how });
    },
  });
  return {
    onEnd: (listener) => void listeners.push(listener),
    console: (vm: Uid) => {
      const machine = truth.machineAt(host, vm);
      if (machine === undefined) return null;
      const { incarnation, name } = machine;
      const key = `${vm} ${incarnation}`;
      const send = (address: string, port: number): boolean => sent(installation, machine, address, port);
      const console = consoles.get(key) ?? new EchoConsole(name, incarnation, send);
      consoles.set(key, console);
      return { incarnation, console };
    },
    kept: async ({ cell, vm, incarnation }) =>
      kept.find((each) => each.cell === cell && each.vm === vm && each.incarnation === incarnation)?.said ?? null,
    display: (vm) => {
      const machine = truth.machineAt(host, vm);
      if (machine === undefined) return null;
      const { incarnation, name } = machine;
      const screen = screens(name);
      return screen === null ? null : { incarnation, connect: () => screen };
    },
    run: () => {
      throw new Error("a simulated guest runs no command");
    },
  };
}

/** One packet of a guest, through what is in force at both hosts; whether it arrives. */
function sent({ kernel, truth }: Installation, from: MachineTruth, address: string, port: number): boolean {
  for (const to of truth.machines)
    for (const toInterface of to.interfaces) {
      const [fromInterface] = from.interfaces;
      if (toInterface.address !== address || fromInterface === undefined || to === from) continue;
      if (sendPacket(kernel, truth, { from, to, fromInterface, toInterface, protocol: "tcp", port })) return true;
    }
  return false;
}

/** As much of what was said as a real one's host keeps. */
const pastBytes = 16 * 1024;
/** Of machines that have ended at a host. */
const mostKept = 64;

/** A guest at its serial port: what is typed is shown, and each line is answered; `send ADDRESS PORT` sends a packet. */
class EchoConsole implements MachineConsole {
  readonly #viewers = new Set<ConsoleViewer>();
  readonly #prompt: string;
  #past: Buffer;
  #line = "";

  readonly #send: (address: string, port: number) => boolean;

  constructor(name: string, incarnation: number, send: (address: string, port: number) => boolean) {
    this.#send = send;
    this.#prompt = `${name}:${incarnation}# `;
    this.#past = Buffer.from(`This is a simulated guest.\r\n${this.#prompt}`);
  }
  get past(): Buffer {
    return this.#past;
  }
  get viewers(): number {
    return this.#viewers.size;
  }
  attach(viewer: ConsoleViewer): ReturnType<MachineConsole["attach"]> {
    this.#viewers.add(viewer);
    const tell = (): void => {
      for (const each of this.#viewers) each.viewers(this.#viewers.size);
    };
    tell();
    return {
      past: this.#past,
      write: async (bytes) => this.#typed(bytes.toString("utf8")),
      detach: () => {
        if (this.#viewers.delete(viewer)) tell();
      },
    };
  }
  close(): void {
    this.#viewers.clear();
  }

  #answer(line: string): string {
    const [, address, port] = /^send ([\d.]+) (\d{1,5})$/.exec(line) ?? [];
    if (address === undefined) return `read: ${line}`;
    return this.#send(address, Number(port)) ? `it has arrived at ${address}` : `nothing has arrived at ${address}`;
  }
  #typed(text: string): void {
    let said = "";
    for (const letter of text) {
      if (letter === "\r" || letter === "\n") {
        said += `\r\n${this.#answer(this.#line)}\r\n${this.#prompt}`;
        this.#line = "";
      } else {
        said += letter;
        this.#line = `${this.#line}${letter}`.slice(-1000);
      }
    }
    const bytes = Buffer.from(said);
    this.#past = Buffer.concat([this.#past, bytes]).subarray(-pastBytes);
    for (const viewer of this.#viewers) viewer.output(bytes);
  }
}
