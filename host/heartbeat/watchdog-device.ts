import { closeSync, openSync, writeSync } from "node:fs";
import { readFile, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import koffi from "koffi";
import type { createObserver } from "../../runtime/observation/observer.ts";
import { type WatchdogWord, watchdogSeconds } from "./watchdog.ts";

/*
 * A watchdog of Linux (Documentation/watchdog/watchdog-api.rst): it counts from when its device is opened, each write has it begin anew, and
 * "V" just before it is closed ends that. Closed without, as when this process dies, it counts on.
 */
export interface Watchdog {
  tell(word: WatchdogWord): void;
  /** It rests, whatever is told after that. */
  close(): void;
}
type Log = ReturnType<typeof createObserver>["log"];
/** `WDIOC_SETTIMEOUT` of linux/watchdog.h. */
const setTimeoutRequest = 0xc0045706;
const complainEveryMs = 60_000;
const ioctl = koffi.load("libc.so.6").func("ioctl", "int", ["int", "unsigned long", "void *"]);

/**
 * Opens it and has it rest: what a process before this one has left counting ends with that. What could not be ended again is not opened.
 * @param sys where the kernel says what it is
 */
export const openWatchdog = async (file: string, log: Log, sys = "/sys/class/watchdog"): Promise<Watchdog> => {
  const refuse = (why: string): Error => new Error(`the watchdog ${file} (host.watchdog) ${why}`);
  const found = await stat(file).catch(() => null);
  if (found === null || !found.isCharacterDevice()) throw refuse("is no device of this machine");
  // The first one goes by two names.
  const name = basename(await realpath(file));
  const said = await readFile(join(sys, name === "watchdog" ? "watchdog0" : name, "nowayout"), "utf8").catch(() => "");
  if (said.trim() !== "0")
    throw refuse("cannot be told to rest again: an orderly restart of the Host Manager would reset the machine");
  const device = createWatchdog(file, log);
  device.begin();
  device.rest();
  return device;
};

const createWatchdog = (file: string, log: Log): Watchdog & { begin(): void; rest(): void } => {
  let fd: number | null = null;
  let isClosed = false;
  let complainedMs = Number.NEGATIVE_INFINITY;
  const begin = (): void => {
    if (fd !== null) return;
    try {
      fd = openSync(file, "w");
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      throw new Error(
        `the watchdog ${file} cannot be opened (${code})${code === "EBUSY" ? ": somebody else feeds it" : ""}`,
      );
    }
    const seconds = Buffer.alloc(4);
    seconds.writeInt32LE(watchdogSeconds);
    if (ioctl(fd, setTimeoutRequest, seconds) < 0 || seconds.readInt32LE() < watchdogSeconds) {
      rest();
      throw new Error(`the watchdog ${file} does not wait for ${watchdogSeconds} s`);
    }
  };
  const rest = (): void => {
    if (fd === null) return;
    // Closed in any case, and once.
    const open = fd;
    fd = null;
    try {
      writeSync(open, "V");
    } finally {
      closeSync(open);
    }
  };
  return {
    begin,
    rest,
    close: () => {
      isClosed = true;
      rest();
    },
    tell: (word) => {
      if (isClosed) return;
      try {
        if (word === "rest") {
          if (fd !== null) log("host/watchdog-rests", { device: file });
          rest();
        }
        if (word !== "feed") return;
        const rested = fd === null;
        begin();
        if (rested) log("host/watchdog-counts", { device: file, seconds: watchdogSeconds });
        if (fd !== null) writeSync(fd, "\0");
      } catch (error) {
        const nowMs = performance.now();
        if (nowMs - complainedMs < complainEveryMs) return;
        complainedMs = nowMs;
        log("host/watchdog-failed", { device: file, why: (error as Error).message });
      }
    },
  };
};
