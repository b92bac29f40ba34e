import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Testbed, withTestbed } from "../../harness.ts";
import * as lab from "../../lab.testing.ts";
import { eventsSince } from "../presence.testing.ts";
import { beginRoot } from "./drain.testing.ts";
import {
  pause,
  runsAt,
  setLink,
  untilBack,
  untilDeclared,
  untilElsewhere,
  untilFencing,
  type Writer,
  writerOf,
} from "./losses.testing.ts";

/*
 * A host with a management controller is lost while its machine writes: the controller lies, is slow, is dead. And the server's file system
 * holds up what was accepted. What OpenIPMI's simulator switches is for real: the machines of the host end.
 */
const [one, two] = lab.machines;
const controllerAt = "10.0.0.9";
const secret = "correct-horse";
const guid = "a123456789abcdefa123456789abcdef";

interface Controller {
  /** How it takes an order to switch. */
  mode(mode: "obeys" | "lies" | "slow"): void;
  power(): "on" | "off";
  /** How often it was ordered to cut the power. */
  orders(): number;
  /** Somebody pulls the plug, or puts it in again. */
  plug(power: "on" | "off"): Promise<void>;
  dies(): Promise<void>;
}

/** What `ipmi_sim` runs: NAME get|set WORD VALUE. */
const controlOf = (directory: string): string => `#!/bin/sh
cd ${directory}
case $2 in
  get) echo "power:$(cat power)" ;;
  set) [ "$3" = power ] || exit 0
    [ "$4" = 1 ] || echo cut >>orders
    case $(cat mode) in lies) exit 0 ;; slow) sleep 4 ;; esac
    echo "$4" >power
    [ "$4" = 1 ] || sh ./cut ;;
esac
`;
/** Every machine of the host ends, at once. */
const cutOf = (host: string): string => `for p in /proc/[0-9]*; do
  if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^[^ ]*qemu-system.*/run/members/${host}/vms/'; then kill -9 \${p#/proc/}; fi
done
`;
const lanOf = (directory: string): string => {
  const authentications = ["callback", "user", "operator", "admin"].map(
    (who) => `allowed_auths_${who} none md2 md5 straight`,
  );
  return `name "bmc"
set_working_mc 0x20
startlan 1
addr ${controllerAt} 623
priv_limit admin
${authentications.join("\n")}
guid ${guid}
endlan
chassis_control "${directory}/control 0x20"
user 1 true "" "none" user 10 none md2 md5 straight
user 2 true "operator" "${secret}" admin 10 none md2 md5 straight
`;
};

/** Runs in the testbed's own namespaces, and ends with these. */
const startController = async (t: Testbed, host: string): Promise<Controller> => {
  const directory = join(dirname(t.configFile), "bmc");
  mkdirSync(directory, { recursive: true });
  const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
  const read = (name: string): string => readFileSync(join(directory, name), "utf8");
  write("lan.conf", lanOf(directory));
  write("sim.emu", "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n");
  write("control", controlOf(directory));
  chmodSync(join(directory, "control"), 0o700);
  write("cut", cutOf(host));
  write("power", "1");
  write("mode", "obeys");
  write("orders", "");
  const words = `ipmi_sim -c ${directory}/lan.conf -f ${directory}/sim.emu -s ${directory} -n`;
  // It ends when its standard input does.
  const start = `(sleep 86400 | (echo $$ >${directory}/shell; exec ${words})) >${directory}/log 2>&1 & echo started`;
  const { stdout } = await t.resolver(["setsid", "sh", "-c", start]);
  assert.match(stdout, /started/);
  return {
    mode: (mode) => write("mode", mode),
    power: () => (read("power").trim() === "1" ? "on" : "off"),
    orders: () => read("orders").split("\n").length - 1,
    plug: async (power) => {
      write("power", power === "on" ? "1" : "0");
      if (power === "off") await t.resolver(["sh", join(directory, "cut")]);
    },
    dies: async () => {
      const find = `for p in /proc/[0-9]*; do
  if tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^ipmi_sim -c ${directory}/'; then kill -9 \${p#/proc/} && echo ended; fi
done`;
      assert.match((await t.resolver(["sh", "-c", find])).stdout, /ended/);
    },
  };
};

/** The machine's firmware says who it is, and another one reads that at the controller. */
const register = async (t: Testbed, host: string): Promise<void> => {
  const uuid = guid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  writeFileSync(join(t.at.directory, "members", host, "data", "system-uuid"), `${uuid}\n`);
  const file = join(dirname(t.configFile), "bmc.password");
  writeFileSync(file, `${secret}\n`);
  const words = ["--ipmi", controllerAt, "--user", "operator", "--password-file", file, "--cipher-suite", "3"];
  const { stdout } = await lab.until(
    `the power of ${host} is registered`,
    () => t.cells(["host", "power", host, ...words]),
    ({ code }) => code === 0,
    40,
  );
  assert.match(stdout, new RegExp(`${controllerAt} reads ${host} as on`));
};

const overBy = async (t: Testbed, { uid, incarnation, sinceMs }: Writer): Promise<unknown> =>
  (await eventsSince(t, sinceMs)).find(
    ({ event, fields }) => event === "ha/over" && fields.vm === uid && fields.incarnation === incarnation,
  )?.fields.by;

/**
 * Its Host Manager stands still and its network is cut; its machine runs on. The storage cannot fence, since the agent stands still, and
 * the controller says yes to the order and switches nothing: nothing starts. Then it reads as off.
 */
const controllerLies = async (t: Testbed, controller: Controller): Promise<void> => {
  const writer = await writerOf(t, one);
  const { host, server } = writer;
  controller.mode("lies");
  await t.kill(server, "SIGSTOP");
  await t.kill(host, "SIGSTOP");
  await setLink(t, host, "down");
  await untilDeclared(t, writer);
  await untilFencing(t, writer, "power", /reads|read/);
  await lab.until(
    "the controller was ordered to cut the power",
    async () => controller.orders(),
    (orders) => orders > 0,
  );
  // It is read again each 10 s.
  await pause(12_000);
  assert.equal(controller.power(), "on");
  assert.deepEqual(await runsAt(t, writer), [host], "a yes is no power that is off, and its machine runs on");
  assert.equal(await overBy(t, writer), undefined);
  await controller.plug("off");
  await lab.until(
    "it is over, by its power",
    () => overBy(t, writer),
    (by) => by !== undefined,
  );
  assert.deepEqual(await runsAt(t, writer), []);
  await t.kill(server, "SIGCONT");
  await untilElsewhere(t, writer);
  await lab.cutPowerOf(t, host);
  await controller.plug("on");
  controller.mode("obeys");
  await untilBack(t, writer);
};

/** Whose storage answers waits for no controller, be it slow or dead. */
const storageIsFirst = async (t: Testbed, writer: Writer): Promise<void> => {
  await lab.cutPowerOf(t, writer.host);
  await setLink(t, writer.host, "down");
  await untilDeclared(t, writer);
  await untilElsewhere(t, writer);
  assert.equal(await overBy(t, writer), "storage");
  await untilBack(t, writer);
};
const writerAt = async (t: Testbed, host: string): Promise<Writer> => {
  // One that has just come back is a host to move to a moment later.
  await lab.until(
    `${one} is told to move to ${host}`,
    () => t.cells(["move", one, "--to", host]),
    ({ code }) => code === 0,
  );
  const writer = await writerOf(t, one);
  assert.equal(writer.host, host);
  return writer;
};
const controllerIsSlow = async (t: Testbed, controller: Controller, host: string): Promise<void> => {
  const writer = await writerAt(t, host);
  controller.mode("slow");
  await storageIsFirst(t, writer);
  controller.mode("obeys");
  await controller.plug("on");
};
const controllerIsDead = async (t: Testbed, controller: Controller, host: string): Promise<void> => {
  const writer = await writerAt(t, host);
  await controller.dies();
  await storageIsFirst(t, writer);
};

/** Volumes of a server lie on a file system of their own, which can be frozen: what was accepted waits in the kernel, and lands later. */
const moveVolumes = async (t: Testbed, server: string): Promise<string> => {
  const volumes = join(t.at.directory, "members", server, "data", "volumes");
  await t.stop(server);
  assert.ok((await lab.signalExports(t, server, "KILL")) > 0);
  const script = `image=/run/members/${server}/volumes.img
truncate -s 700M "$image"
mkfs.ext4 -q "$image"
mkdir -p /run/members/${server}/volumes
mount -o loop "$image" /run/members/${server}/volumes
cp -a --sparse=always "$1/." /run/members/${server}/volumes
mount --move /run/members/${server}/volumes "$1" || mount --bind /run/members/${server}/volumes "$1"
mountpoint -q "$1"`;
  const { code, stderr } = await t.exec(server, ["sh", "-euc", script, "move", volumes]);
  assert.equal(code, 0, stderr);
  await t.start(server);
  return volumes;
};

/** The host is lost while writes that were accepted have not landed. Its fence ends once they have, and no sooner. */
const writesLandLate = async (t: Testbed, context: TestContext): Promise<void> => {
  const { server } = await writerOf(t, two);
  const volumes = await moveVolumes(t, server);
  await lab.untilReady(t, two);
  const writer = await writerOf(t, two);
  const { host } = writer;
  const frozen = await t.exec(server, ["fsfreeze", "-f", volumes]);
  assert.equal(frozen.code, 0, frozen.stderr);
  await pause(2000);
  await lab.cutPowerOf(t, host);
  await setLink(t, host, "down");
  await untilDeclared(t, writer);
  await untilFencing(t, writer, "storage", /./);
  await pause(5000);
  assert.deepEqual(await runsAt(t, writer), [], "nothing starts before what was accepted has landed");
  const fromMs = Date.now();
  const thawed = await t.exec(server, ["fsfreeze", "-u", volumes]);
  assert.equal(thawed.code, 0, thawed.stderr);
  await untilElsewhere(t, writer);
  context.diagnostic(`${two} writes on ${Date.now() - fromMs} ms after what was accepted could land`);
  const fenced = (await eventsSince(t, writer.sinceMs)).find(
    ({ event, fields }) => event === "ha/fenced" && fields.vm === writer.uid,
  );
  assert.ok(Date.parse(fenced?.time ?? "") >= fromMs, "its lease has ended after that");
  await untilBack(t, writer);
};

test(
  "whatever a controller of a lost host says, and however late its writes land, nothing starts beside them",
  {
    skip: process.getuid?.() === 0 ? false : "needs root",
    timeout: 1_200_000,
  },
  (context) =>
    withTestbed({ hosts: 3, servers: 2, ha: true }, async (t) => {
      await beginRoot(t);
      await lab.applyLab(t);
      for (const vm of lab.machines) await lab.untilReady(t, vm);
      const host = (await lab.stateOf(t, one))?.host ?? "";
      const controller = await startController(t, host);
      await register(t, host);
      const steps: readonly (readonly [string, () => Promise<void>])[] = [
        ["a controller that lies", () => controllerLies(t, controller)],
        ["a controller that is slow", () => controllerIsSlow(t, controller, host)],
        ["a controller that is dead", () => controllerIsDead(t, controller, host)],
        ["writes that land late", () => writesLandLate(t, context)],
      ];
      for (const [name, step] of steps) await context.test(name, step);
    }),
);
