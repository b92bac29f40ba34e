import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PowerController } from "../../core/ha/power/controller.ts";
import { ipmiDriver } from "./ipmi.ts";

/** A management controller as OpenIPMI simulates it; the power that it switches is a file. */
export interface IpmiSim {
  readonly controller: PowerController;
  /** As the controller shows it. */
  readonly guid: string;
  power(): Promise<"on" | "off">;
  switch(power: "on" | "off"): Promise<void>;
  /** It answers yes, and switches nothing. */
  lie(): Promise<void>;
  stop(): Promise<void>;
}

const secret = "correct-horse";
export const startIpmiSim = async (port: number, guid = "a123456789abcdefa123456789abcdef"): Promise<IpmiSim> => {
  const directory = await mkdtemp(join(tmpdir(), "cells-ipmi-"));
  const [file, control, liar] = ["power", "control", "lies"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(file, "1");
  // What OpenIPMI's `chassis_control` is told: NAME get|set|check WORD VALUE …
  await writeFile(
    control,
    `#!/bin/sh
case $2 in
  get) echo "power:$(cat ${file})" ;;
  set) [ -e ${liar} ] || [ "$3" != power ] || echo "$4" >${file} ;;
esac
`,
  );
  await chmod(control, 0o700);
  const authentications = ["callback", "user", "operator", "admin"].map(
    (who) => `allowed_auths_${who} none md2 md5 straight`,
  );
  await writeFile(
    join(directory, "lan.conf"),
    `name "bmc"
set_working_mc 0x20
startlan 1
addr 127.0.0.1 ${port}
priv_limit admin
${authentications.join("\n")}
guid ${guid}
endlan
chassis_control "${control} 0x20"
user 1 true "" "none" user 10 none md2 md5 straight
user 2 true "operator" "${secret}" admin 10 none md2 md5 straight
`,
  );
  await writeFile(
    join(directory, "sim.emu"),
    "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n",
  );
  const words = ["-c", join(directory, "lan.conf"), "-f", join(directory, "sim.emu"), "-s", directory, "-n"];
  const sim: ChildProcess = spawn("ipmi_sim", words, { stdio: ["pipe", "ignore", "ignore"] });
  // OpenIPMI's simulator does not know the newer one.
  const controller: PowerController = {
    kind: "ipmi",
    address: `127.0.0.1:${port}`,
    user: "operator",
    password: secret,
    suite: 3,
  };
  for (let looks = 0; looks < 20; looks += 1) {
    const { power } = await ipmiDriver.read(controller, AbortSignal.timeout(5000));
    if (power !== null) break;
    await sleep(200);
  }
  return {
    controller,
    guid,
    power: async () => ((await readFile(file, "utf8")).trim() === "1" ? "on" : "off"),
    switch: (power) => writeFile(file, power === "on" ? "1" : "0"),
    lie: () => writeFile(liar, ""),
    stop: async () => {
      if (sim.exitCode === null) {
        sim.kill("SIGKILL");
        await once(sim, "exit");
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
};

/**
 * Asks a device that never answers, and looks meanwhile: the arguments and the environment of each process, as text.
 * @param ask is given the device's address
 */
export async function shownWhileAsked(
  ask: (address: string, stop: AbortSignal) => Promise<unknown>,
): Promise<readonly string[]> {
  const silent = createSocket("udp4");
  silent.bind(0, "127.0.0.1");
  await once(silent, "listening");
  const stop = new AbortController();
  const asking = ask(`127.0.0.1:${silent.address().port}`, stop.signal);
  await once(silent, "message");
  const seen: string[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name)))
    for (const file of ["cmdline", "environ"])
      seen.push(await readFile(`/proc/${pid}/${file}`, "latin1").catch(() => ""));
  stop.abort();
  await asking;
  silent.close();
  return seen;
}
