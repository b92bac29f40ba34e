import assert from "node:assert/strict";
import { test } from "node:test";
import { type JoinToken, readJoinToken, writeJoinToken } from "./join-token.ts";

const token: JoinToken = {
  name: "h2",
  address: "10.0.1.2",
  authority: "10.0.0.31:7102",
  fingerprint: "a".repeat(64),
  peers: { authority: "10.0.0.31:7124:7125" },
  host: "h".repeat(43),
  agent: "s".repeat(43),
  endsAtMs: 1,
};

test("what is written is read again, whatever white space a clipboard puts around it", () => {
  const line = writeJoinToken(token);
  assert.match(line, /^cells-join\.[A-Za-z0-9_-]+$/);
  assert.deepEqual(readJoinToken(`\n  ${line}\r\n`), { ok: true, value: token });
  const { agent: _none, ...alone } = token;
  assert.deepEqual(readJoinToken(writeJoinToken(alone)), { ok: true, value: alone });
});

test("what is no token is refused with a sentence that quotes nothing of it", () => {
  const line = writeJoinToken(token);
  const wrong: Readonly<Record<string, unknown>> = {
    name: "H 2",
    address: "10.0.1.256",
    authority: "10.0.0.31",
    fingerprint: "a",
    peers: { authority: "nowhere:x" },
    host: "short",
    agent: 7,
    endsAtMs: "soon",
  };
  const texts = [
    ["", /there is no token/],
    ["hello", /no token to join with/],
    [`${line} ${line}`, /no token to join with/],
    [`cells-join.${"a".repeat(9000)}`, /no token to join with/],
    [line.slice(0, 60), /cut off or changed/],
    [`cells-join.${Buffer.from("7").toString("base64url")}`, /another version/],
    ...Object.entries(wrong).map(([key, value]) => [
      writeJoinToken({ ...token, [key]: value } as JoinToken),
      /another version, or changed/,
    ]),
  ] as const;
  for (const [text, expected] of texts) {
    const read = readJoinToken(String(text));
    assert.ok(!read.ok, String(text));
    assert.match(read.error, expected as RegExp);
    assert.doesNotMatch(read.error, /h{10}|aaaa/);
  }
});
