import assert from "node:assert/strict";
import { test } from "node:test";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { isOfAnotherKey, LogoutTokens, saysToBe } from "./logout-token.ts";

const [own, another] = [await generateKeyPair("RS256"), await generateKeyPair("RS256")];
const keys = { keys: [{ ...(await exportJWK(own.publicKey)), kid: "own", alg: "RS256", use: "sig" }] };
const [issuer, clientId] = ["https://login.example", "cells"];
const event = "http://schemas.openid.net/event/backchannel-logout";
let made = 0;
const claims = (change: object = {}): JWTPayload => {
  made += 1;
  const now = Math.floor(Date.now() / 1000);
  const right = {
    iss: issuer,
    aud: clientId,
    iat: now,
    exp: now + 120,
    jti: `id ${made}`,
    events: { [event]: {} },
    sub: "s1",
    sid: "a",
  };
  return Object.fromEntries(Object.entries({ ...right, ...change }).filter(([, value]) => value !== null));
};
const signed = (payload: JWTPayload, header: object = {}, key = own.privateKey): Promise<string> =>
  new SignJWT(payload).setProtectedHeader({ alg: "RS256", kid: "own", typ: "logout+jwt", ...header }).sign(key);
/** What it says, or why it does not count. */
const read = async (token: string, tokens = new LogoutTokens()): Promise<unknown> => {
  try {
    const said = await tokens.read(token, { issuer, clientId, keys });
    return said.ok ? said.value : said.error;
  } catch (error) {
    return (error as Error).message;
  }
};

test("a logout token says who has logged out, and of which session", async () => {
  const token = await signed(claims());
  assert.deepEqual(saysToBe(token), { issuer, audience: [clientId] });
  assert.deepEqual(await read(token), { subject: "s1", sid: "a" });
  assert.deepEqual(await read(await signed(claims({ sid: null }))), { subject: "s1", sid: null });
  assert.deepEqual(await read(await signed(claims({ sub: null }), { typ: "JWT" })), { subject: null, sid: "a" });
  for (const none of ["", "x", "a.b.c", `${token.split(".")[0]}..`]) assert.equal(saysToBe(none), null, none);
});

test("each claim of it counts, and so does each letter of its signature", async () => {
  const now = Math.floor(Date.now() / 1000);
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ iss: "https://evil.example" }, /iss/],
    [{ aud: "another" }, /aud/],
    [{ iat: null }, /iat/],
    [{ iat: now - 600, exp: null }, /iat/],
    [{ iat: now + 600 }, /iat/],
    [{ exp: now - 300 }, /exp/],
    [{ jti: null }, /jti/],
    [{ events: null }, /events/],
    [{ events: {} }, /of no logout/],
    [{ events: { [event]: "yes" } }, /of no logout/],
    [{ events: { "http://schemas.openid.net/event/other": {} } }, /of no logout/],
    [{ nonce: "of a login" }, /nonce/],
    [{ sub: null, sid: null }, /names nobody/],
    [{ sid: 7 }, /sid/],
  ];
  for (const [change, reason] of wrong) {
    const said = await read(await signed(claims(change)));
    assert.match(String(said), reason, JSON.stringify(change));
  }
  assert.match(String(await read(await signed(claims(), { typ: "at+jwt" }))), /type/);
  assert.match(String(await read(await signed(claims(), {}, another.privateKey))), /signature/);
  assert.match(String(await read(new UnsecuredJWT(claims()).encode())), /alg|JWS|signature/i);
  const shared = await new SignJWT(claims())
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from("a secret of this client alone"));
  assert.match(String(await read(shared)), /alg/);
  const right = await signed(claims());
  const [head = "", body = "", signature = ""] = right.split(".");
  const other = Buffer.from(JSON.stringify(claims({ sub: "s2" }))).toString("base64url");
  assert.match(String(await read(`${head}.${other}.${signature}`)), /signature/);
  assert.notEqual(body, other);
  const unknown = await signed(claims(), { kid: "of tomorrow" });
  await assert.rejects(new LogoutTokens().read(unknown, { issuer, clientId, keys }), (error) => isOfAnotherKey(error));
});

test("a token counts once", async () => {
  const tokens = new LogoutTokens();
  const token = await signed(claims());
  assert.deepEqual(await read(token, tokens), { subject: "s1", sid: "a" });
  assert.equal(await read(token, tokens), "it was shown before");
  assert.deepEqual(await read(await signed(claims()), tokens), { subject: "s1", sid: "a" });
});
