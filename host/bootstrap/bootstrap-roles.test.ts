import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bootstrapRoles } from "../../core/bootstrap/bootstrap-model.ts";
import { ipv4, peerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { birthConfigurations, birthFiles } from "./bootstrap-roles.ts";

test("the process of a birth knows one host; its successors in the VM wait for the authority's book", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cells-birth-roles-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const credentialFile = join(directory, "credential");
  await writeFile(credentialFile, "c".repeat(43));
  const hosts = { "host.h1": "127.0.0.1", "host.h2": "127.0.0.2", "host.h3": "127.0.0.3" };
  const configuration: ProcessConfiguration = {
    name: peerName("host.h1"),
    role: "host",
    address: ipv4("127.0.0.1"),
    directory,
    runDirectory: directory,
    peersFile: join(directory, "peers.json"),
    certificate: { certFile: "", keyFile: "", caFile: "" },
    bootstrap: {
      specificationFile: "",
      authorityDirectory: join(directory, "authority"),
      credentialFile,
      peers: hosts,
    },
  };
  const hostsIn = (book: { readonly peers: object }): readonly string[] =>
    Object.keys(book.peers).filter((name) => name.startsWith("host."));

  const roles = await birthConfigurations(configuration, ipv4("127.0.0.31"));
  const files = await birthFiles(configuration);
  assert.deepEqual(
    roles.map(({ role }) => role),
    bootstrapRoles,
  );
  for (const { role, peersFile } of roles) {
    const own = JSON.parse(await readFile(peersFile, "utf8"));
    assert.deepEqual(hostsIn(own), ["host.h1"], `${role} as a process`);
    if (role === "authority") continue;
    const inVm = JSON.parse(String(files[`birth/${role}/peers.json`]));
    assert.deepEqual(inVm, { peers: { authority: own.peers.authority } }, `${role} in the VM`);
  }
});
