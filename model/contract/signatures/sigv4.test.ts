import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { test } from "node:test";
import { type RequestAsSent, readSigV4, sigV4Of } from "./sigv4.ts";

/**
 * Of AWS's test suite for Signature Version 4 (aws-sig-v4-test-suite, as in awslabs/aws-c-auth, tests/aws-signing-test-suite/v4): the request as it is
 * sent, and the signature that it has. All are of one key, date and scope.
 */
const suite: readonly (readonly [name: string, start: string, headers: string, signature: string, body?: string])[] = [
  ["get-vanilla", "GET /", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"],
  [
    "get-header-key-duplicate",
    "GET /",
    "My-Header1:value2\nMy-Header1:value2\nMy-Header1:value1",
    "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
  ],
  [
    "get-header-value-trim",
    "GET /",
    'My-Header1: value1\nMy-Header2: "a   b   c"',
    "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
  ],
  [
    "get-relative-relative-normalized",
    "GET /example1/example2/../..",
    "",
    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  ],
  ["get-slashes-normalized", "GET //example//", "", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"],
  [
    "get-space-normalized",
    "GET /example space/",
    "",
    "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
  ],
  [
    "get-unreserved",
    "GET /-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "",
    "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
  ],
  ["get-utf8", "GET /\u1234", "", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"],
  [
    "get-vanilla-empty-query-key",
    "GET /?Param1=value1",
    "",
    "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
  ],
  [
    "get-vanilla-query-order-key-case",
    "GET /?Param2=value2&Param1=value1",
    "",
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  ],
  [
    "get-vanilla-query-order-encoded",
    "GET /?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
    "",
    "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
  ],
  [
    "get-vanilla-query-unreserved",
    "GET /?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "",
    "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
  ],
  [
    "get-vanilla-utf8-query",
    "GET /?\u1234=bar",
    "",
    "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
  ],
  [
    "get-vanilla-with-session-token",
    "GET /",
    "X-Amz-Security-Token:6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267",
    "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
  ],
  [
    "post-x-www-form-urlencoded",
    "POST /",
    "Content-Type:application/x-www-form-urlencoded\nContent-Length:13\nx-amz-content-sha256:9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
    "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
    "Param1=value1",
  ],
];
const [key, secret] = ["AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"];
const date = "20150830T123600Z";
const scope = "20150830/us-east-1/service/aws4_request";
const inQuery =
  "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2Fservice%2Faws4_request&X-Amz-Date=20150830T123600Z&X-Amz-SignedHeaders=host&X-Amz-Expires=3600";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (secret: string | Buffer, text: string): Buffer => createHmac("sha256", secret).update(text).digest();
const signatureOf = (stringToSign: string): string => {
  const [, , of = ""] = stringToSign.split("\n");
  let signing: string | Buffer = `AWS4${secret}`;
  for (const part of of.split("/")) signing = hmac(signing, part);
  return hmac(signing, stringToSign).toString("hex");
};
const requestOf = (start: string, headers: string, body = ""): RequestAsSent => {
  const at = start.indexOf(" ");
  const lines = ["Host:example.amazonaws.com", `X-Amz-Date:${date}`, ...headers.split("\n").filter(Boolean)];
  return {
    method: start.slice(0, at),
    target: start.slice(at + 1),
    bodyHash: sha256(body),
    headers: lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)] as const),
  };
};
/** With the header that says its signature. */
const signed = (request: RequestAsSent): RequestAsSent => {
  const { stringToSign, authorization } = sigV4Of(request, key, scope, sha256);
  return { ...request, headers: [...request.headers, ["Authorization", authorization(signatureOf(stringToSign))]] };
};
/** Is it as whoever has the secret signed it? */
const isRight = (request: RequestAsSent): boolean => {
  const read = readSigV4(request, sha256);
  return read?.ok === true && read.value.key === key && signatureOf(read.value.stringToSign) === read.value.signature;
};

for (const [name, start, headers, signature, body] of suite)
  test(`AWS's own vector ${name}`, () => {
    const request = requestOf(start, headers, body);
    const { stringToSign } = sigV4Of(request, key, scope, sha256);
    assert.equal(signatureOf(stringToSign), signature);
    const read = readSigV4(signed(request), sha256);
    assert.deepEqual(read, { ok: true, value: { scheme: "sigv4", key, stringToSign, signature } });
  });

test("AWS's own vector get-vanilla-query-order-key-case, signed in its query", () => {
  const signature = "86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5";
  const request = requestOf(`GET /?Param2=value2&Param1=value1&${inQuery}&X-Amz-Signature=${signature}`, "");
  assert.ok(isRight(request));
  assert.ok(!isRight(requestOf(`GET /?Param2=value3&Param1=value1&${inQuery}&X-Amz-Signature=${signature}`, "")));
});

test("a request that is altered in any byte has another signature, or is refused", () => {
  const body = "Param1=value1";
  const request = signed(requestOf("POST /cells/shop?a=b&c=d", "My-Header1:value1", body));
  assert.ok(isRight(request));
  const flipped = (text: string): readonly string[] =>
    [...text].map((character, at) => {
      const other = character === "x" ? "y" : "x";
      return text.slice(0, at) + other + text.slice(at + 1);
    });
  for (const method of flipped(request.method)) assert.ok(!isRight({ ...request, method }), method);
  for (const target of flipped(request.target)) assert.ok(!isRight({ ...request, target }), target);
  for (let at = 0; at < body.length; at += 1)
    assert.ok(!isRight({ ...request, bodyHash: sha256(flipped(body)[at] ?? "") }));
  for (const [index, [name, value]] of request.headers.entries())
    for (const other of flipped(value)) {
      const headers = request.headers.map((header, at) => (at === index ? ([name, other] as const) : header));
      assert.ok(!isRight({ ...request, headers }), `${name}: ${other}`);
    }
  const added = (...header: readonly [string, string]): RequestAsSent => ({
    ...request,
    headers: [...request.headers, header],
  });
  assert.ok(!isRight(added("My-Header1", "value1")), "a header that is signed, once more");
  assert.ok(!isRight(added("X-Amz-Target", "elsewhere")), "one that says what is meant");
  assert.ok(isRight(added("User-Agent", "anything")), "others are nobody's business");
});

test("what is not as the standard has it is refused with what would be right", () => {
  const request = requestOf("GET /", "");
  const { stringToSign, authorization } = sigV4Of(request, key, scope, sha256);
  const right = authorization(signatureOf(stringToSign));
  const told = (said: string, headers = request.headers): string => {
    const read = readSigV4({ ...request, headers: [...headers, ["authorization", said]] }, sha256);
    return read === null ? "none" : read.ok ? "" : read.error;
  };
  assert.equal(told(right), "");
  assert.equal(told("Bearer abc"), "none");
  assert.match(told(right.replace("aws4_request", "aws5")), /Credential is not as KEY/);
  assert.match(told(right.replace("20150830", "20150831")), /two days/);
  assert.match(told(right.replace("host;x-amz-date", "x-amz-date;host")), /in their order/);
  assert.match(told(right.replace("host;x-amz-date", "x-amz-date")), /header host is not signed/);
  assert.match(told(right.replace("host;", "host;my-header1;")), /my-header1 was signed and is not there/);
  assert.match(told(right.slice(0, -1)), /64 hexadecimal/);
  assert.match(told(right, request.headers.slice(0, 1)), /one header X-Amz-Date/);
  const unsigned = [...request.headers, ["x-amz-content-sha256", "UNSIGNED-PAYLOAD"] as const];
  assert.match(told(right.replace("host;", "host;x-amz-content-sha256;"), unsigned), /not the SHA-256 of the body/);
  const target = "/?%ff";
  assert.deepEqual(readSigV4({ ...request, target, headers: [...request.headers, ["authorization", right]] }, sha256), {
    ok: false,
    error: "the query is not UTF-8 in percent-encoding",
  });
});
