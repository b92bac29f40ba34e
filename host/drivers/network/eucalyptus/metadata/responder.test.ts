import assert from "node:assert/strict";
import { request } from "node:http";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { type InstanceFacts, metadataAt } from "./answers.ts";
import { type Responder, startResponder } from "./responder.ts";

const facts: InstanceFacts = {
  instance: "i-a7f05959",
  address: "10.9.0.10",
  mac: "d0:0d:a7:f0:59:59",
  hostName: "web",
  cluster: "one",
  publicAddress: "192.0.2.1",
  data: {
    userData: "#!/bin/sh\necho hello\n",
    publicKeys: { ann: "ssh-ed25519 AAAA ann", bob: "ssh-ed25519 BBBB bob", broken: 7 },
    password: "never told",
  },
};

test("an instance is told its id, addresses, keys and user data by the paths of EC2, and nothing else of its data", () => {
  const rows: readonly (readonly [path: string, said: string | null])[] = [
    ["/", "1.0\n2009-04-04\nlatest"],
    ["/latest", "meta-data/\nuser-data"],
    [
      "/latest/meta-data/",
      "hostname\ninstance-id\nlocal-hostname\nlocal-ipv4\nmac\nplacement/\npublic-ipv4\npublic-keys/",
    ],
    ["/2009-04-04/meta-data/instance-id", "i-a7f05959"],
    ["/latest/meta-data/local-ipv4", "10.9.0.10"],
    ["/latest/meta-data/public-ipv4", "192.0.2.1"],
    ["/latest/meta-data/mac", "d0:0d:a7:f0:59:59"],
    ["/latest/meta-data/placement/availability-zone", "one"],
    ["/latest/meta-data/public-keys", "0=ann\n1=bob"],
    ["/latest/meta-data/public-keys/1/", "openssh-key"],
    ["/latest/meta-data/public-keys/1/openssh-key", "ssh-ed25519 BBBB bob"],
    ["/latest/meta-data/public-keys/2/openssh-key", null],
    ["/latest/user-data", "#!/bin/sh\necho hello\n"],
    ["/latest/user-data?x=1", "#!/bin/sh\necho hello\n"],
    ["/latest/user-data/more", null],
    ["/latest/password", null],
    ["/latest/meta-data/../../password", null],
    ["/latest/meta-data/%2e%2e/user-data", null],
    ["/latest/__proto__/constructor", null],
    ["/2030-01-01/meta-data", null],
    [`/latest/${"meta-data/".repeat(5000)}`, null],
  ];
  for (const [path, said] of rows) assert.equal(metadataAt(facts, path), said, path.slice(0, 60));
  const bare: InstanceFacts = { ...facts, data: "text" };
  assert.equal(metadataAt(bare, "/latest"), "meta-data/");
  assert.equal(metadataAt(bare, "/latest/user-data"), null);
  const { publicAddress: _, ...inside } = facts;
  assert.equal(metadataAt(inside, "/latest/meta-data/public-ipv4"), null);
});

let responder: Responder;
let asked: string[] = [];
before(async () => {
  const started = await startResponder({
    port: 0,
    log: () => undefined,
    factsOf: async (address) => {
      asked.push(address);
      if (address === "127.0.0.9") throw new Error("the manager has ended");
      return address === "127.0.0.2" ? facts : null;
    },
  });
  assert.ok(started !== null);
  responder = started;
});
after(() => responder.close());

const ask = (
  from: string,
  { path = "/latest/meta-data/instance-id", method = "GET", ...headers }: Record<string, string> = {},
): Promise<readonly [status: number, text: string]> =>
  new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: responder.port, localAddress: from, path, method, agent: false };
    const asking = request({ ...options, headers: { host: "169.254.169.254", ...headers } }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => resolve([response.statusCode ?? 0, text]));
    });
    asking.on("error", reject);
    asking.end();
  });

test("who asks is known by the connection alone, and is told of nobody else", async () => {
  asked = [];
  assert.deepEqual(await ask("127.0.0.2"), [200, "i-a7f05959"]);
  assert.deepEqual(await ask("127.0.0.2", { method: "HEAD" }), [200, ""]);
  assert.deepEqual(await ask("127.0.0.2", { host: "169.254.169.254:80" }), [200, "i-a7f05959"]);
  assert.equal((await ask("127.0.0.3"))[0], 404, "no instance");
  assert.equal((await ask("127.0.0.9"))[0], 503, "nobody knows now");
  assert.deepEqual(asked, ["127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.9"]);
  asked = [];
  // What a request says of itself, and by which ways it may be made by others.
  for (const headers of [
    { "x-forwarded-for": "127.0.0.2" },
    { forwarded: "for=127.0.0.2" },
    { via: "1.1 proxy" },
    { host: "metadata.evil.example" },
  ])
    assert.equal(
      (await ask("127.0.0.2", headers as unknown as Record<string, string>))[0],
      403,
      JSON.stringify(headers),
    );
  for (const method of ["PUT", "POST", "DELETE"]) assert.equal((await ask("127.0.0.2", { method }))[0], 405, method);
  assert.deepEqual(asked, []);
});

test("an instance that opens many connections is answered on a few, and others are answered", async () => {
  const sockets = Array.from({ length: 40 }, () =>
    connect({ host: "127.0.0.1", port: responder.port, localAddress: "127.0.0.4" }),
  );
  for (const socket of sockets) socket.on("error", () => undefined);
  const ended = (): number => sockets.filter(({ destroyed }) => destroyed).length;
  for (const socket of sockets) socket.resume();
  for (let looks = 0; looks < 400 && ended() < 32; looks += 1) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(ended(), 32);
  assert.deepEqual(await ask("127.0.0.2"), [200, "i-a7f05959"]);
  for (const socket of sockets) socket.destroy();
});
