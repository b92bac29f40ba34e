import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Asker } from "../../core/controller/model/audited.ts";
import type { ControllerResponse } from "../../core/controller/requests/requests.ts";
import type { ExecTarget } from "../../core/controller/requests/session-requests.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import {
  capabilityPrefix,
  type SessionGrant,
  type SessionRequest,
  type SessionVerb,
  sessionProtocol,
} from "../../model/cell/session-messages.ts";
import type { Json } from "../../model/json/json.ts";
import { hashCredential } from "../http/bearer.ts";
import type { PeerUpgrade } from "../http/https.ts";
import { capabilityLifetimeMs, encodeCapability, hostCapabilityHeader } from "../http/session-capability.ts";
import { passUpgradeBack, peerUpgrade, refuseUpgrade } from "../http/websocket-hop.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { type SessionHolder, TicketHolds } from "./tenants/tenants.ts";

/**
 * Sessions as the cell's controller sees them: it gives an authorised client a capability for one stream, and when that is
 * presented it opens the stream at the VM's host. It neither reads nor keeps what flows.
 */
export interface ControllerSessions {
  /** Answers `POST …/sessions`; the credential was checked before. */
  grant(
    asked: SessionRequest,
    holder: SessionHolder,
    by: Asker,
  ): Promise<{ readonly status: number; readonly body: SessionGrant | Json }>;
  /** Answers the handshake of `GET …/sessions`. */
  open(upgrade: PeerUpgrade): Promise<void>;
  /** A credential was revoked, or a ticket is worth less: ends what was opened under one that does not allow it any more. */
  revoked(): Promise<void>;
}
export interface ControllerSessionsOptions {
  readonly configuration: ProcessConfiguration;
  readonly cell: string;
  readonly request: (request: Json) => Promise<Json>;
  /** Absent: its own. */
  readonly holds?: TicketHolds;
}

const mostGranted = 256;
const mostOpen = 128;

export const createSessions = (options: ControllerSessionsOptions): ControllerSessions => {
  const { configuration, cell, request, holds = new TicketHolds(request) } = options;
  const grants = new SessionGrants(() => performance.now());
  /** From the handshake on. */
  const underWay = new Set<{ readonly holder: SessionHolder; readonly socket: Duplex }>();

  const isKnown = async (holder: SessionHolder): Promise<boolean> => {
    if (holder === null) return true;
    if ("ticket" in holder) return holds.allows(holder.ticket, holder.verb);
    const asked = { method: "CREDENTIAL-KNOWN", hash: holder.credential };
    return ((await request(asked)) as unknown as ControllerResponse).body === true;
  };
  /** Who opened it is durable before anything flows. */
  const isRecorded = async ({ path, verb, port, target, by }: Grant): Promise<boolean> => {
    const of = target.former === true ? ` of incarnation ${target.incarnation}` : "";
    const what = port === undefined ? `${verb}${of}` : `${verb} to port ${port}`;
    const asked = { method: "RECORD", verb: "openSession", target: path, what, by };
    return ((await request(asked as unknown as Json)) as unknown as ControllerResponse).status === 200;
  };
  const refusal = (status: number, code: string, message: string) => ({ status, body: { error: { code, message } } });

  const passOn = async (
    { socket, head, headers }: PeerUpgrade,
    { path, verb, port, target, holder }: Grant,
  ): Promise<void> => {
    const capability = {
      vm: target.uid,
      incarnation: target.incarnation,
      verb,
      ...(port === undefined ? {} : { port }),
      ...(target.former === undefined ? {} : { former: target.former }),
      expiresMs: Date.now() + capabilityLifetimeMs,
      nonce: randomBytes(24).toString("base64url"),
    };
    let answer: Awaited<ReturnType<typeof peerUpgrade>>;
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    socket.once("close", leave);
    try {
      answer = await peerUpgrade(configuration, peerName(`host.${target.host}`), {
        path: "/session",
        handshake: headers,
        headers: { "sec-websocket-protocol": sessionProtocol, [hostCapabilityHeader]: encodeCapability(capability) },
        signal: gone.signal,
      });
    } catch (error) {
      const why = (error as Error).message;
      const what = target.former === true ? `incarnation ${target.incarnation} of ${path} ran` : `${path} runs`;
      const told = holder === null ? `host ${target.host}, where ${what}, does not answer: ${why}` : null;
      refuseUpgrade(socket, 502, "unreachable", told ?? `the host where ${what} does not answer`);
      return;
    } finally {
      // From now on the two streams end with one another, each whole.
      socket.off("close", leave);
    }
    await passUpgradeBack(answer, socket, head);
  };

  return {
    grant: async ({ vm, verb, port, incarnation }, holder, by) => {
      if (incarnation !== undefined && verb !== "console")
        return refusal(400, "bad-request", "`incarnation` is of `console`: only what one has said is kept");
      const forwards = verb === "forward";
      if (forwards !== (port !== undefined))
        return refusal(400, "bad-request", "`port` is of `forward`: the TCP port of the VM, from 1 to 65535");
      const displays = verb === "display";
      const of = incarnation === undefined ? {} : { incarnation };
      const asked = {
        method: "EXEC-TARGET",
        vm,
        ...of,
        ...(forwards ? { forwards } : {}),
        ...(displays ? { displays } : {}),
      };
      const answer = (await request(asked)) as unknown as ControllerResponse;
      if (answer.status !== 200) return { status: answer.status, body: answer.body as Json };
      const target = answer.body as unknown as ExecTarget;
      const session = grants.mint({
        path: target.path,
        verb,
        target,
        holder,
        by,
        ...(port === undefined ? {} : { port }),
      });
      if (session === null)
        return refusal(429, "busy", `${mostGranted} sessions are granted and not opened yet; try again in a minute`);
      const { path, host } = target;
      const expires = new Date(Date.now() + capabilityLifetimeMs).toISOString();
      const granted = { vm: path, incarnation: target.incarnation, host: holder === null ? host : null };
      return { status: 201, body: { session, expires, ...granted } };
    },
    open: async (upgrade) => {
      const { socket, headers } = upgrade;
      const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
      const session = offered.find((name) => name.startsWith(capabilityPrefix))?.slice(capabilityPrefix.length);
      if (session === undefined || !offered.includes(sessionProtocol)) {
        const right = `Sec-WebSocket-Protocol: ${sessionProtocol}, ${capabilityPrefix}<session>`;
        refuseUpgrade(socket, 400, "bad-request", `to open a session of the cell ${cell}, ask for it first: ${right}`);
        return;
      }
      const granted = grants.redeem(session);
      if (granted === null) {
        const message = "this capability opens nothing: it was used before, has expired (after 60 s), or never was one";
        refuseUpgrade(socket, 403, "capability", message);
      } else if (underWay.size >= mostOpen) {
        refuseUpgrade(socket, 429, "busy", `${mostOpen} sessions of the cell ${cell} are open, and that is the limit`);
      } else {
        const session = { holder: granted.holder, socket };
        underWay.add(session);
        const { holder } = granted;
        const letGo = holder !== null && "ticket" in holder ? holds.hold(holder.ticket) : () => undefined;
        try {
          // Once it is under way, a revocation finds it; this is for one that came before.
          if ((await isKnown(holder)) && (await isRecorded(granted))) await passOn(upgrade, granted);
          else refuseUpgrade(socket, 403, "capability", "the credential that this capability was given to was revoked");
        } finally {
          underWay.delete(session);
          letGo();
        }
      }
    },
    revoked: async () => {
      for (const holder of new Set([...underWay].map((session) => session.holder))) {
        if (await isKnown(holder)) continue;
        // Without a word: whatever were said in between might come in the midst of what the host says.
        for (const session of underWay) if (session.holder === holder) session.socket.destroy();
      }
    },
  };
};

interface Grant {
  readonly path: string;
  readonly verb: SessionVerb;
  /** Of `forward`. */
  readonly port?: number;
  readonly target: ExecTarget;
  readonly holder: SessionHolder;
  /** Who asked for it. */
  readonly by: Asker;
}

/**
 * What was granted and not yet redeemed. Only hashes are kept: who reads this memory, or times a look-up, learns of no
 * capability. A restart of the controller forgets them all, and clients ask again.
 */
export class SessionGrants {
  readonly #now: () => number;
  readonly #granted = new Map<string, { readonly grant: Grant; readonly until: number }>();

  /** `now`: milliseconds, monotonic. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Null when too many are outstanding. */
  mint(grant: Grant): string | null {
    for (const [hash, { until }] of this.#granted) if (until < this.#now()) this.#granted.delete(hash);
    if (this.#granted.size >= mostGranted) return null;
    const session = randomBytes(32).toString("base64url");
    this.#granted.set(hashCredential(session), { grant, until: this.#now() + capabilityLifetimeMs });
    return session;
  }

  /** Uses it up; null when it opens nothing. */
  redeem(session: string): Grant | null {
    const hash = hashCredential(session);
    const found = this.#granted.get(hash);
    this.#granted.delete(hash);
    return found === undefined || found.until < this.#now() ? null : found.grant;
  }
}
