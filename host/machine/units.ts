import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { places } from "./configuration.ts";
import { systemdRuns } from "./examine.ts";

/** The units of `packaging/systemd/`, put into place with what is this machine's own. */
const run = promisify(execFile);
const repository = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** In the order in which they start. */
export const unitsOf = (storage: string | null): readonly string[] => [
  "cells-machines.service",
  "cells-bridge.service",
  ...(storage === null ? [] : ["cells-agent.service"]),
  "cells-host.service",
];

const values = (device: string, storage: string | null): Readonly<Record<string, string>> => ({
  CELLS: repository,
  NODE: process.execPath,
  INTERFACE: device,
  STORAGE: storage ?? "",
});
/** A path with one of these would be another one to systemd (systemd.syntax(7), systemd.service(5)). */
const plain = /^[A-Za-z0-9_./-]*$/;

/** Writes them. Rejects where a path has characters that a unit cannot hold plainly. */
export const installUnits = async (device: string, storage: string | null): Promise<void> => {
  const own = values(device, storage);
  for (const value of Object.values(own))
    if (!plain.test(value)) throw new Error(`the path "${value}" has characters that systemd reads otherwise: move it`);
  await mkdir(places.units, { recursive: true });
  for (const unit of unitsOf(storage)) {
    const text = await readFile(join(repository, "packaging/systemd", unit), "utf8");
    const filled = text.replace(/@([A-Z]+)@/g, (written, name: string) => own[name] ?? written);
    await writeFile(join(places.units, unit), filled, { mode: 0o644 });
  }
};

/** Starts them now and at every boot; false where systemd does not run. Rejects with what systemctl said. */
export const startUnits = async (storage: string | null): Promise<boolean> => {
  if (!systemdRuns()) return false;
  await systemctl("daemon-reload");
  await systemctl("enable", "--now", ...unitsOf(storage));
  return true;
};

/** What a unit leaves behind when it is started again, its exports and helpers, ends with it when it is taken away. */
const endAll = "[Service]\nKillMode=control-group\n";

/** Stops those that are there, the latest first, with all that they started, and removes them. */
export const removeUnits = async (): Promise<void> => {
  // A machine without storage has no agent, and systemctl does nothing at all where one of several units is not there.
  const all = unitsOf(places.state)
    .filter((unit) => existsSync(join(places.units, unit)))
    .reverse();
  if (systemdRuns() && all.length > 0) {
    const overrides = all.map((unit) => `/run/systemd/system/${unit}.d`);
    for (const directory of overrides) {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, "leave.conf"), endAll);
    }
    await systemctl("daemon-reload");
    await systemctl("disable", "--now", ...all);
    for (const directory of overrides) await rm(directory, { recursive: true, force: true });
  }
  for (const unit of all) await rm(join(places.units, unit), { force: true });
  if (systemdRuns()) await systemctl("daemon-reload");
};

const systemctl = async (...args: readonly string[]): Promise<void> => {
  await run("systemctl", [...args]).catch((error: { readonly stderr?: string; readonly message: string }) => {
    const said = error.stderr?.trim() || error.message;
    throw new Error(`systemctl ${args.join(" ")} failed: ${said}. \`journalctl -u cells-host\` says more`);
  });
};

/** What a person does where there is no systemd: the commands, one each line. */
export const commandsOf = async (storage: string | null): Promise<readonly string[]> => {
  const texts = await Promise.all(unitsOf(storage).map((unit) => readFile(join(places.units, unit), "utf8")));
  return texts.map((text) => /^ExecStart=(.*)$/m.exec(text)?.[1] ?? "");
};
export const bridgeScript = join(repository, "packaging/bridge.sh");
