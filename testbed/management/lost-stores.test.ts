import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { BinList, InstallationStatus } from "../../model/api.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import * as lab from "../lab.testing.ts";
import { memberDirectory } from "../places.ts";

/**
 * Stores are lost and put back from older copies while a guest writes to its volume: the Storage Manager's, its cell's
 * controller's, a storage agent's. Its machine runs on where that is promised, what it wrote is there in the end,
 * and no file of a volume goes, also not that of a volume that was deleted. One testbed and one guest serve all steps.
 */
const hosts = ["h1", "h2"] as const;
const servers = ["s1", "s2"] as const;
const [vm] = lab.machines;
const disk = `${dirname(vm)}/bootvol`;
const controller = "controller.lab";
const older = /lost or is older than what .* holds: nothing is changed or started/;

interface Scene {
  readonly t: Testbed;
  /** Of all stores; made after the Storage Manager's was lost. */
  readonly backup: string;
  readonly secret: string;
  /** Where the guest's volume lies. */
  readonly server: string;
  /** The mark beside the volumes' files of that server when the backup was there. */
  mark: string;
}

const machineOf = (power: "on" | "off"): string => `
  one extends {
    bootvol extends VolumeCopy { x.image "<ref:/lab/golden>"; }
    vm extends VM { x.memory 128; x.restartOnFailure true; x.desiredState "${power}"; }
    disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../bootvol>"; x.bootOrder 0; }
  }`;
const early = "early extends Volume { x.size 8; }";
const write = (t: Testbed, elements: string): string => {
  const file = join(dirname(t.configFile), "lab.sf");
  const golden = 'golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }';
  writeFileSync(file, `lab extends Cell { ${golden} ${elements} }\n`);
  return file;
};
const apply = (t: Testbed, elements: string, ...options: readonly string[]): Promise<string> =>
  lab.cells(t, "apply", write(t, elements), "--yes", ...options);

const dataOf = ({ at }: Testbed, member: string): string => join(memberDirectory(at, member), "data");
const restoreOne = ({ t, backup, secret }: Scene, name: string): Promise<string> =>
  lab.cells(t, "management", "restore", backup, "--only", name, "--passphrase-file", secret, "--yes");

const why = (t: Testbed, path: string, pattern: RegExp): Promise<string> =>
  lab.until(
    `\`cells why ${path}\` says ${pattern}`,
    async () => {
      const { stdout, stderr } = await t.cells(["why", path]);
      return stdout + stderr;
    },
    (said) => pattern.test(said),
  );
const untilAsDeclared = (t: Testbed): Promise<string> => why(t, vm, /is as declared/);
const untilNothingIsLeft = (t: Testbed): Promise<string> =>
  lab.until(
    "every store is whole",
    () => lab.cells(t, "orphans", "list"),
    (said) => /nothing is left over/.test(said),
  );
const binOf = async (t: Testbed): Promise<BinList["files"]> =>
  (JSON.parse(await lab.cells(t, "bin", "list", "--output", "json")) as BinList).files;

/** The files of volumes, those in the bins among them. A file that is renamed keeps its inode. */
const filesOf = (t: Testbed): readonly string[] =>
  servers.flatMap((server) =>
    ["volumes", "volumes/bin"].flatMap((directory) => {
      const path = join(dataOf(t, server), directory);
      const names = readdirSync(path).filter((name) => name.endsWith(".qcow2"));
      return names.map((name) => `${server} ${statSync(join(path, name)).ino}`);
    }),
  );
const assertNoneIsGone = (t: Testbed, before: readonly string[]): void => {
  const now = new Set(filesOf(t));
  assert.deepEqual(
    before.filter((file) => !now.has(file)),
    [],
    "files of volumes are gone",
  );
};

/** What runs: machines with their boots, and exports with their epochs. */
const runningOf = async (t: Testbed): Promise<Readonly<Record<string, readonly string[]>>> => {
  const all = Object.entries(await lab.inventory(t, hosts, servers));
  return Object.fromEntries(all.filter(([what]) => / (machines|exports)$/.test(what)));
};
const bootOf = (t: Testbed): Promise<string> =>
  lab.untilInGuest(t, vm, "cat /proc/sys/kernel/random/boot_id", /^[0-9a-f-]{36}\n$/);

/** Whatever `lose` does, the guest is the same one, it goes on writing where it was, and no file goes. */
const runsOn = async ({ t }: Scene, lose: () => Promise<void>): Promise<void> => {
  const [files, running, boot, least] = [filesOf(t), await runningOf(t), await bootOf(t), await lab.durable(t, vm)];
  await lose();
  assert.deepEqual(await runningOf(t), running, "nothing was ended or started");
  assert.equal(await bootOf(t), boot, "the guest is the one that ran before");
  await lab.assertWritten(t, vm, least);
  assertNoneIsGone(t, files);
};

/** The Storage Manager finds all volumes again, and a new one gets a place. */
const loseStorageManager = (scene: Scene): Promise<void> =>
  runsOn(scene, async () => {
    const { t } = scene;
    await t.stop("storage-manager");
    const data = dataOf(t, "storage-manager");
    rmSync(data, { recursive: true });
    mkdirSync(data);
    await t.start("storage-manager");
    await apply(t, `${machineOf("on")} ${early}`);
    await untilAsDeclared(t);
    await lab.cells(t, "management", "backup", scene.backup, "--passphrase-file", scene.secret);
    scene.mark = markOf(t, scene.server);
  });

/** What all of these know follows from what others say, so an operator only lets them count. */
const loseOthers = (scene: Scene): Promise<void> =>
  runsOn(scene, async () => {
    const { t } = scene;
    const members = ["placer", "address-manager", "dns-manager", "directory", "presence.1", "presence.2", "presence.3"];
    for (const member of members) await t.stop(member);
    for (const member of members) {
      rmSync(dataOf(t, member), { recursive: true });
      mkdirSync(dataOf(t, member));
    }
    for (const member of members) await t.start(member);
    await untilAsDeclared(t);
    // Whoever desires something there keeps what such a service does not say any more, until somebody has looked.
    await lab.until(
      "every store counts",
      async () => {
        for (const member of members) await lab.releaseOrphans(t, member);
        return lab.cells(t, "orphans", "list");
      },
      (said) => /nothing is left over/.test(said),
    );
    await lab.until(
      "every host is there again",
      async () => JSON.parse(await lab.cells(t, "status", "--output", "json")) as InstallationStatus,
      (status) => hosts.every((name) => status.hosts.find(({ host }) => host === name)?.presence?.state === "up"),
    );
    // The Placer is asked in the next steps.
    await apply(t, `${machineOf("on")} net extends Subnet { x.size 16; }`);
    await apply(t, machineOf("on"));
  });

/** A blank controller stands still and says so; once its store is back it goes on by itself. */
const loseController = (scene: Scene): Promise<void> =>
  runsOn(scene, async () => {
    const { t } = scene;
    const [running, data] = [await runningOf(t), dataOf(t, controller)];
    await t.stop(controller);
    renameSync(data, `${data}.away`);
    mkdirSync(data);
    await t.start(controller);
    await why(t, vm, older);
    assert.match(await lab.cells(t, "status"), /the store of controller\.lab was lost or is older/);
    await lab.until(
      "`cells events` says so",
      () => lab.cells(t, "events", "--service", controller, "--since", "1h"),
      (said) => /controller\/forked/.test(said),
    );
    const refused = await t.cells(["apply", write(t, machineOf("off")), "--yes"]);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, older);
    assert.deepEqual(await runningOf(t), running, "a controller that knows nothing ends nothing");
    await t.stop(controller);
    rmSync(data, { recursive: true });
    renameSync(`${data}.away`, data);
    await t.start(controller);
    await untilAsDeclared(t);
  });

/** An older store counts when an operator says so. What it does not know of stays until it is ended, and then lies in the bin. */
const putBackController = async (scene: Scene): Promise<void> => {
  const { t } = scene;
  await runsOn(scene, async () => {
    await apply(t, `${machineOf("on")} ${early} late extends Volume { x.size 8; }`);
    await t.stop(controller);
    await restoreOne(scene, controller);
    await t.start(controller);
    await why(t, vm, older);
    await lab.releaseOrphans(t, controller);
    await untilAsDeclared(t);
    await lab.until(
      "the volume that it does not know of stays",
      () => lab.cells(t, "orphans", "list"),
      (said) => /storage-manager: .*\n {2}not repeated: volume\//.test(said),
    );
    assert.deepEqual(await binOf(t), []);
  });
  const files = filesOf(t);
  await lab.cells(t, "orphans", "end", "storage-manager", controller, "--all");
  await lab.until(
    "the volume that nobody wants any more is in the bin",
    () => binOf(t),
    (bin) => bin.some(({ path }) => path === "lab/late"),
  );
  await untilNothingIsLeft(t);
  assertNoneIsGone(t, files);
};

/** As after a boot of the server: no export runs, and its store would start those of the time of the backup. */
const putBackServer = async (scene: Scene): Promise<void> => {
  const { t, server, mark } = scene;
  await lab.until(
    "the server has been seen later than it was in the backup",
    async () => markOf(t, server),
    (now) => now !== mark,
  );
  const [files, least] = [filesOf(t), await lab.durable(t, vm)];
  const { incarnation = 0 } = (await lab.stateOf(t, vm)) ?? {};
  await t.stop(server);
  assert.ok((await lab.signalExports(t, server, "KILL")) > 0);
  await restoreOne(scene, `agent.${server}`);
  await t.start(server);
  await why(t, vm, new RegExp(`storage server ${server} is older than others know it`));
  assert.deepEqual((await runningOf(t))[`${server} exports`], [], "nothing starts from an older store");
  assert.match(await lab.cells(t, "server", "adopt", server), /goes on with what it has: \d+ leases? ha(s|ve) ended/);
  await apply(t, machineOf("off"), "--allow-destroy", "lab/early");
  await apply(t, machineOf("on"));
  await lab.untilReady(t, vm, incarnation + 1);
  await lab.writesOn(t, vm, least);
  assertNoneIsGone(t, files);
};

const bringBackVolume = async ({ t }: Scene): Promise<void> => {
  const [files, least] = [filesOf(t), await lab.durable(t, vm)];
  await apply(t, "", "--allow-destroy", disk);
  const bin = await lab.until(
    "the deleted volume is in the bin",
    () => binOf(t),
    (found) => found.some(({ path }) => path === disk),
  );
  assertNoneIsGone(t, files);
  const found = bin.find(({ path }) => path === disk);
  assert.match(await lab.cells(t, "bin", "restore", `${found?.server}/${found?.file}`), /begins with/);
  await apply(t, machineOf("on"));
  await lab.writesOn(t, vm, least);
  assertNoneIsGone(t, files);
};

/** Empty: there is none yet. */
const markOf = (t: Testbed, server: string): string => {
  try {
    return readFileSync(join(dataOf(t, server), "volumes", "mark.json"), "utf8");
  } catch {
    return "";
  }
};

const setScene = async (t: Testbed): Promise<Scene> => {
  const [backup, secret] = ["cells.backup", "passphrase"].map((name) => join(dirname(t.configFile), name)) as [
    string,
    string,
  ];
  writeFileSync(secret, "four words make one\n", { mode: 0o600 });
  await apply(t, machineOf("on"));
  await lab.startWriting(t, vm);
  const server = (await lab.stateOf(t, disk))?.server ?? "";
  assert.ok(server);
  return { t, backup, secret, server, mark: "" };
};

test("stores are lost or put back while a guest writes, and nothing that it wrote goes", {
  skip: process.getuid?.() === 0 ? false : "needs root",
}, async (context: TestContext) => {
  await withTestbed({ hosts: 2, servers: 2 }, async (t) => {
    const scene = await setScene(t);
    const steps: readonly (readonly [string, (scene: Scene) => Promise<void>])[] = [
      // Before the backup: a store of before would know of theirs that are gone.
      ["the stores of all derived services are gone: they find back by themselves", loseOthers],
      ["the Storage Manager's store is gone: it finds every volume again, and the guest runs on", loseStorageManager],
      ["the controller's store is gone: it stands still, and goes on when the store is back", loseController],
      ["the controller's store is an older one: it counts when an operator says so", putBackController],
      ["a storage agent's store is an older one: nothing starts from it until it is adopted", putBackServer],
      ["a deleted volume comes back from the bin with what was on it", bringBackVolume],
    ];
    for (const [name, step] of steps) {
      // For one who looks into a single step.
      const only = process.env.CELLS_STEP;
      if (only === undefined || new RegExp(only).test(name)) await context.test(name, () => step(scene));
    }
  });
});
