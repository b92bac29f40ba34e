import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { usage } from "../terminal/failure.ts";

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

/** Set and not empty. */
const named = (name: string): string | undefined => {
  const value = process.env[name];
  return value === undefined || value === "" ? undefined : value;
};

const ownDirectory = (): string => {
  const user = invokingUser();
  if (user !== undefined) return join(user.home, ".config", "cells");
  return join(named("XDG_CONFIG_HOME") ?? join(homedir(), ".config"), "cells");
};
/** `cells/config.json` in the user's configuration directory: the cloud of whoever names none. */
const writtenConfigurationFile = (): string => join(ownDirectory(), "config.json");

// --- contexts: configurations by name, of which one may be in use (`contexts.ts`) ------------------------------------

export const contextsDirectory = (): string => join(ownDirectory(), "contexts");
export const isContextName = (name: string): boolean => /^[a-z0-9][a-z0-9_-]{0,62}$/.test(name);
export const contextFile = (name: string): string => {
  if (isContextName(name)) return join(contextsDirectory(), `${name}.json`);
  throw usage(`\`${name}\` cannot name a context: small letters, digits, - and _, at most 63`);
};
const inUseFile = (): string => join(ownDirectory(), "context");
export const contextInUse = (): string | undefined => {
  try {
    const name = readFileSync(inUseFile(), "utf8").trim();
    return isContextName(name) ? name : undefined;
  } catch {
    return undefined;
  }
};
export const useContextFile = (name: string | null): void => {
  if (name === null) rmSync(inUseFile(), { force: true });
  else writeOwn(inUseFile(), `${name}\n`);
};

/** Where whoever makes a cloud leaves its configuration: `$CELLS_CONFIG`, or the user's. */
export const clientConfigurationFile = (): string => named("CELLS_CONFIG") ?? writtenConfigurationFile();

/** Keys of the SSH server of one VM; `name` is of small letters and digits. */
export const knownHostsFile = (name: string): string => join(ownDirectory(), "known-hosts", name);

/** The configuration that `cells up` leaves in a testbed's own directory. */
export const configurationIn = (directory: string): string => join(directory, "client.json");

/** Which cloud a command asks, and what says so. */
export interface CloudChoice {
  /** As a person would write it. */
  readonly by: string;
  readonly file: string;
  /** What to do where no configuration is there. */
  readonly remedy: string;
}

/**
 * The first of these that is given, and none after it where that one leads nowhere: a directory on the command line,
 * `$CELLS_CONFIG`, `$CELLS_HOME`, `$CELLS_CONTEXT`, the context in use, the written configuration.
 */
export const chosenCloud = (directory?: string): CloudChoice => {
  const inDirectory = (by: string, home: string): CloudChoice => ({
    by,
    file: configurationIn(resolve(home)),
    remedy: "`cells up` makes or starts a cloud there; without that name another one is asked",
  });
  if (directory !== undefined) return inDirectory(`--directory ${directory}`, directory);
  const [file, home] = [named("CELLS_CONFIG"), named("CELLS_HOME")];
  if (file !== undefined)
    return { by: `CELLS_CONFIG=${file}`, file, remedy: "set it to a file that `cells credential add --out` wrote" };
  if (home !== undefined) return inDirectory(`CELLS_HOME=${home}`, home);
  const context = named("CELLS_CONTEXT") ?? contextInUse();
  if (context !== undefined) {
    const by = named("CELLS_CONTEXT") === undefined ? `the context ${context}` : `CELLS_CONTEXT=${context}`;
    return { by, file: contextFile(context), remedy: "`cells context list` shows those that are there" };
  }
  const written = writtenConfigurationFile();
  return { by: written, file: written, remedy: "`cells up` writes it, or set CELLS_CONFIG or CELLS_HOME" };
};

/** Configurations that `cells up` or `bootstrap` may have left for this user outside of the cloud's own directory. */
export const leftConfigurationFiles = (): readonly string[] => [
  ...new Set([clientConfigurationFile(), writtenConfigurationFile()]),
];

/** Undefined when there is none, or none that says both things. */
export const readClientConfiguration = (file = chosenCloud().file): ClientConfiguration | undefined => {
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
  { forInvoker = false }: { readonly forInvoker?: boolean } = {},
): void => {
  writeOwn(file, `${JSON.stringify(configuration, null, 2)}\n`, forInvoker);
  // Who makes a cloud asks that from now on.
  if (file === writtenConfigurationFile()) useContextFile(null);
};
/** Readable by its owner only, and there whole or not at all. */
export const writeOwn = (file: string, text: string, forInvoker = false): void => {
  const made = mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  const user = invokingUser();
  if (user !== undefined && (forInvoker || file.startsWith(`${user.home}/`))) {
    chownSync(draft, user.uid, user.gid);
    for (let path = dirname(file); made !== undefined && path.length >= made.length; path = dirname(path)) {
      chownSync(path, user.uid, user.gid);
    }
  }
  renameSync(draft, file);
};
