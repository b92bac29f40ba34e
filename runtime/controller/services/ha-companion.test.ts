import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { hashOfToken } from "../../identity/own/keys.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { haCompanion, haEnrolment } from "./ha-companion.ts";

let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), `cells-ha-companion-${process.pid}-`));
});
after(() => rm(directory, { recursive: true, force: true }));

test("the HA Manager enrols with what the root controller tells the authority; another key is another token", async () => {
  const controller: ProcessConfiguration = {
    name: peerName("controller.root"),
    role: "controller",
    address: "10.0.0.31",
    directory,
    runDirectory: join(directory, "run"),
    peersFile: join(directory, "peers.json"),
    followPeers: true,
    certificate: { certFile: "its own", keyFile: "its own", caFile: "its own" },
    enrolment: { authority: "10.0.0.31:7102", fingerprint: "ab".repeat(32), tokenFile: "its own" },
  };
  const { hash } = await haEnrolment(directory);
  const made = await haCompanion(controller);
  const file = made.enrolment?.tokenFile ?? "";
  assert.equal(hashOfToken(await readFile(file, "utf8")), hash);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await haEnrolment(directory)).hash, hash, "it is the same at every start");
  assert.deepEqual([made.name, made.role, made.httpPort], ["ha-manager", "ha-manager", 7129]);
  for (const own of [made.directory, made.peersFile, file, ...Object.values(made.certificate)])
    assert.ok(own.startsWith(join(directory, "ha-manager")), own);
  await rm(made.certificate.keyFile);
  const { hash: next } = await haEnrolment(directory);
  assert.notEqual(next, hash);
  assert.equal(hashOfToken(await readFile((await haCompanion(controller)).enrolment?.tokenFile ?? "", "utf8")), next);
});
