import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { peerRequest, servePeers } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { createHostEdge } from "../edge.ts";

/* What controllers ask a host about packets, over real TLS: each cell so often, and none more seldom for another's questions. */
let root = "";
const places = { "host.h1": 1, "controller.shop": 2, "controller.bank": 3 } as const;
const address = (name: keyof typeof places): string =>
  `127.${120 + (process.pid % 60)}.${(process.pid >> 6) % 250}.${100 + places[name]}`;
const configure = async (
  name: keyof typeof places,
  role: ProcessConfiguration["role"],
): Promise<ProcessConfiguration> => {
  const directory = join(root, name);
  await mkdir(directory);
  return {
    name: peerName(name),
    role,
    address: address(name),
    directory,
    runDirectory: directory,
    certificate: await issueCertificate(join(root, "ca"), peerName(name), [address(name)]),
    peersFile: join(root, "peers.json"),
  };
};
before(async () => {
  root = await mkdtemp(join(tmpdir(), `cells-questions-${process.pid}-`));
  await createAuthority(join(root, "ca"));
  const names = Object.keys(places) as (keyof typeof places)[];
  const peers = Object.fromEntries(names.map((name) => [name, address(name)]));
  await writeFile(join(root, "peers.json"), JSON.stringify({ peers }));
});
after(() => rm(root, { recursive: true, force: true }));

test("a cell that asks about packets too often is refused with a sentence, another cell is not, and it is answered again later", async () => {
  let [nowMs, examined] = [0, 0];
  const network = {
    examine: async () => {
      examined += 1;
      return [{ check: "rule", passes: true, detail: "lets it pass" }];
    },
  };
  const questions = { perSecond: 2, atOnce: 5 };
  const server = await servePeers(
    await configure("host.h1", "host"),
    createHostEdge({ network, questions, now: () => nowMs } as never),
  );
  try {
    const [shop, bank] = [
      await configure("controller.shop", "controller"),
      await configure("controller.bank", "controller"),
    ];
    const body = { side: "sender", source: "10.1.0.9", destination: "10.1.0.25", protocol: "tcp", port: 22 };
    const ask = async (asker: ProcessConfiguration) => {
      const options = { method: "POST", path: "/examine", body: JSON.stringify(body) } as const;
      const answer = await peerRequest(asker, peerName("host.h1"), options);
      return { status: answer.status, text: await answer.text() };
    };
    const many = await Promise.all(Array.from({ length: 12 }, () => ask(shop)));
    assert.equal(many.filter(({ status }) => status === 200).length, 5);
    assert.equal(examined, 5);
    const refused = many.find(({ status }) => status !== 200) ?? assert.fail();
    assert.equal(refused.status, 429);
    assert.match(refused.text, /"busy","message":"controller\.shop asks this host about packets too often/);
    assert.equal((await ask(bank)).status, 200, "another cell");
    nowMs += 1_000;
    const later = [await ask(shop), await ask(shop), await ask(shop)];
    assert.deepEqual(
      later.map(({ status }) => status),
      [200, 200, 429],
    );
  } finally {
    await server.stop();
  }
});
