import { type WebSocket, WebSocketServer } from "ws";
import { mayAsk } from "../../core/documents/permissions.ts";
import { type PeerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import {
  longestMessageBytes,
  mostViewers,
  type SessionVerb,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import type { Json } from "../../model/json/json.ts";
import type { PeerUpgrade, PeerUpgradeHandler } from "../../runtime/http/https.ts";
import {
  decodeCapability,
  type HostCapability,
  hostCapabilityHeader,
  UsedCapabilities,
} from "../../runtime/http/session-capability.ts";
import { refuseUpgrade } from "../../runtime/http/websocket-hop.ts";
import type { HypervisorDriver } from "../drivers/hypervisor/driver.ts";
import { keptLimits } from "../drivers/hypervisor/guest/kept-consoles.ts";
import type { ExecTarget, HostRequest } from "../host-requests.ts";
import { createSessionChannel, type SessionChannel } from "./session-channel.ts";
import { serveConsole, showFormer } from "./session-console.ts";
import { serveDisplay } from "./session-display.ts";
import { serveExec } from "./session-exec.ts";
import { connectCommand } from "./session-forward.ts";

/**
 * Sessions end here: `GET /session`, upgraded to a WebSocket (`model/cell/session-messages.ts`), in front of a machine's console or a
 * command in its guest. Only the controller of the machine's cell gets in, with a capability that it minted for exactly
 * this incarnation and verb. When that incarnation ends, so do its sessions.
 */
export interface HostSessionsOptions {
  readonly hypervisor: Pick<HypervisorDriver, "onEnd" | "console" | "kept" | "display" | "run">;
  /** By the name of a cell, the UID of that which has it now; "": nobody has said. Absent: nobody ever says. */
  readonly lives?: () => Promise<(cell: string) => string>;
  readonly request: (request: Json) => Promise<Json>;
  readonly log?: (event: string, fields: { readonly [key: string]: Json }) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly limits?: Partial<SessionLimits>;
}
export interface SessionLimits {
  readonly perMachine: number;
  readonly perHost: number;
  /** Without a byte in either direction that arrived. */
  readonly idleMs: number;
  readonly displaysPerMachine: number;
  /** Of a display in all: a screen on which something blinks is never idle, whoever has left it open. */
  readonly displayMs: number;
}
export interface HostSessions {
  readonly upgrade: PeerUpgradeHandler;
  /** Tells every client that the service restarts, and lets none in any more. */
  close(): Promise<void>;
}

const defaultLimits: SessionLimits = {
  perMachine: 16,
  perHost: 128,
  idleMs: 30 * 60_000,
  // QEMU takes as many.
  displaysPerMachine: mostViewers,
  displayMs: 12 * 3_600_000,
};
/** A capability is about 200 bytes. */
const longestCapability = 1024;

interface Open {
  /** The controller of whose cell it is. */
  readonly peer: PeerName;
  readonly vm: Uid;
  readonly incarnation: number;
  readonly verb: SessionVerb;
  readonly channel: SessionChannel;
}
interface Refused {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}
const refused = (status: number, code: string, message: string): Refused => ({ status, code, message });

export const createHostSessions = (options: HostSessionsOptions): HostSessions => {
  const { hypervisor } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const used = new UsedCapabilities(options.now ?? Date.now);
  const open = new Set<Open>();
  let closing = false;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: longestMessageBytes,
    perMessageDeflate: false,
    handleProtocols: () => sessionProtocol,
  });

  hypervisor.onEnd(({ vm, incarnation, detail }) => {
    for (const session of open)
      if (session.vm === vm && session.incarnation <= incarnation)
        session.channel.end("machine-ended", `incarnation ${session.incarnation} of this VM has ended: ${detail}`);
  });

  /** The machine that runs. */
  const runningOf = async (peer: PeerName, { vm, incarnation, verb }: HostCapability): Promise<Target | Refused> => {
    const asked: HostRequest = { kind: "exec-target", client: peer, vm, incarnation };
    const target = (await options.request(asked as unknown as Json)) as unknown as ExecTarget;
    if ("refused" in target) return refused(409, "not-running", target.refused);
    if (verb === "forward" && target.address === undefined)
      return refused(409, "conflict", `"${vm}" has no interface, so no port of it can be reached`);
    const running = hypervisor.console(target.vm);
    if (running === null || running.incarnation !== incarnation)
      return refused(409, "not-running", `incarnation ${incarnation} of "${vm}" does not run here any more`);
    if (verb === "display" && hypervisor.display(target.vm) === null)
      return refused(409, "conflict", "this incarnation was started without a display; its next one has it");
    return target;
  };
  /** What one that has ended here said last. UIDs of VMs begin with that of their cell, so a later cell of the name has none of it. */
  const formerOf = async (peer: PeerName, { vm, incarnation }: HostCapability): Promise<Target | Refused> => {
    const cell = peer.slice("controller.".length);
    const life = await (options.lives?.() ?? nobodySaid).then((of) => of(cell)).catch(() => null);
    if (life === null) return refused(503, "unavailable", "its host cannot read which cell has that name; try again");
    const isOther = life !== "" && !vm.startsWith(`${life}-`);
    const said = isOther ? null : await hypervisor.kept({ cell, vm, incarnation });
    if (said !== null) return { vm: uid(vm), said };
    const sentence = `its host keeps nothing of what incarnation ${incarnation} of this VM said: it keeps the last ${keptLimits.perVm} of a VM for a day, until the host is switched off`;
    return refused(404, "not-found", sentence);
  };

  /** The machine that the capability is for, or why it opens nothing. */
  const admit = async (peer: PeerName, url: string, header: unknown): Promise<Admitted | Refused> => {
    if (!mayAsk("host", peer, "GET", "/session"))
      return refused(403, "forbidden", `${peer} may open no session: only the controller of the VM's cell may`);
    if (url.split("?")[0] !== "/session") return refused(404, "not-found", "sessions are at /session");
    const capability =
      typeof header === "string" && header.length <= longestCapability ? decodeCapability(header) : null;
    if (capability === null)
      return refused(400, "bad-request", `a session needs a capability in the header ${hostCapabilityHeader}`);
    // The machine is looked for first: a capability that opens nothing is not used up.
    const target = await (capability.former === true ? formerOf(peer, capability) : runningOf(peer, capability));
    if ("status" in target) return target;
    const isDisplay = capability.verb === "display";
    if (closing)
      return refused(503, "closing", `the Host Manager of its host is about to restart; try again in a moment`);
    const there = [...open].filter((session) => session.vm === target.vm);
    const ofMachine = there.length;
    const displays = there.filter(({ verb }) => verb === "display").length;
    if (isDisplay && displays >= limits.displaysPerMachine)
      return refused(429, "busy", `${displays} are at the display of this VM, and that is the limit; close one first`);
    if (ofMachine >= limits.perMachine)
      return refused(
        429,
        "busy",
        `${ofMachine} sessions into this VM are open, and that is the limit; close one first`,
      );
    if (open.size >= limits.perHost)
      return refused(429, "busy", `${open.size} sessions are open at its host, and that is the limit; try again later`);
    // One cell has no more than it leaves to all others: half where it is alone, a third beside another one.
    const own = [...open].filter((session) => session.peer === peer).length;
    if (own > 0 && own >= limits.perHost - open.size)
      return refused(
        429,
        "busy",
        `${own} sessions of this cell are open at its host, and the rest is for others; close one first`,
      );
    const why = used.use(capability);
    if (why !== null) return refused(403, "capability", why);
    return { ...capability, ...target };
  };

  const begin = (socket: WebSocket, peer: PeerName, admitted: Admitted): void => {
    const { vm, incarnation, verb, port, address, said } = admitted;
    const channel = createSessionChannel(socket, limits.idleMs);
    const session: Open = { peer, vm, incarnation, verb, channel };
    open.add(session);
    const of = { ...(port === undefined ? {} : { port }), ...(said === undefined ? {} : { former: true }) };
    const fields = { vm, incarnation, verb, peer, ...of };
    options.log?.("session/opened", fields);
    channel.closed.then(() => {
      open.delete(session);
      options.log?.("session/ended", fields);
    });
    // Whoever looks may be nobody to learn of machines: the grant says it to the operator.
    const opened = { kind: "opened", incarnation, host: "" } as const;
    if (said !== undefined) {
      showFormer(channel, said, opened);
      return;
    }
    const running = hypervisor.console(vm);
    if (running === null || running.incarnation !== incarnation) {
      channel.end("machine-ended", `incarnation ${incarnation} of this VM has just ended`);
      return;
    }
    if (verb === "console") serveConsole(channel, running.console, opened);
    else if (verb === "display")
      serveDisplay(channel, hypervisor.display(vm)?.connect() ?? null, opened, limits.displayMs);
    else {
      const given = verb === "forward" ? connectCommand(address ?? "", port ?? 0) : null;
      serveExec(channel, (command, output) => hypervisor.run(vm, command, output), opened, given);
    }
  };

  return {
    upgrade: async ({ peer, url, headers, raw, socket, head }: PeerUpgrade) => {
      const admitted = await admit(peer, url, headers[hostCapabilityHeader]);
      if ("status" in admitted) refuseUpgrade(socket, admitted.status, admitted.code, admitted.message);
      else server.handleUpgrade(raw, socket, head, (webSocket) => begin(webSocket, peer, admitted));
    },
    close: async () => {
      closing = true;
      const sentence = `the Host Manager of its host restarts; the VM goes on, and its console can be opened again in a moment`;
      const channels = [...open].map(({ channel }) => channel);
      for (const channel of channels) channel.end("closing", sentence);
      await Promise.all(channels.map(({ closed }) => closed));
    },
  };
};

interface Target {
  readonly vm: Uid;
  /** Of its first interface. */
  readonly address?: string;
  /** It has ended, and this is what it said last. */
  readonly said?: Buffer;
}
const nobodySaid = Promise.resolve(() => "");
type Admitted = Omit<HostCapability, "vm"> & Target;
