import { type FSWatcher, readFileSync, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { listPeers } from "./peers.ts";

/**
 * Tells when the peers file has another content. What is watched is its directory, since the file is replaced as a whole
 * by a rename; inotify knows a directory by its inode, so this works through a bind mount and where it can only be read.
 * The watch is made anew every minute, with a look at the file: the directory may be another by then. Where the kernel has
 * no watch left to give (`fs.inotify.max_user_instances`), the file is read every second until it has.
 */
export interface PeersWatchTimes {
  readonly lookEveryMs: number;
  readonly unwatchedEveryMs: number;
}
const times: PeersWatchTimes = { lookEveryMs: 60_000, unwatchedEveryMs: 1000 };

/**
 * `changed` is told of every content that differs from the one before, beginning with the content at this call; not of a
 * file that cannot be read. One telling ends before the next. Whoever reads the file too calls this first. Returns how to
 * be told no more.
 */
export const watchPeers = (
  peersFile: string,
  changed: () => void | Promise<void>,
  { lookEveryMs, unwatchedEveryMs }: PeersWatchTimes = times,
): (() => void) => {
  let watcher: FSWatcher | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let last = contentOf(peersFile);
  let reading = false;
  let again = false;

  const look = async (): Promise<void> => {
    again = reading;
    if (reading) return;
    reading = true;
    const content = await readFile(peersFile, "utf8").catch(() => null);
    if (!stopped && content !== null && content !== last) {
      last = content;
      await changed();
    }
    reading = false;
    if (again && !stopped) await look();
  };
  const begin = (): void => {
    watcher?.close();
    try {
      watcher = watch(dirname(peersFile), { persistent: false }, (_event, name) => {
        if (name === null || name === basename(peersFile)) void look();
      });
      // The directory is gone, say; it may come back.
      watcher.on("error", () => end(unwatchedEveryMs));
      end(lookEveryMs, false);
    } catch {
      end(unwatchedEveryMs);
    }
    void look();
  };
  /** This watch, if it failed, and in any case the time until the next one. */
  const end = (nextMs: number, failed = true): void => {
    if (failed) watcher?.close();
    if (failed) watcher = null;
    if (timer !== null) clearTimeout(timer);
    if (!stopped) timer = setTimeout(begin, nextMs).unref();
  };
  begin();
  return () => {
    stopped = true;
    watcher?.close();
    if (timer !== null) clearTimeout(timer);
  };
};

/**
 * The names in the peers file under a prefix, and every later list of them that is another one. Rejects when the file
 * cannot be read at first; later that changes nothing.
 */
export const watchMembers = async (
  configuration: ProcessConfiguration,
  prefix: string,
  changed: (members: readonly PeerName[]) => void,
): Promise<{ readonly members: readonly PeerName[]; stop(): void }> => {
  let stopped = false;
  let members: readonly PeerName[] = [];
  let looking: Promise<void> = Promise.resolve();
  const look = async (): Promise<void> => {
    const found = await listPeers(configuration, prefix).catch(() => members);
    if (stopped || found.join(" ") === members.join(" ")) return;
    members = found;
    changed(found);
  };
  const unwatch = watchPeers(configuration.peersFile, () => {
    looking = looking.then(look);
    return looking;
  });
  const stop = (): void => {
    stopped = true;
    unwatch();
  };
  const first = listPeers(configuration, prefix);
  looking = first.then(
    (found) => {
      members = found;
    },
    () => undefined,
  );
  try {
    return { members: await first, stop };
  } catch (error) {
    stop();
    throw error;
  }
};

const contentOf = (file: string): string | null => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
};
