import { spawn } from "node:child_process";
import {
  longestAnswer,
  nothingRead,
  type PowerController,
  type PowerDriver,
  uuidOf,
} from "../../core/ha/power/controller.ts";

/**
 * IPMI 2.0 over RMCP+, by `ipmitool`. The password goes in on its standard input (`-f /dev/stdin`), so no argument list, environment or
 * file has it; what the tool prints is read for the words that are looked for, and passed on to nobody.
 */
export const ipmiDriver: PowerDriver = {
  read: async (controller, signal) => {
    const status = await ipmitool(controller, ["chassis", "power", "status"], signal);
    if (!status.ok) return nothingRead(status.reason);
    const said = /^Chassis Power is (on|off)$/m.exec(status.text)?.[1];
    if (said !== "on" && said !== "off") return nothingRead("the controller does not say whether its power is on");
    const guid = await ipmitool(controller, ["mc", "guid"], signal);
    const uuid = guid.ok ? uuidOf(/^System GUID\s*:\s*([0-9a-fA-F-]{32,36})\s*$/m.exec(guid.text)?.[1] ?? "") : null;
    return uuid === null ? nothingRead("the controller shows no system UUID") : { power: said, uuid, reason: null };
  },
  off: async (controller, signal) => {
    await ipmitool(controller, ["chassis", "power", "off"], signal);
  },
};

type Said = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

const ipmitool = (
  { address, user, password, suite = 17 }: PowerController,
  words: readonly string[],
  signal: AbortSignal,
): Promise<Said> =>
  new Promise((resolve) => {
    const [host = "", port = "623"] = address.split(":");
    const reach = ["-I", "lanplus", "-C", String(suite), "-H", host, "-p", port, "-U", user, "-f", "/dev/stdin"];
    const tool = spawn("ipmitool", [...reach, "-N", "2", "-R", "2", ...words], {
      signal,
      killSignal: "SIGKILL",
      stdio: ["pipe", "pipe", "ignore"],
      env: { PATH: process.env.PATH, HOME: "/" },
    });
    let text = "";
    tool.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (text.length > longestAnswer) tool.kill("SIGKILL");
    });
    const failed = (reason: string): void => resolve({ ok: false, reason });
    tool.on("error", ({ name }) =>
      failed(name === "AbortError" ? "the controller did not answer in time" : "ipmitool cannot be started here"),
    );
    tool.on("close", (code) => {
      if (text.length > longestAnswer) failed("the controller says more than anybody would read");
      else if (code === 0) resolve({ ok: true, text });
      else failed("the controller does not answer, or does not take this user and password");
    });
    tool.stdin.on("error", () => undefined);
    tool.stdin.end(`${password}\n`);
  });
