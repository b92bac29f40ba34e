import { request } from "node:http";
import { isIP } from "node:net";
import { connect } from "node:tls";
import type { JSONWebKeySet } from "jose";
import {
  ClientSecretBasic,
  Configuration,
  type CustomFetch,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  None,
  type ServerMetadata,
} from "openid-client";
import type { ProviderRecord } from "../../core/tenancy/records.ts";
import { keepNewest } from "../../model/limits.ts";
import type { Tunnels } from "./tunnels.ts";

/*
 * What is asked of an issuer, by `openid-client`, which judges all that it answers. Connections go through the gateway's tunnel, to the hosts that the
 * provider's document names and to no other: an issuer's own metadata may not send anybody elsewhere.
 */
const answerMs = 10_000;
const longestAnswer = 1024 * 1024;
const metadataMs = 10 * 60_000;
const keysAgainMs = 30_000;
const mostKept = 64;

export class Issuers {
  readonly #tunnels: Tunnels;
  readonly #keys = new Map<string, { readonly keys: JSONWebKeySet; readonly atMs: number }>();
  readonly #metadata = new Map<string, { readonly metadata: ServerMetadata; readonly until: number }>();

  constructor(tunnels: Tunnels) {
    this.#tunnels = tunnels;
  }

  /** The issuer as a client, for one request. @param tunnel id of the request's tunnel; rejects where it does not answer, or is another one */
  async of(provider: ProviderRecord, secret: string | null, tunnel: string): Promise<Configuration> {
    const { uid, issuer, clientId } = provider;
    const through = this.#through(provider, tunnel);
    const authentication = secret === null ? None() : ClientSecretBasic(secret);
    const kept = this.#metadata.get(uid);
    let configuration: Configuration;
    if (kept !== undefined && kept.until > performance.now()) {
      configuration = new Configuration(kept.metadata, clientId, undefined, authentication);
      configuration[customFetch] = through;
      configuration.timeout = answerMs / 1000;
    } else {
      configuration = await discovery(new URL(issuer), clientId, undefined, authentication, {
        [customFetch]: through,
        timeout: answerMs / 1000,
      });
      const metadata = configuration.serverMetadata();
      this.#metadata.set(uid, { metadata, until: performance.now() + metadataMs });
      keepNewest(this.#metadata, mostKept);
    }
    // Tokens come over TLS from the issuer itself; their signatures are looked at all the same.
    enableNonRepudiationChecks(configuration);
    return configuration;
  }

  /** What the issuer signs with. @param isStale what is kept of it did not do */
  async keysOf(
    provider: ProviderRecord,
    secret: string | null,
    tunnel: string,
    isStale: boolean,
  ): Promise<JSONWebKeySet> {
    const kept = this.#keys.get(provider.uid);
    const now = performance.now();
    // Whoever makes tokens of unknown keys has nobody asked again and again.
    if (kept !== undefined && now < kept.atMs + (isStale ? keysAgainMs : metadataMs)) return kept.keys;
    const { jwks_uri: address } = (await this.of(provider, secret, tunnel)).serverMetadata();
    if (address === undefined) throw new Error("the issuer does not say where its keys are");
    const asked = {
      method: "GET",
      headers: { accept: "application/json" },
      body: undefined,
      redirect: "manual",
    } as const;
    const answer = await this.#through(provider, tunnel)(address, asked);
    if (answer.status !== 200) throw new Error(`the issuer answered ${answer.status} for its keys`);
    const keys = (await answer.json()) as JSONWebKeySet;
    this.#keys.set(provider.uid, { keys, atMs: now });
    keepNewest(this.#keys, mostKept);
    return keys;
  }

  #through({ issuer, hosts, authority, name }: ProviderRecord, tunnel: string): CustomFetch {
    const own = new URL(issuer);
    const allowed = new Set([...hosts, `${own.hostname}:${own.port || 443}`]);
    return async (address, { method, headers, body }) => {
      const url = new URL(address);
      const port = Number(url.port || 443);
      const place = `${url.hostname}:${port}`;
      if (url.protocol !== "https:" || !allowed.has(place))
        throw new Error(
          `the issuer sends to ${url.protocol}//${place}, which the provider ${name} does not name: --host`,
        );
      const way = await this.#tunnels.open(tunnel, url.hostname, port);
      const secure = connect({
        socket: way,
        host: url.hostname,
        ALPNProtocols: ["http/1.1"],
        ...(isIP(url.hostname) === 0 ? { servername: url.hostname } : {}),
        ...(authority === undefined ? {} : { ca: authority }),
      });
      try {
        return await new Promise<Response>((resolve, reject) => {
          const outgoing = request({
            // With an agent, this connection would not be used.
            createConnection: () => secure,
            defaultPort: 443,
            method,
            headers,
            host: url.hostname,
            port,
            path: `${url.pathname}${url.search}`,
          });
          secure.once("error", reject);
          outgoing.setTimeout(answerMs, () => outgoing.destroy(new Error(`${place} does not answer`)));
          outgoing.once("error", reject);
          outgoing.once("response", (incoming) => {
            const chunks: Buffer[] = [];
            let length = 0;
            incoming.on("data", (chunk: Buffer) => {
              chunks.push(chunk);
              length += chunk.length;
              if (length > longestAnswer) outgoing.destroy(new Error(`${place} answers more than 1 MiB`));
            });
            incoming.once("error", reject);
            incoming.once("end", () => {
              const answered = new Headers();
              for (const [key, value] of Object.entries(incoming.headers))
                for (const each of [value ?? []].flat()) answered.append(key, each);
              const status = incoming.statusCode ?? 502;
              const isEmpty = status === 204 || status === 304;
              resolve(new Response(isEmpty ? null : Buffer.concat(chunks), { status, headers: answered }));
            });
          });
          outgoing.end(body === undefined || body === null ? undefined : String(body));
        });
      } finally {
        secure.destroy();
        way.destroy();
      }
    };
  }
}
