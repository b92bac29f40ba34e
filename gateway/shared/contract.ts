import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { Agent, request } from "node:https";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { connect } from "node:tls";
import type { Refusal } from "../../model/api.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { viaHeader, viaText } from "../../model/contract/audit/via.ts";
import { match } from "../../model/contract/match.ts";
import { readBody } from "../../runtime/http/http.ts";
import { joinStreams } from "../../runtime/http/websocket-hop.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { addressOf } from "../../runtime/transport/admission.ts";
import { expectPeer, readCredentials } from "../../runtime/transport/mutual-tls.ts";
import { whoseHeader } from "./whose.ts";

/**
 * The published contract as a personality asks it: at the gateway beside it, with the credential of whoever asks the personality.
 * It shows no certificate of its own there, since that opens nothing.
 */
export interface Contract {
  /** The answer as it comes. Rejects where the gateway does not answer. */
  open(asked: Asked): Promise<IncomingMessage>;
  /** The whole answer, within 15 s. */
  ask(asked: Asked): Promise<Answered>;
  /** Gives the client what the gateway answers to its request, bytes as they come. */
  passOn(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void>;
  /** The same for a request that leaves HTTP. */
  passUpgradeOn(incoming: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Headers of what is asked for somebody: by what he showed, and for which of his requests (`via.ts`). */
  askedFor(incoming: Pick<IncomingMessage, "method" | "url" | "headers" | "socket">): Readonly<Record<string, string>>;
  close(): void;
}
export interface Asked {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: string | IncomingMessage;
  readonly signal?: AbortSignal;
  /** Of the whole answer, in octets; absent: 8 MiB. */
  readonly most?: number;
}
export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const gateway = peerName("gateway");
const longestAnswer = 8 * 1024 * 1024;
const patienceMs = 15_000;
const mostConnections = 256;
/** Of one hop alone (RFC 9110, section 7.6.1). */
const ofOneHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "proxy-connection",
  // Each says its own.
  viaHeader,
  whoseHeader,
  // A browser sends to each port of a host what one of them gave it: a sign-in at the gateway is nobody else's to see.
  "cookie",
  "set-cookie",
]);
/** Not passed on with a request that leaves HTTP. */
const ofOthers: ReadonlySet<string> = new Set(["cookie", viaHeader]);
const passed = (headers: IncomingHttpHeaders): OutgoingHttpHeaders => {
  const named = String(headers.connection ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase());
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !ofOneHop.has(name) && !named.includes(name)),
  ) as OutgoingHttpHeaders;
};

/** @param told of each answer whose the request was, by what it showed (`whose.ts`) */
export function createContract(
  configuration: ProcessConfiguration,
  told: (shown: string, whose: string) => void = () => undefined,
): Contract {
  const { personality, role } = configuration;
  if (personality === undefined)
    throw new Error('the configuration has no "personality" part, which this process needs');
  const { address: host, port } = personality.gateway;
  const tls = () => ({ host, port, ca: readCredentials(configuration).ca, checkServerIdentity: expectPeer(gateway) });
  const agent = new Agent({ keepAlive: true, maxSockets: mostConnections });
  const viaOf = ({ method = "GET", url = "/", socket }: Pick<IncomingMessage, "method" | "url" | "socket">): string =>
    viaText({
      personality: role.slice(role.lastIndexOf(".") + 1),
      command: match(method, url)?.name ?? method.slice(0, 16),
      id: randomBytes(9).toString("base64url"),
      source: addressOf(socket),
    });
  const open: Contract["open"] = ({ method, path, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const outgoing = request({
        ...tls(),
        agent,
        method,
        path,
        headers,
        ...(signal === undefined ? {} : { signal }),
      });
      outgoing.once("response", (answer) => {
        const whose = answer.headers[whoseHeader];
        if (answer.statusCode !== 401 && typeof whose === "string" && headers.authorization !== undefined)
          told(String(headers.authorization), whose);
        resolve(answer);
      });
      outgoing.on("error", reject);
      if (body === undefined || typeof body === "string") outgoing.end(body);
      else pipeline(body, outgoing).catch(reject);
    });
  return {
    open,
    ask: async (asked) => {
      const answer = await open({ signal: AbortSignal.timeout(patienceMs), ...asked });
      const text = await readBody(answer, asked.most ?? longestAnswer);
      if (!text.ok) throw new Error(`the gateway's answer cannot be read: ${text.error}`);
      return { status: answer.statusCode ?? 502, headers: answer.headers, text: text.value };
    },
    passOn: async (incoming, outgoing) => {
      const gone = new AbortController();
      outgoing.once("close", () => gone.abort());
      const { method = "GET", url = "/", headers } = incoming;
      const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
      try {
        const answer = await open({
          method,
          path: url,
          headers: { ...passed(headers), [viaHeader]: viaOf(incoming) },
          signal: gone.signal,
          ...(hasBody ? { body: incoming } : {}),
        });
        outgoing.writeHead(answer.statusCode ?? 502, passed(answer.headers));
        outgoing.flushHeaders();
        await pipeline(answer, outgoing);
      } catch {
        if (outgoing.headersSent) outgoing.destroy();
        else refuse(outgoing);
      }
    },
    passUpgradeOn: (incoming, socket, head) => {
      const onward = connect(tls());
      const end = (): void => {
        onward.destroy();
        socket.destroy();
      };
      socket.on("error", end);
      onward.on("error", end);
      onward.once("secureConnect", () => {
        const lines = [`${incoming.method} ${incoming.url} HTTP/1.1`];
        for (let at = 0; at < incoming.rawHeaders.length; at += 2)
          if (!ofOthers.has(incoming.rawHeaders[at]?.toLowerCase() ?? ""))
            lines.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`);
        lines.push(`${viaHeader}: ${viaOf(incoming)}`);
        onward.write(`${lines.join("\r\n")}\r\n\r\n`);
        if (head.length > 0) onward.write(head);
        void joinStreams(socket, onward);
      });
    },
    askedFor: (incoming) => ({ authorization: incoming.headers.authorization ?? "", [viaHeader]: viaOf(incoming) }),
    close: () => agent.destroy(),
  };
}

function refuse(outgoing: ServerResponse): void {
  const message = "the gateway behind this door does not answer";
  outgoing.writeHead(502, { "content-type": "application/json" });
  outgoing.end(JSON.stringify({ error: { code: "unreachable", message } } satisfies Refusal));
}
