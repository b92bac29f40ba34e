import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Testbed, withTestbedDirectory } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { bootstrapProgress, rootSpecification } from "../self-hosted.ts";
import { processesOf, tenant, untilAllReady, vmState } from "./self-hosted.testing.ts";

/**
 * The profile `large`, each service in a VM of its own: only with `./cells test --all`, since its
 * twelve service VMs keep two cores of emulated processors busy for many minutes. Its `cells up` is killed at each step;
 * a second Placer and Storage Manager come by the root specification and go by it; cells stand within cells.
 */
const patience = 900;
const cli = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));
const hosts = ["h1", "h2", "h3", "h4"];

interface Running {
  readonly ended: Promise<number | null>;
  readonly kill: () => void;
  readonly said: () => string;
}
/** `cells up` as a person runs it, so that it can be killed. */
const startUp = (t: Testbed): Running => {
  const args = ["up", "--profile", "large", "--hosts", String(hosts.length), "--servers", "1"];
  const child = spawn(process.execPath, [cli, ...args], {
    env: { ...process.env, CELLS_HOME: t.at.directory, CELLS_CONFIG: t.configFile, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (more) => (text += more));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { ended, kill: () => void child.kill("SIGKILL"), said: () => text };
};

/** Killed as soon as each of these is so, and run again. */
const upKilledAtEachStep = async (t: Testbed, reached: (what: string) => void): Promise<void> => {
  const steps = () => bootstrapProgress(t.at)?.steps.length ?? 0;
  const moments: readonly (readonly [string, (said: string) => boolean])[] = [
    ["it has said its first word", (said) => said.includes("\n")],
    ["the hosts answer", (said) => /h1 answers/.test(said)],
    ...[1, 2, 3, 4].map((count) => [`the birth has come to step ${count}`, () => steps() >= count] as const),
  ];
  for (const [what, holds] of moments) {
    const running = startUp(t);
    const code = await Promise.race([
      until(what, () => Promise.resolve(running.said()), holds, patience).then(() => null),
      running.ended,
    ]);
    if (code !== null) throw new Error(`cells up ended with ${code} before ${what}:\n${running.said()}`);
    running.kill();
    await running.ended;
    reached(`killed \`cells up\` when ${what}`);
  }
  const last = startUp(t);
  assert.equal(await last.ended, 0, last.said());
  reached("up");
};

const services = ["core1", "addresses", "names", "directory", "cellManager", "presence1", "presence2", "presence3"];

const nothingElseOnTheHosts = async (t: Testbed): Promise<void> => {
  const members = (await t.members()).map(({ name }) => name);
  assert.deepEqual(members, ["s1", ...hosts]);
  for (const host of hosts) assert.deepEqual(await processesOf(t, host, "bootstrap-main"), []);
};

/** An element that comes into the root specification brings a service, and takes it away when it goes. */
const comesAndGoes = async (t: Testbed, reached: (what: string) => void): Promise<void> => {
  const file = rootSpecification(t.at, "large");
  const before = readFileSync(file, "utf8");
  const more = `  more extends Service {
    address "10.0.0.44";
    memory 256;
    cpus 2;
    roles extends { placer extends { number 2; } storage-manager extends { number 2; } }
  }
}
`;
  writeFileSync(file, before.trimEnd().replace(/\}$/, more));
  await cells(t, "apply", file, "--yes", "--timeout", String(patience));
  const { host, uid } = await vmState(t, "root/more/vm");
  reached("a second Placer and a second Storage Manager are VMs of the root cell");
  const one = join(dirname(t.configFile), "one.sf");
  writeFileSync(one, tenant("one"));
  await until(
    "a cell is made",
    () => t.cells(["apply", one, "--yes"]),
    ({ code }) => code === 0,
    patience,
  );
  assert.match(await cells(t, "status"), /one .*\(Placer 2, Storage Manager 2\)/);
  reached("a new cell goes by them");
  await cells(t, "delete", "one", "--yes", "--allow-destroy", "one/boot");
  writeFileSync(file, before);
  await cells(
    t,
    "apply",
    file,
    "--yes",
    "--allow-destroy",
    "root/more/boot,root/more/data",
    "--timeout",
    String(patience),
  );
  assert.equal(await stateOf(t, "root/more/vm"), null);
  assert.deepEqual(await processesOf(t, host, `^qemu-system.*guest=cells-${uid}-`), []);
  for (const name of services) assert.equal((await vmState(t, `root/${name}/vm`)).incarnation ?? 1, 1, name);
  reached("they are gone with their element");
};

/** Three cells, each in the one before. */
const middle = (vms: number, more = ""): string => `
middle extends Cell {
  x.limits.vms ${vms};
  ${more}
  inner extends CellController { x.name "inner"; x.cell extends {
    inner extends Cell {
      golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
      boot extends VolumeCopy { x.image "<ref:/inner/golden>"; }
      vm extends VM { x.memory 96; }
      disk extends VolumeConnection { x.vm "<ref:/inner/vm>"; x.volume "<ref:/inner/boot>"; x.bootOrder 0; }
    }
  } }
}
`;
const outer = `
${tenant("outer").trimEnd().replace(/\}$/, "")}
  middle extends CellController { x.name "middle"; x.cell extends { ${middle(3)} } }
}
`;
const cellsWithinCells = async (t: Testbed, reached: (what: string) => void): Promise<void> => {
  const file = join(dirname(t.configFile), "outer.sf");
  writeFileSync(file, outer);
  await until(
    "the cells are made",
    () => t.cells(["apply", file, "--yes"]),
    ({ code }) => code === 0,
    patience,
  );
  for (const cell of ["outer", "middle.outer", "inner.middle.outer"]) await untilAllReady(t, cell, patience);
  reached("a cell in a cell in a cell is as declared");
  const controllers = ["outer", "middle-outer", "inner-middle-outer"].map((name) => `root/controllers/${name}/vm`);
  const states = await Promise.all([...controllers, "inner.middle.outer/vm"].map((path) => vmState(t, path)));
  // Its own people look after it, with the whole name.
  const child = join(dirname(t.configFile), "middle.sf");
  writeFileSync(child, middle(4));
  const refused = await t.cells(["apply", child, "--cell", "middle.outer", "--yes"]);
  assert.match(refused.stderr, /its parent outer lets it have no more/);
  writeFileSync(child, middle(3, "spare extends Subnet { x.size 16; }"));
  await cells(t, "apply", child, "--cell", "middle.outer", "--yes");
  reached("a child cell is changed under its whole name");
  await cells(t, "delete", "outer", "--yes", "--allow-destroy", "outer/boot");
  reached("the outermost is deleted");
  for (const { host, uid } of states)
    await until(
      `${uid} runs no more`,
      () => processesOf(t, host, `^qemu-system.*guest=cells-${uid}-`),
      (pids) => pids.length === 0,
      patience,
    );
  await until(
    "nothing is left of them",
    () => t.cells(["get", "--output", "json"]),
    ({ code, stdout }) => code === 0 && !/"(outer|middle|inner)"/.test(stdout),
    patience,
  );
  reached("nothing is left of them");
};

test("each service in a VM of its own", async (context) => {
  const start = performance.now();
  const reached = (what: string): void =>
    context.diagnostic(`${((performance.now() - start) / 1000).toFixed(0)} s: ${what}`);
  await withTestbedDirectory({ profile: "large", hosts: hosts.length, servers: 1 }, async (t) => {
    await upKilledAtEachStep(t, reached);
    await untilAllReady(t, "root", patience);
    for (const name of services) assert.equal((await vmState(t, `root/${name}/vm`)).phase, "ready");
    await nothingElseOnTheHosts(t);
    reached("the root cell is as declared");
    await comesAndGoes(t, reached);
    await cellsWithinCells(t, reached);
  });
});
