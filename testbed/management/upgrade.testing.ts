import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ElementState } from "../../model/api.ts";
import type { ImageManifest } from "../../runtime/installation.ts";
import type { Testbed } from "../harness.ts";
import { cells, stateOf, until } from "../lab.testing.ts";
import { cacheDirectory, memberDirectory } from "../places.ts";
import { rootSpecification } from "../self-hosted.ts";
import { killMachine, pingsLost, processesOf, startPings, untilAllReady, vmState } from "./self-hosted.testing.ts";

/**
 * A new service image in a cloud that runs in itself (decision 34): it goes in service by service while two machines of a
 * tenant ping each other, and goes back by itself where it does not come up; in the VM of the root controller, too. The
 * gateway, in a cell of its own, follows when all others have it.
 */
const patience = 600;

/** An image as an operator brings it in: under its own name, on the storage server. A word on the kernel's command line tells it from others. */
const bringIn = (t: Testbed, name: string, change: (directory: string) => void = () => undefined): void => {
  const directory = join(memberDirectory(t.at, "s1"), "data", "images", name);
  cpSync(realpathSync(join(cacheDirectory(), "images", "service")), directory, { recursive: true });
  change(directory);
  const file = join(directory, "manifest.json");
  const manifest = JSON.parse(readFileSync(file, "utf8")) as ImageManifest;
  const { boot } = manifest;
  assert.ok(boot !== null);
  const commandLine = `${boot.commandLine} cells.image=${name}`;
  writeFileSync(file, JSON.stringify({ ...manifest, name, boot: { ...boot, commandLine } }));
};

/** Nothing is on its disk. */
const emptied = (directory: string): void => {
  const disk = join(directory, "disk.qcow2");
  const { "virtual-size": size } = JSON.parse(
    execFileSync("qemu-img", ["info", "--output=json", disk], { encoding: "utf8" }),
  ) as { readonly "virtual-size": number };
  execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", disk, String(size)]);
};

/** The image that each machine of these VMs was started with, by the word on its command line. */
const imageOf = async (t: Testbed, path: string): Promise<string> => {
  const { host, uid } = await vmState(t, path);
  const [pid = ""] = await processesOf(t, host, `^qemu-system.*guest=cells-${uid}-[0-9]+`);
  const { stdout } = await t.exec(host, ["cat", `/proc/${pid}/cmdline`]);
  return /cells\.image=([a-z0-9-]+)/.exec(stdout)?.[1] ?? "service";
};

interface Images {
  readonly service: string;
  /** In the root controller's VM. */
  readonly core?: string;
  /** For the gateway, as an element of its own. */
  readonly front?: string;
}

/** Writes the specifications of the root and the primary cell with these images. */
const specifications = (
  t: Testbed,
  { service, core, front }: Images,
): { readonly [cell in "root" | "primary"]: string } => {
  const root = rootSpecification(t.at, "small");
  const directory = dirname(root);
  const examples = join(import.meta.dirname, "../../examples/root");
  const read = (name: string): string => readFileSync(join(examples, name), "utf8");
  const replaced = (text: string, from: RegExp, to: string): string => {
    assert.match(text, from);
    return text.replace(from, to);
  };
  const volume = (name: string, image = ""): string =>
    `${name} extends Volume { x.size 192; x.access "ro"; x.public true; x.import "${image}"; }`;
  const own = core === undefined ? "" : volume("core", core);
  const grant = `frontForPrimary extends VolumeGrant {
    x.volume "<ref:../front>"; x.cell "<ref://primary.cells.internal/>"; x.grant "copy"; }`;
  const images = `${volume("service", service)} ${own} ${front === undefined ? "" : `${volume("front", front)} ${grant}`}`;
  const main = replaced(read("service.sf"), /service extends Volume \{[^}]*\}/, images);
  const gateway = "<ref://root.cells.internal/root/images/";
  writeFileSync(
    join(directory, "service.sf"),
    front === undefined ? main : replaced(main, new RegExp(`${gateway}service>`), `${gateway}front>`),
  );
  const boot = `core1 extends Service {\n    boot extends VolumeCopy { x.image "<ref:/root/images/core>"; }`;
  const small = read("small.sf");
  writeFileSync(root, core === undefined ? small : replaced(small, /core1 extends Service \{/, boot));
  return { root, primary: join(directory, "primary.sf") };
};
const applyRoot = (t: Testbed, images: Images): Promise<string> =>
  cells(t, "apply", specifications(t, images).root, "--yes", "--no-wait");

/** Until the root controller, which may be the one that is being tried, says so. */
const untilState = (t: Testbed, path: string, phase: string, reason: RegExp): Promise<unknown> =>
  until(
    `${path} is ${phase}: ${reason}`,
    async () => stateOf(t, path).catch(() => null),
    (state) => state?.phase === phase && reason.test(state.reason ?? ""),
    patience,
  );

const others = ["root/core2/vm", "root/core3/vm", "root/controllers/primary/vm", "root/controllers/one/vm"];
const core = "root/core1/vm";
const gateway = "primary/gateway/vm";

/** Asked again and again: whoever answers may be what is away. */
const untilImage = (t: Testbed, path: string, image: string): Promise<unknown> =>
  until(
    `${path} runs from ${image}`,
    () => imageOf(t, path).catch(() => ""),
    (found) => found === image,
    patience,
  );
const untilVm = (t: Testbed, path: string): Promise<ElementState & { readonly host: string }> =>
  until(
    `somebody tells where ${path} is`,
    () => vmState(t, path).catch(() => null),
    (state) => state !== null,
    patience,
  ).then((state) => state ?? assert.fail(path));

/**
 * In a cloud of the profile `small` with one storage server and the cell `one`, which is as declared.
 * @param reached is told each step
 */
export const upgradeCloud = async (t: Testbed, file: string, reached: (what: string) => void): Promise<void> => {
  await startPings(t, file);
  bringIn(t, "service-2");
  bringIn(t, "service-3", emptied);
  const incarnation = async (path: string): Promise<number> => (await untilVm(t, path)).incarnation ?? 0;
  const before = new Map<string, number>();
  for (const path of [core, gateway, ...others]) before.set(path, await incarnation(path));
  const startedAgain = async (path: string, times: number): Promise<void> =>
    assert.equal(await incarnation(path), (before.get(path) ?? 0) + times, `${path} was started again ${times} times`);
  // A good one everywhere but in the root controller's own VM, which comes last, and returns by its host's decision.
  const said = await applyRoot(t, { service: "service-2", core: "service-3" });
  assert.match(
    said.replaceAll("\n", " "),
    /one at a time.*root\/core2\/vm, .*root\/core1\/vm\. One that does not come up goes back/,
  );
  reached("the new image is submitted");
  await interrupt(t, reached);
  // One after the other, each with the time that it takes on a busy machine.
  for (const path of others) {
    await untilImage(t, path, "service-2");
    reached(`${path} has the new image`);
  }
  await untilState(
    t,
    "root/core1/bootDisk",
    "failed",
    /^root\/core1\/vm did not come up with .*its machine ended 2 times/,
  );
  reached("four service VMs run from the new image, and that of the root controller went back");
  for (const path of others) {
    assert.equal(await imageOf(t, path), "service-2");
    await startedAgain(path, 1);
  }
  assert.equal(await imageOf(t, core), "service");
  // It says so with its exit code as well.
  assert.match((await t.cells(["why", core])).stdout, /boot volume.*did not come up/s);
  assert.equal(await imageOf(t, gateway), "service", "what did not come up everywhere is not the gateway's");
  await startedAgain(gateway, 0);
  await applyRoot(t, { service: "service-2" });
  await untilImage(t, core, "service-2");
  reached("the root controller's VM runs from the new image");
  await untilImage(t, gateway, "service-2");
  reached("the gateway's VM runs from the new image");
  for (const cell of ["root", "primary"]) await untilAllReady(t, cell, patience);
  reached("the root and the primary cell are as declared");
  for (const path of others) await startedAgain(path, 1);
  await startedAgain(gateway, 1);
  await startedAgain(core, 0);
  for (const path of [core, gateway]) assert.equal(await imageOf(t, path), "service-2");
  await gatewayGoesBack(t, reached);
  const { sent, lost } = await pingsLost(t);
  reached(`${lost} of ${sent} pings between a tenant's machines were lost`);
  assert.ok(sent > 30 && lost <= 1, `${lost} of ${sent} pings were lost`);
};

/** Whoever carries out the upgrade dies in the middle of a trial. Its host brings it back, and it goes on. */
const interrupt = async (t: Testbed, reached: (what: string) => void): Promise<void> => {
  const { host, uid } = await untilVm(t, core);
  await untilState(t, "root/core2/bootDisk", "working", /^root\/core2\/vm is tried with it/);
  await killMachine(t, host, uid);
  reached("core2 is tried with the new image: killed the root controller's VM");
};

/** An image for the gateway alone that does not come up. Whoever was shut out meanwhile is let in again, and told why. */
const gatewayGoesBack = async (t: Testbed, reached: (what: string) => void): Promise<void> => {
  const before = (await vmState(t, gateway)).incarnation ?? 0;
  const file = specifications(t, { service: "service-2", front: "service-3" });
  await cells(t, "apply", file.root, "--yes");
  await cells(t, "apply", file.primary, "--yes", "--no-wait", "--allow-destroy", "primary/gateway/boot");
  await untilState(t, "primary/gateway/bootDisk", "failed", /^primary\/gateway\/vm did not come up with /);
  assert.equal(await imageOf(t, gateway), "service-2");
  assert.match((await t.cells(["why", gateway])).stdout, /boot volume.*did not come up/s);
  reached("the gateway went back");
  const good = specifications(t, { service: "service-2" });
  await cells(t, "apply", good.primary, "--yes", "--allow-destroy", "primary/gateway/boot");
  await cells(t, "apply", good.root, "--yes");
  for (const cell of ["root", "primary"]) await untilAllReady(t, cell, patience);
  assert.equal((await vmState(t, gateway)).incarnation, before + 4, "tried twice, back, and then what was named again");
};
