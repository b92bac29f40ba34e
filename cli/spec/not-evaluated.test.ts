import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { test } from "node:test";
import type { Bundle } from "../../model/cell/cell.ts";
import { noWalls } from "../../runtime/specification/no-walls.ts";
import { writeClientConfiguration } from "../connection/client-config.ts";

test("a cloud that runs no TypeScript is sent what the specification evaluates to", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-not-evaluated-"));
  const sent: Bundle[] = [];
  const server = createServer(async (request, response) => {
    const bundle = (await json(request)) as Bundle;
    sent.push(bundle);
    const isProgram = bundle.main.endsWith(".ts");
    const diagnostics = [{ code: noWalls, message: "TypeScript is not evaluated here", hint: "Send JSON." }];
    const refusal = { error: { code: "invalid-specification", message: "refused", diagnostics } };
    const planned = { plan: { steps: [] }, version: 0, dryRun: true };
    response.writeHead(isProgram ? 400 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(isProgram ? refusal : planned));
  }).listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const configFile = join(directory, "config.json");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    writeClientConfiguration({ url, credential: "secret" }, configFile);
    const file = join(directory, "shop.ts");
    writeFileSync(
      file,
      'import { cell, vm } from "cells/model";\nexport default cell("shop", { web: vm({ memory: 128 }) });\n',
    );
    const child = spawn(process.execPath, [join(import.meta.dirname, "../main.ts"), "plan", file], {
      env: { ...process.env, CELLS_CONFIG: configFile, CELLS_HOME: join(directory, "testbed") },
    });
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      sent.map(({ main }) => main),
      ["shop.ts", "outcome.json"],
    );
    const { shop } = JSON.parse(sent[1]?.files["outcome.json"] ?? "{}");
    assert.deepEqual([shop["x.type"], shop.web["x.memory"]], ["Cell", 128]);
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
