import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, test } from "node:test";
import { serviceRoles } from "../core/documents/service-roles.ts";
import { peerName } from "../model/cell/identifiers.ts";
import { createTestInstallation, eventually, type TestInstallation } from "./installation.testing.ts";
import type { ProcessConfiguration } from "./installation.ts";

/** Port 53 is fixed, so each process gets an address of its own inside 127.0.0.0/8. */
const addressOf = (number: number): string => `127.${97 + (process.pid % 100)}.${(process.pid >> 8) & 255}.${number}`;

const alive = new Set<ChildProcess>();
const installations: TestInstallation[] = [];
after(async () => {
  for (const child of alive) child.kill("SIGKILL");
  for (const installation of installations) await installation.remove();
});

interface Program {
  readonly output: () => string;
  end(): Promise<number | null>;
}
const start = (file: string): Program => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), file], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  alive.add(child);
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  const exited = once(child, "exit").then(([code]) => {
    alive.delete(child);
    return code as number | null;
  });
  return {
    output: () => output,
    end: () => {
      child.kill("SIGTERM");
      return exited;
    },
  };
};

/** Service roles that are no core role, or that need more than a configuration to run. */
const triedElsewhere: readonly string[] = [
  // Has a program of its own, gateway/main.ts.
  "gateway",
  // The same program: gateway/shared/contract.test.ts.
  "personality.caas",
  // Its process needs the keys that it signs with: identity/authority/authority.test.ts.
  "authority",
];

const starts = (program: Program): number => program.output().split('"process/started"').length - 1;

test("each core role runs as a process and ends in order", async () => {
  const installation = await createTestInstallation("roles");
  installations.push(installation);
  const roles: Record<string, ProcessConfiguration["role"]> = {
    "address-manager": "address-manager",
    "dns-manager": "dns-manager",
    placer: "placer",
    "storage-manager": "storage-manager",
    "presence.1": "presence",
    "controller.shop": "controller",
    directory: "directory",
    "cell-manager": "cell-manager",
    tenancy: "tenancy",
    "ha-manager": "ha-manager",
    "network-view-manager": "network-view-manager",
  };
  const tried = [...Object.values(roles), ...triedElsewhere].sort();
  assert.deepEqual(tried, Object.keys(serviceRoles).sort(), "a new role is tried here as well");
  const controller = {
    cell: "shop",
    cellUid: "shop",
    cellNumber: 1,
    domain: "shop.cells.internal",
    mac: "02:00:00:00:00:01",
    credentialHashes: [],
  };
  const programs: Program[] = [];
  for (const [index, [name, role]] of Object.entries(roles).entries()) {
    const change = { role, address: addressOf(index + 1), ...(role === "controller" ? { controller } : {}) };
    const { file } = await installation.configure(peerName(name), { change });
    programs.push(start(file));
  }
  for (const program of programs) {
    await eventually(`it runs: ${program.output()}`, () => starts(program) > 0);
  }
  for (const program of programs) assert.equal(await program.end(), 0, program.output());
});

test("a service that follows all agents starts again when one is added", async () => {
  const installation = await createTestInstallation("members");
  installations.push(installation);
  const { file } = await installation.configure(peerName("storage-manager"), { change: { role: "storage-manager" } });
  const program = start(file);
  await eventually("it runs", () => starts(program) === 1);
  await installation.configure(peerName("agent.s1"));
  await eventually("it runs again", () => starts(program) === 2);
  await eventually("it looks for the agent", () => program.output().includes('"peer":"agent.s1"'));
  assert.equal(await program.end(), 0, program.output());
});

test("a wrong configuration is said to be wrong", async () => {
  const installation = await createTestInstallation("wrong");
  installations.push(installation);
  const gateway = await installation.configure(peerName("gateway"), { change: { role: "gateway" } });
  const program = start(gateway.file);
  await eventually("it says why", () => /has a program of its own/.test(program.output()));
  const missing = start(join(installation.directory, "nothing.json"));
  await eventually("it says what is missing", () => /nothing\.json.*ENOENT/.test(missing.output()));
});
