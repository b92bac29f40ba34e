import { spawn } from "node:child_process";
import { realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { longestAnswer, nothingRead, type PowerController, type PowerDriver } from "../../core/ha/power/controller.ts";
import { readMetadata, whyNot } from "./agent-metadata.ts";

/*
 * Programs of `fence-agents` (decision 124). They are others' code, for devices that nobody here has, so little of what one does is
 * believed: it is off where two runs say so, each by its exit code and by the word for it. 2 alone is also what Python exits with when it
 * cannot read a script, and the word alone what one prints before it fails.
 *
 * One runs as nobody, in a PID namespace that ends with it, so nothing of it is left when its time is over. Options go in on its standard
 * input, as its protocol has it, what it has to complain of is read by nobody: options that it does not know are among that.
 */
const directoryOfAgents = "/usr/sbin";
const nobody = 65534;
const lookAgainMs = 1000;
/** Of util-linux. Becoming somebody else makes a process forget that it ends with its parent, so that is said last. */
const contained = [
  "--pid",
  "--fork",
  "--kill-child=KILL",
  "--mount-proc",
  "setpriv",
  `--reuid=${nobody}`,
  `--regid=${nobody}`,
  "--clear-groups",
  "--no-new-privs",
  "--inh-caps=-all",
  "--bounding-set=-all",
  "--pdeathsig=KILL",
];

/** @param directory where the programs are; of no other one is run */
export const createAgentDriver = (directory = directoryOfAgents): PowerDriver => {
  const status = async (controller: PowerController, signal: AbortSignal): Promise<"on" | "off" | Unread> => {
    const said = await run(directory, controller, "status", signal);
    if (said instanceof Unread) return said;
    const words = [...said.text.matchAll(/^Status: ([A-Z]+)$/gm)].map(([, word]) => word);
    if (words.length === 1 && words[0] === "ON" && said.code === 0) return "on";
    if (words.length === 1 && words[0] === "OFF" && said.code === 2) return "off";
    return new Unread(`${controller.agent} does not say that the power is on or off`);
  };
  return {
    read: async (controller, signal) => {
      const first = await status(controller, signal);
      if (first instanceof Unread) return nothingRead(first.reason);
      await sleep(lookAgainMs, undefined, { signal }).catch(() => undefined);
      const second = await status(controller, signal);
      if (second instanceof Unread) return nothingRead(second.reason);
      return first === second
        ? { power: second, uuid: null, reason: null }
        : nothingRead(`${controller.agent} says once that the power is ${first}, and once that it is ${second}`);
    },
    off: async (controller, signal) => {
      await run(directory, controller, "off", signal);
    },
    examine: async (controller, signal) => {
      const { agent = "" } = controller;
      const said = await run(directory, { ...controller, options: {} }, "metadata", signal);
      if (said instanceof Unread) return said.reason;
      const metadata = said.code === 0 ? readMetadata(said.text) : null;
      return metadata === null ? `${agent} does not say what it is` : whyNot(metadata, controller);
    },
  };
};

/** Why nothing is known: a sentence without any secret. */
class Unread {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}
interface Ended {
  readonly code: number | null;
  readonly text: string;
}

/** Of a name that is none, of what somebody else may write, and of what lies elsewhere nothing is run. */
const programOf = async (directory: string, agent: string): Promise<string | Unread> => {
  if (!/^fence_[a-z0-9_]{1,40}$/.test(agent)) return new Unread("that is no name of an agent");
  try {
    const program = await realpath(join(directory, agent));
    if (dirname(program) !== (await realpath(directory)))
      return new Unread(`${agent} does not lie in the directory of agents`);
    const { uid, mode } = await stat(program);
    return uid === 0 && (mode & 0o022) === 0
      ? join(directory, agent)
      : new Unread(`${agent} can be changed by others than root`);
  } catch {
    return new Unread(`${agent} is not installed on the machine that was to ask by it`);
  }
};

/** Null: what is in them cannot be said in lines. */
const linesFor = (controller: PowerController, action: string): string | null => {
  const { address, user, password, plug, options = {} } = controller;
  const [ip = "", ipport] = address.split(":");
  // Of itself an agent tells without knowing anything.
  const reach = action === "metadata" ? {} : { ip, ipport, username: user === "" ? undefined : user, password, plug };
  const said = Object.entries({ ...options, ...reach, action }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  // A line begins after each of several characters.
  return said.every((line) => !/\p{Cc}|\p{Zl}|\p{Zp}/u.test(line)) ? said.map((line) => `${line}\n`).join("") : null;
};

const run = async (
  directory: string,
  controller: PowerController,
  action: "metadata" | "status" | "off",
  signal: AbortSignal,
): Promise<Ended | Unread> => {
  const { agent = "" } = controller;
  const program = await programOf(directory, agent);
  if (program instanceof Unread) return program;
  const lines = linesFor(controller, action);
  if (lines === null) return new Unread(`what ${agent} is to be told is not one line each`);
  if (signal.aborted) return new Unread(`${agent} did not end in time`);
  return new Promise((resolve) => {
    const child = spawn("unshare", [...contained, "--", program], {
      cwd: "/",
      stdio: ["pipe", "pipe", "ignore"],
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/nonexistent", LANG: "C" },
    });
    let text = "";
    const end = (ended: Ended | Unread): void => {
      // Its child goes with it, and with that everything that it has begun.
      child.kill("SIGKILL");
      child.stdout.destroy();
      signal.removeEventListener("abort", late);
      resolve(ended);
    };
    const late = (): void => end(new Unread(`${agent} did not end in time`));
    signal.addEventListener("abort", late);
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (text.length > longestAnswer) end(new Unread(`${agent} says more than anybody would read`));
    });
    child.on("error", () => end(new Unread(`${agent} cannot be started on the machine that was to ask by it`)));
    child.on("close", (code) => end({ code, text }));
    child.stdin.on("error", () => undefined);
    child.stdin.end(lines);
  });
};
