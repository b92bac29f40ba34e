import { readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { usage } from "../terminal/failure.ts";
import {
  type ClientConfiguration,
  contextFile,
  contextInUse,
  contextsDirectory,
  isContextName,
  readClientConfiguration,
  useContextFile,
  writeClientConfiguration,
} from "./client-config.ts";

/** Configurations by name, for whoever has several installations or accounts; one of them may be in use. */
export interface NamedContext {
  readonly name: string;
  readonly url: string;
  /** What it shows there. */
  readonly as: "session" | "credential";
  readonly inUse: boolean;
}

export const contexts = (): readonly NamedContext[] => {
  let files: readonly string[] = [];
  try {
    files = readdirSync(contextsDirectory());
  } catch {
    // There are none yet.
  }
  return files.toSorted().flatMap((file) => {
    const name = basename(file, ".json");
    const found = isContextName(name) ? readClientConfiguration(join(contextsDirectory(), file)) : undefined;
    if (found === undefined) return [];
    const as = found.credential.startsWith("session.") ? "session" : "credential";
    return [{ name, url: found.url, as, inUse: name === contextInUse() }];
  });
};
const demand = (name: string): void => {
  const all = contexts().map((each) => each.name);
  if (all.includes(name)) return;
  const there = all.length === 0 ? "`cells login ann@acme --context NAME` makes one" : `there are ${all.join(", ")}`;
  throw usage(`there is no context ${name}: ${there}`);
};

/** @param name null: none is in use from now on */
export const useContext = (name: string | null): void => {
  if (name !== null) demand(name);
  useContextFile(name);
};
export const addContext = (name: string, from: string): ClientConfiguration => {
  const configuration = readClientConfiguration(from);
  if (configuration === undefined)
    throw usage(
      `${from} is no configuration: give it a file that \`cells login --out\` or \`cells credential add\` wrote`,
    );
  const file = contextFile(name);
  if (contexts().some((each) => each.name === name)) throw usage(`there is a context ${name} already: delete it first`);
  writeClientConfiguration(configuration, file);
  return configuration;
};
export const deleteContext = (name: string): void => {
  demand(name);
  if (contextInUse() === name) useContextFile(null);
  rmSync(contextFile(name));
};
