import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** Where the gateway is and what it accepts. The file is readable by its owner only. */
export interface ClientConfiguration {
  readonly url: string;
  readonly credential: string;
  /** The installation's authority, PEM, where the gateway serves over TLS; absent: those that the system trusts. */
  readonly authority?: string;
}

/** The invoking user under `sudo`: the file is theirs, not root's. */
const invokingUser = (): { readonly home: string; readonly uid: number; readonly gid: number } | undefined => {
  const { SUDO_UID: uid, SUDO_GID: gid } = process.env;
  if (process.getuid?.() !== 0 || uid === undefined || gid === undefined) return undefined;
  try {
    const home = execFileSync("getent", ["passwd", uid], { encoding: "utf8" }).split(":")[5];
    return home === undefined ? undefined : { home, uid: Number(uid), gid: Number(gid) };
  } catch {
    return undefined;
  }
};

/** `$CELLS_CONFIG`, or `cells/config.json` in the user's configuration directory. */
export const clientConfigurationFile = (): string => {
  const { CELLS_CONFIG: named, XDG_CONFIG_HOME: configurationHome } = process.env;
  if (named !== undefined && named !== "") return named;
  const user = invokingUser();
  if (user !== undefined) return join(user.home, ".config", "cells", "config.json");
  const base =
    configurationHome === undefined || configurationHome === "" ? join(homedir(), ".config") : configurationHome;
  return join(base, "cells", "config.json");
};

/** Undefined when there is none, or none that says both things. */
export const readClientConfiguration = (file = clientConfigurationFile()): ClientConfiguration | undefined => {
  try {
    const { url, credential, authority } = JSON.parse(readFileSync(file, "utf8")) as Partial<ClientConfiguration>;
    if (typeof url !== "string" || typeof credential !== "string") return undefined;
    return { url, credential, ...(typeof authority === "string" ? { authority } : {}) };
  } catch {
    return undefined;
  }
};

export const writeClientConfiguration = (
  configuration: ClientConfiguration,
  file = clientConfigurationFile(),
): void => {
  const made = mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, `${JSON.stringify(configuration, null, 2)}\n`, { mode: 0o600 });
  const user = invokingUser();
  if (user !== undefined && file.startsWith(`${user.home}/`)) {
    chownSync(draft, user.uid, user.gid);
    for (let path = dirname(file); made !== undefined && path.length >= made.length; path = dirname(path)) {
      chownSync(path, user.uid, user.gid);
    }
  }
  renameSync(draft, file);
};
