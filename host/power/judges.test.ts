import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import type { PowerController, PowerDriver } from "../../core/ha/power/controller.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { ipmiDriver } from "./ipmi.ts";
import { type IpmiSim, startIpmiSim } from "./ipmi-sim.testing.ts";
import { redfishDriver } from "./redfish.ts";
import { type RedfishSim, startRedfishSim } from "./redfish-sim.testing.ts";

/*
 * Debian's `fence-agents`, programs of others that other clusters fence by, judge both controllers that tests have, and our own drivers:
 * all see one power, and what one switches the others see.
 */
type Said = "on" | "off" | "unknown";
interface Judge {
  readonly agent: string;
  readonly options: Readonly<Record<string, string>>;
  readonly driver: PowerDriver;
  readonly controller: PowerController;
  power(): Promise<"on" | "off">;
}

/** Their protocol: options as lines on standard input; the power by what is printed, and exit code 2 for off. */
const ask = ({ agent, options }: Judge, action: string, more: Readonly<Record<string, string>> = {}) =>
  new Promise<{ readonly code: number; readonly text: string; readonly complaint: string }>((resolve) => {
    const child = execFile(`/usr/sbin/${agent}`, { timeout: 30_000 }, (error, stdout, stderr) =>
      resolve({
        code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1,
        text: stdout.trim(),
        complaint: stderr,
      }),
    );
    const lines = Object.entries({ ...options, action, ...more }).map(([name, value]) => `${name}=${value}\n`);
    child.stdin?.end(lines.join(""));
  });
const status = async (judge: Judge, more: Readonly<Record<string, string>> = {}): Promise<Said> => {
  const { code, text } = await ask(judge, "status", more);
  if (code === 0 && /^Status: ON$/m.test(text)) return "on";
  return code === 2 && /^Status: OFF$/m.test(text) ? "off" : "unknown";
};
const ours = async ({ driver, controller }: Judge): Promise<Said> =>
  (await driver.read(controller, AbortSignal.timeout(8000))).power ?? "unknown";
const all = async (judge: Judge): Promise<readonly Said[]> => [
  await judge.power(),
  await status(judge),
  await ours(judge),
];

let ipmi: IpmiSim;
let redfish: RedfishSim;
const judges: Judge[] = [];
before(async () => {
  ipmi = await startIpmiSim(await freePort());
  redfish = await startRedfishSim();
  const optionsFor = ({ address, user, password }: PowerController): Readonly<Record<string, string>> => {
    const [ip = "", ipport = ""] = address.split(":");
    return { ip, ipport, username: user, password, power_wait: "0" };
  };
  judges.push(
    {
      agent: "fence_ipmilan",
      options: { ...optionsFor(ipmi.controller), lanplus: "1", cipher: "3" },
      driver: ipmiDriver,
      controller: ipmi.controller,
      power: ipmi.power,
    },
    {
      // Its certificate is the controller's own.
      agent: "fence_redfish",
      options: { ...optionsFor(redfish.controller), ssl_insecure: "1" },
      driver: redfishDriver,
      controller: redfish.controller,
      power: async () => (redfish.power === "On" ? "on" : "off"),
    },
  );
});
after(async () => {
  await ipmi.stop();
  await redfish.stop();
});

test("an agent of others and our own driver see one power, and what either cuts the other sees", async () => {
  await Promise.all(
    judges.map(async (judge) => {
      const { agent, driver, controller } = judge;
      assert.deepEqual(await all(judge), ["on", "on", "on"], agent);
      const cut = await ask(judge, "off");
      assert.deepEqual([cut.code, cut.text], [0, "Success: Powered OFF"], `${agent}: ${cut.complaint}`);
      assert.deepEqual(await all(judge), ["off", "off", "off"], agent);
      const on = await ask(judge, "on");
      assert.deepEqual([on.code, on.text], [0, "Success: Powered ON"], `${agent}: ${on.complaint}`);
      assert.deepEqual(await all(judge), ["on", "on", "on"], agent);
      await driver.off(controller, AbortSignal.timeout(8000));
      assert.deepEqual(await all(judge), ["off", "off", "off"], agent);
      const again = await ask(judge, "off");
      assert.deepEqual([again.code, again.text], [0, "Success: Already OFF"], `${agent}: ${again.complaint}`);
      await ask(judge, "on");
    }),
  );
});

test("of a controller that says yes and does nothing an agent and our own driver both say that it is on", async () => {
  await ipmi.lie();
  redfish.lies = true;
  await Promise.all(
    judges.map(async (judge) => {
      await judge.driver.off(judge.controller, AbortSignal.timeout(8000));
      const cut = await ask(judge, "off", { power_timeout: "1" });
      assert.equal(cut.code, 1, `${judge.agent}: ${cut.complaint}`);
      assert.match(cut.complaint, /Timed out waiting to power OFF/);
      assert.deepEqual(await all(judge), ["on", "on", "on"], judge.agent);
    }),
  );
});

test("with a wrong password neither says anything of the power", async () => {
  await Promise.all(
    judges.map(async (judge) => {
      const controller = { ...judge.controller, password: "other" };
      assert.equal(await status(judge, { password: "other" }), "unknown", judge.agent);
      assert.equal(await ours({ ...judge, controller }), "unknown", judge.agent);
    }),
  );
});
