import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientRequest, createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { eventually } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { createPeerBook, fixedPeers, isPeersQuestion, type PeerBookLimits, peerBookLimits } from "./peer-book.ts";

const closing: (() => void)[] = [];
after(() => {
  for (const close of closing) close();
});

/** A service that knows a book, the handler in front of it, and who asks, named in a header in place of a certificate. */
const serve = async (
  limits: Partial<PeerBookLimits> = {},
  peers: Readonly<Record<string, string>> = { placer: "10.0.0.13" },
) => {
  let book = { version: 1, peers };
  let asked = 0;
  let waiting: (() => void) | null = null;
  const served = createPeerBook(
    {
      request: async (asking: Json) => {
        asked += 1;
        while ((asking as { known: number }).known === book.version)
          await new Promise<void>((resolve) => {
            waiting = resolve;
          });
        return { kind: "peers", ...book };
      },
    },
    async () => undefined,
    { ...peerBookLimits, gatherMs: 5, ...limits },
  );
  const server = createServer((incoming, response) => {
    const { method = "", url = "", headers } = incoming;
    const peer = peerName(String(headers["x-peer"]));
    void served.answer({ peer, method, url, headers, body: incoming, raw: incoming }, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => {
    served.stop();
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const open = (peer: string, known: number | string, method = "GET"): ClientRequest => {
    const headers = { "x-peer": peer };
    const asking = request({ host: "127.0.0.1", port, method, path: `/peers?known=${known}`, headers, agent: false });
    asking.on("error", () => undefined);
    asking.end();
    return asking;
  };
  const ask = async (peer: string, known: number | string, method = "GET") => {
    const [response] = (await once(open(peer, known, method), "response")) as [IncomingMessage];
    const body = await text(response);
    return { status: response.statusCode, body: body === "" ? null : (JSON.parse(body) as { version?: number }) };
  };
  return {
    ask,
    open,
    asked: () => asked,
    followers: () => served.measure()[0]?.samples[0]?.value,
    change: (peers: Record<string, string>) => {
      book = { version: book.version + 1, peers };
      waiting?.();
    },
  };
};

test("who knows an older book gets the new one at once, and who knows this one when there is another", async () => {
  const { ask, change, followers, asked } = await serve();
  for (const known of [-1, 0, 7, "x", ""])
    assert.deepEqual(await ask("placer", known), {
      status: 200,
      body: { version: 1, peers: { placer: "10.0.0.13" } },
    });
  const names = Array.from({ length: 30 }, (_, at) => `host.h${at}`);
  const waiting = names.map((name) => ask(name, 1));
  await eventually("they wait", () => followers() === names.length);
  assert.equal(asked(), 2, "one question to the service stands for all");
  change({ placer: "10.0.0.14" });
  change({ placer: "10.0.0.15" });
  for (const answer of await Promise.all(waiting))
    assert.deepEqual(answer, { status: 200, body: { version: 3, peers: { placer: "10.0.0.15" } } });
  assert.equal(followers(), 0);
});

test("an unchanged book ends the wait, and so does the peer's next question or its end", async () => {
  const { ask, open, followers } = await serve({ holdMs: 30 });
  assert.deepEqual(await ask("placer", 1), { status: 204, body: null });
  const patient = await serve();
  const first = patient.ask("placer", 1);
  await eventually("it waits", () => patient.followers() === 1);
  const second = patient.open("placer", 1);
  assert.equal((await first).status, 204);
  assert.equal(patient.followers(), 1);
  second.destroy();
  await eventually("nobody waits", () => patient.followers() === 0);
  open("placer", 1).destroy();
  await eventually("nobody waits there either", () => followers() === 0);
});

test("strangers, other methods and too many are refused", async () => {
  const { ask, open, followers, change } = await serve({ followers: 2 });
  for (const stranger of ["gateway.shop", "nobody", "controller."]) assert.equal((await ask(stranger, -1)).status, 403);
  assert.equal((await ask("placer", -1, "PUT")).status, 405);
  for (const name of ["host.h1", "host.h2"]) open(name, 1);
  await eventually("two wait", () => followers() === 2);
  assert.equal((await ask("host.h3", 1)).status, 503);
  const again = ask("host.h2", 1);
  change({});
  assert.equal((await again).status, 200, "who waits already may ask again");
});

/** More than both ends' buffers take. */
const large = Object.fromEntries(Array.from({ length: 400_000 }, (_, at) => [`host.h${at}`, "10.0.0.1"]));
/** Its answer has begun, and is not read any further. */
const begun = async (asking: ClientRequest): Promise<ClientRequest> => {
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  response.pause();
  return asking;
};

test("only so many books are under way", async () => {
  const { ask, open, followers } = await serve({ sending: 2 }, large);
  const [first] = await Promise.all(["host.h1", "host.h2"].map((name) => begun(open(name, 0))));
  const last = ask("host.h3", 0);
  await eventually("one is behind them", () => followers() === 1);
  first?.destroy();
  assert.equal((await last).body?.version, 1);
});

test("a book that is not taken gives its place to the next", async () => {
  const { open } = await serve({ sending: 1, sendMs: 200 }, large);
  await begun(open("host.h1", 0));
  await begun(open("host.h2", 0));
});

test("the authority says where it is itself, at ports of its own or the usual ones", () => {
  const at = (change: Partial<ProcessConfiguration>) =>
    fixedPeers({ name: "authority", address: "10.0.0.31", ...change } as unknown as ProcessConfiguration);
  assert.deepEqual(at({}), { authority: "10.0.0.31" });
  assert.deepEqual(at({ httpPort: 7125 }), { authority: "10.0.0.31:7100:7125" });
  const peers = { "host.h1": "10.0.1.1", authority: "10.0.0.9" };
  assert.deepEqual(at({ distributionPort: 7124, httpPort: 7125, authority: { peers } }), {
    authority: "10.0.0.31:7124:7125",
    "host.h1": "10.0.1.1",
  });
  assert.ok(isPeersQuestion("/peers?known=1") && isPeersQuestion("/peers") && !isPeersQuestion("/peersx"));
});
