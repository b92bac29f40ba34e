import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, request } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { type CryptoKey, decodeJwt, exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { Provider } from "oidc-provider";
import { peerName } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { issueCertificate } from "../../runtime/identity/certificates.ts";

/** `oidc-provider` on loopback, whose people say yes at once; what it answers may be altered on its way. */
export interface TestIssuer {
  readonly url: string;
  /** Of its client `cells`. */
  readonly secret: string;
  /** PEM of who signed its certificate. */
  readonly authority: string;
  /** Claims of each subject. */
  readonly people: Record<string, JsonObject>;
  /** Ports from which connections came. */
  readonly callers: ReadonlySet<number>;
  /** In place of what its metadata says. */
  metadata: JsonObject;
  /** Its ID tokens have these claims and this signature until the answer is called. */
  tampering(change: { readonly claims?: JsonObject; readonly key?: "another" | "none" }): () => void;
  /** What it sends when somebody has logged out there, by its own key or by another. */
  logoutToken(claims: JsonObject, key?: "another"): Promise<string>;
  /** A browser of this person goes there: the address to which it is sent back. */
  browse(url: string, person: string): Promise<string>;
  /** The same with the code of a device. */
  sayYes(url: string, userCode: string, person: string): Promise<void>;
  stop(): Promise<void>;
}
export const redirect = "https://cloud.example/back";

export async function startIssuer(authorityDirectory: string, clientSecret: string): Promise<TestIssuer> {
  const files = await issueCertificate(authorityDirectory, peerName("placer.issuer"), ["127.0.0.1"]);
  const authority = await readFile(files.caFile, "utf8");
  const [own, another] = [await generateKeyPair("RS256", { extractable: true }), await generateKeyPair("RS256")];
  const jwk = { ...(await exportJWK(own.privateKey)), kid: "own", use: "sig", alg: "RS256" };
  const people: Record<string, JsonObject> = {
    ann: { preferred_username: "ann", groups: ["admins"] },
    twin: { preferred_username: "ann", groups: ["devs"] },
    eve: { preferred_username: "eve", groups: [] },
    mia: { preferred_username: "mia", groups: ["cells-users"] },
    long: { preferred_username: "x".repeat(10_000), groups: ["devs"] },
  };
  let person = "";
  let change: Parameters<TestIssuer["tampering"]>[0] | null = null;
  let provider: Provider;

  const signed = async (token: string): Promise<string> => {
    const claims = Object.fromEntries(
      Object.entries({ ...decodeJwt(token), ...change?.claims }).filter(([, value]) => value !== null),
    );
    if (change?.key === "none") return new UnsecuredJWT(claims).encode();
    const key: CryptoKey = change?.key === "another" ? another.privateKey : own.privateKey;
    return new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "own" }).sign(key);
  };
  const altered = async (path: string, body: string): Promise<string> => {
    const said = JSON.parse(body) as JsonObject;
    if (path.startsWith("/.well-known")) return JSON.stringify({ ...said, ...issuer.metadata });
    if (change === null || typeof said.id_token !== "string") return body;
    return JSON.stringify({ ...said, id_token: await signed(said.id_token) });
  };
  const alter = (path: string, response: ServerResponse): void => {
    const end = response.end.bind(response) as (body: string) => ServerResponse;
    response.end = ((body: string | Buffer) => {
      void altered(path, String(body)).then((text) => {
        response.setHeader("content-length", Buffer.byteLength(text));
        end(text);
      });
      return response;
    }) as typeof response.end;
  };
  const interact = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { prompt, params, session } = await provider.interactionDetails(incoming, response);
    if (prompt.name === "login") {
      await provider.interactionFinished(incoming, response, { login: { accountId: person } });
      return;
    }
    const grant = new provider.Grant({ accountId: session?.accountId ?? "", clientId: String(params.client_id) });
    grant.addOIDCScope(String(params.scope));
    const consent = { grantId: await grant.save() };
    await provider.interactionFinished(incoming, response, { consent }, { mergeWithLastSubmission: true });
  };
  const server = createServer(
    { cert: await readFile(files.certFile), key: await readFile(files.keyFile) },
    async (incoming, response) => {
      const { url: path = "" } = incoming;
      if (path.startsWith("/say-yes/")) {
        await interact(incoming, response);
        return;
      }
      if (path === "/token" || path.startsWith("/.well-known")) alter(path, response);
      await provider.callback()(incoming, response);
    },
  );
  const callers = new Set<number>();
  server.on("connection", ({ remotePort = 0 }: Socket) => callers.add(remotePort));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  provider = new Provider(url, {
    clients: [
      {
        client_id: "cells",
        client_secret: clientSecret,
        redirect_uris: [redirect],
        grant_types: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
      },
    ],
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
    cookies: { keys: ["of this test"] },
    features: { devInteractions: { enabled: false }, deviceFlow: { enabled: true } },
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId, ...people[accountId] }) }),
    interactions: { url: (_, { uid }) => `/say-yes/${uid}` },
    jwks: { keys: [jwk] },
    pkce: { required: () => true },
  });
  // It would say so on the terminal.
  provider.on("server_error", (_, error) => process.emitWarning(error));

  const visit = async (
    jar: Map<string, string>,
    to: string,
    form?: Record<string, string>,
  ): Promise<{ readonly status: number; readonly location: string | null; readonly body: string }> => {
    const outgoing = request(to, {
      ca: authority,
      agent: false,
      method: form === undefined ? "GET" : "POST",
      headers: {
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      },
    });
    outgoing.end(form === undefined ? undefined : new URLSearchParams(form).toString());
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    for (const cookie of incoming.headers["set-cookie"] ?? []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === "") jar.delete(name);
      else jar.set(name, value);
    }
    const { location = null } = incoming.headers;
    return {
      status: incoming.statusCode ?? 0,
      body: await text(incoming),
      location: location === null ? null : new URL(location, to).href,
    };
  };
  const follow = async (jar: Map<string, string>, to: string, form?: Record<string, string>) => {
    let seen = await visit(jar, to, form);
    for (let hop = 0; hop < 12 && seen.location !== null; hop += 1) {
      if (seen.location.startsWith(redirect)) return { ...seen, back: seen.location };
      seen = await visit(jar, seen.location);
    }
    return { ...seen, back: null };
  };

  const issuer: TestIssuer = {
    url,
    secret: clientSecret,
    authority,
    people,
    callers,
    metadata: {},
    tampering: (next) => {
      change = next;
      return () => {
        change = null;
      };
    },
    logoutToken: (claims, key) => {
      const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
      const token = new SignJWT({ iss: url, aud: "cells", events, jti: crypto.randomUUID(), ...claims })
        .setProtectedHeader({ alg: "RS256", kid: "own", typ: "logout+jwt" })
        .setIssuedAt()
        .setExpirationTime("2m");
      return token.sign(key === "another" ? another.privateKey : own.privateKey);
    },
    browse: async (to, who) => {
      person = who;
      const { back, status, body } = await follow(new Map(), to);
      return back ?? assert.fail(`${status} ${body}`);
    },
    sayYes: async (to, userCode, who) => {
      person = who;
      const jar = new Map<string, string>();
      const fieldIn = (body: string): string => /name="xsrf" value="([^"]+)"/.exec(body)?.[1] ?? assert.fail(body);
      const asked = await follow(jar, to);
      const shown = await follow(jar, `${url}/device`, { xsrf: fieldIn(asked.body), user_code: userCode });
      const over = await follow(jar, `${url}/device`, {
        xsrf: fieldIn(shown.body),
        user_code: userCode,
        confirm: "yes",
      });
      assert.equal(over.status, 200, over.body);
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return issuer;
}
