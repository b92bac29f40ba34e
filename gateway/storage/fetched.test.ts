import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import type { Resolve } from "../ha/names-outside.ts";
import { RefusedError } from "../requests/refused.ts";
import { fetchOutside } from "./fetched.ts";

/*
 * What a stranger may have fetched. Each refusal stands beside one of the same form that is fetched: a guard that refuses everything would be no less
 * wrong than one that refuses nothing. Of this test 127.0.0.2 is the Internet.
 */
const onlyTheSecond = async () => (address: string) => address === "127.0.0.2";
const leadsTo =
  (...addresses: readonly string[]): Resolve =>
  async () =>
    addresses.map((address) => ({ address }));
const never = new AbortController().signal;

async function listening(context: TestContext, address: string, port: number, listener?: RequestListener) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.headers.host} ${request.url}`);
    if (listener !== undefined) listener(request, response);
    else response.writeHead(200, { "content-length": 5 }).end("bytes");
  });
  server.listen(port, address);
  await once(server, "listening");
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { asked, port: (server.address() as AddressInfo).port };
}
const fetched = async (url: string, resolve?: Resolve): Promise<string> => {
  const means = { receivers: onlyTheSecond, ...(resolve === undefined ? {} : { resolve }) };
  const { body, length } = await fetchOutside(url, means, never);
  const bytes = await buffer(body);
  assert.equal(bytes.length, length);
  return bytes.toString();
};
const refusal = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => assert.fail("it was fetched"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(error.refusal.code, "upload/source");
  return `${error.statusCode} ${error.message}`;
};

test("a name that leads inside is not fetched, nor one that leads inside as well; one that leads outside is", async (context) => {
  const outside = await listening(context, "127.0.0.2", 0);
  const inside = await listening(context, "127.0.0.1", outside.port);
  const url = `http://images.example.com:${outside.port}/a?b=1`;
  assert.equal(await fetched(url, leadsTo("127.0.0.2")), "bytes");
  assert.match(await refusal(fetched(url, leadsTo("127.0.0.1"))), /^400 .*not everybody on the Internet reaches/);
  assert.match(await refusal(fetched(url, leadsTo("127.0.0.2", "127.0.0.1"))), /^400 .*not everybody/);
  assert.match(await refusal(fetched(url, leadsTo())), /^400 .*has no address/);
  assert.match(await refusal(fetched(`http://127.0.0.1:${outside.port}/`)), /^400 .*not everybody/);
  assert.match(await refusal(fetched(`http://0x7f.1:${outside.port}/`)), /^400 .*not everybody/);
  assert.equal(await fetched(`http://127.0.0.2:${outside.port}/`), "bytes");
  assert.deepEqual(inside.asked, []);
  assert.deepEqual(outside.asked, [`GET images.example.com:${outside.port} /a?b=1`, `GET 127.0.0.2:${outside.port} /`]);
});

test("a name that leads elsewhere once it was looked at is not asked again", async (context) => {
  const outside = await listening(context, "127.0.0.2", 0);
  const inside = await listening(context, "127.0.0.1", outside.port);
  let looks = 0;
  const resolve: Resolve = async () => {
    looks += 1;
    return [{ address: looks === 1 ? "127.0.0.2" : "127.0.0.1" }];
  };
  assert.equal(await fetched(`http://localhost:${outside.port}/`, resolve), "bytes");
  assert.deepEqual([looks, outside.asked.length, inside.asked.length], [1, 1, 0]);
});

test("a redirect is not followed, and what is no whole answer of a known length is refused; the same with 200 is fetched", async (context) => {
  const answers: Readonly<Record<string, readonly [number, Readonly<Record<string, string | number>>]>> = {
    "/good": [200, { "content-length": 5 }],
    "/redirect": [302, { "content-length": 5, location: "http://127.0.0.1/inside" }],
    "/part": [206, { "content-length": 5 }],
    "/error": [500, { "content-length": 5 }],
    "/endless": [200, {}],
    "/packed": [200, { "content-length": 5, "content-encoding": "gzip" }],
  };
  const outside = await listening(context, "127.0.0.2", 0, ({ url = "" }, response) => {
    const [status, headers] = answers[url] ?? [404, {}];
    response.writeHead(status, headers).end("bytes");
  });
  const of = (path: string) => fetched(`http://127.0.0.2:${outside.port}${path}`);
  assert.equal(await of("/good"), "bytes");
  const said = await refusal(of("/redirect"));
  assert.match(said, /^400 .*answered with 302, and redirects are not followed/);
  assert.doesNotMatch(said, /inside/);
  assert.match(await refusal(of("/part")), /answered with 206, and only 200 has the bytes/);
  assert.match(await refusal(of("/error")), /answered with 500/);
  assert.match(await refusal(of("/endless")), /does not say how long it is/);
  assert.match(await refusal(of("/packed")), /another encoding/);
  assert.match(await refusal(of("/none")), /answered with 404/);
});

test("other protocols and credentials are refused, who does not listen is said, and who asks no more ends it", async (context) => {
  for (const url of ["ftp://127.0.0.2/x", "file:///etc/passwd", "images", "http://"])
    assert.match(await refusal(fetched(url)), /^400 .*begins with https:/, url);
  assert.match(await refusal(fetched("http://ann:secret@127.0.0.2/x")), /^400 .*a user and a password/);
  assert.match(await refusal(fetched("http://127.0.0.2:1/")), /^502 127\.0\.0\.2:1 gives nothing: .*ECONNREFUSED/);
  const silent = await listening(context, "127.0.0.2", 0, () => undefined);
  const gone = new AbortController();
  const url = `http://127.0.0.2:${silent.port}/`;
  const asked = fetchOutside(url, { receivers: onlyTheSecond }, gone.signal);
  setTimeout(() => gone.abort(), 50);
  assert.match(await refusal(asked), /^502 .*gives nothing/);
});

test("nothing is fetched as long as nobody says which addresses are the installation's", async () => {
  const receivers = () =>
    Promise.reject(new Error("the IP Address Manager does not say which external pools there are"));
  await assert.rejects(fetchOutside("http://127.0.0.2:1/", { receivers }, never), /does not say which external pools/);
});
