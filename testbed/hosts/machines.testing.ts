import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { peerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { type Ended, runCommand } from "../command.ts";

/**
 * Machines as an operator has them, for tests: each in namespaces of its own, with an /etc, a /var/lib and a /run that no
 * other sees, and nothing in common but a wire. No systemd runs there: a small runner starts what the units say, as far as
 * the user, the capabilities and the command are concerned.
 */
export interface Wire {
  machine(name: string, address: string): Promise<Machine>;
  /** Ends all, and everything in them. */
  remove(): Promise<void>;
}
export interface Machine {
  readonly name: string;
  readonly address: string;
  /** A command in it, to its end. */
  run(command: readonly string[], input?: string): Promise<Ended>;
  /** `cells ARGS`, as a user who is root there. */
  cells(args: readonly string[], input?: string): Promise<Ended>;
  /** The same, while it goes on: its lines as they come. */
  begin(args: readonly string[], input?: string): Running;
  /** A unit: to its end where it is a oneshot, otherwise until the wire is removed. */
  startUnit(unit: string): Promise<void>;
  /** A file of the machine; null: it is not there. */
  read(file: string): Promise<string | null>;
  /** A process of the machine, until the wire is removed. */
  start(command: readonly string[]): Running;
}
export interface Running {
  readonly lines: string[];
  readonly ended: Promise<number | null>;
  end(): Promise<void>;
}

const cli = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));
const prefixLength = 16;

/** Process 1 of a machine. What is `own` is the machine's, the rest of the file system is shown read-write as it is. */
const firstProcess = `
mount --make-rprivate /
cp -a /etc "$1/etc"
mkdir "$1/lib"
mount --bind "$1/etc" /etc
mount --bind "$1/lib" /var/lib
mount -t tmpfs -o mode=755 tmpfs /run
mount -t sysfs sysfs /sys
ip link set lo up
echo ready
exec cat
`;

/** A process that holds namespaces; `init` is the one in them. */
export const startHolder = async (args: readonly string[]): Promise<{ outer: ChildProcess; init: number }> => {
  // It ends with its standard input, so that nothing stays when a test is ended by force.
  const outer = spawn("unshare", [...args], { stdio: ["pipe", "pipe", "ignore"] });
  const ready = await new Promise<boolean>((resolve) => {
    createInterface({ input: outer.stdout ?? process.stdin }).once("line", () => resolve(true));
    outer.once("exit", () => resolve(false));
  });
  if (!ready) throw new Error("the namespaces of a machine could not be made");
  const pid = outer.pid ?? 0;
  return { outer, init: childOf(pid) ?? pid };
};

const childOf = (pid: number): number | null => {
  const [child = ""] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  return child === "" ? null : Number(child);
};

export const endHolder = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
};

/** The wire: a bridge in a network namespace of its own. */
export const layWire = async (): Promise<Wire> => {
  const directory = mkdtempSync(join(tmpdir(), "cells-wire-"));
  const holders: ChildProcess[] = [];
  const script =
    "ip link add wire type bridge forward_delay 0 mcast_snooping 0; ip link set wire up; echo ready; exec cat";
  const wire = await startHolder(["--net", "sh", "-euc", script]);
  holders.push(wire.outer);
  return {
    machine: async (name, address) => {
      const own = join(directory, name);
      mkdirSync(own);
      const namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
      const { outer, init } = await startHolder([...namespaces, "sh", "-euc", firstProcess, "cells-machine", own]);
      holders.push(outer);
      const device = `v-${name}`;
      const make = `ip link add ${device} type veth peer name eth0 netns ${init}; ip link set ${device} master wire up`;
      execFileSync("nsenter", [`--net=/proc/${wire.init}/ns/net`, "sh", "-euc", make]);
      const machine = inside(name, address, init);
      const network = `ip address add ${address}/${prefixLength} dev eth0; ip link set eth0 up`;
      const made = await machine.run(["sh", "-euc", network]);
      if (made.code !== 0) throw new Error(made.stderr);
      return machine;
    },
    remove: async () => {
      await Promise.all(holders.reverse().map(endHolder));
      rmSync(directory, { recursive: true, force: true });
    },
  };
};

const inside = (name: string, address: string, init: number): Machine => {
  const enter = ["--mount", "--net", "--pid", `--target=${init}`, "--"];
  const own = [process.execPath, "--disable-warning=ExperimentalWarning", cli];
  const environment = ["env", "CELLS_CONFIG=/etc/cells-client.json"];
  const run = (command: readonly string[], input = ""): Promise<Ended> =>
    runCommand("nsenter", [...enter, ...command], { input });
  const read = async (file: string): Promise<string | null> => {
    const { code, stdout } = await run(["cat", file]);
    return code === 0 ? stdout : null;
  };
  return {
    name,
    address,
    run,
    read,
    start: (command) => begin("nsenter", [...enter, ...command]),
    cells: (args, input) => run([...environment, ...own, ...args], input),
    begin: (args, input) => begin("nsenter", [...enter, ...environment, ...own, ...args], input),
    startUnit: async (unit) => {
      const text = await read(`/etc/systemd/system/${unit}`);
      if (text === null) throw new Error(`${name} has no unit ${unit}`);
      const command = commandOf(text);
      if (!/^Type=oneshot$/m.test(text)) {
        begin("nsenter", [...enter, ...command]);
        return;
      }
      const { code, stderr } = await run(command);
      if (code !== 0) throw new Error(`${unit} of ${name} ended with ${code}: ${stderr}`);
    },
  };
};

/** What a unit starts, with the capabilities that it leaves (systemd.exec(5)). */
export const commandOf = (unit: string): readonly string[] => {
  const value = (key: string): string | undefined => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];
  const capabilities = (value("CapabilityBoundingSet") ?? "")
    .split(" ")
    .filter((each) => each !== "")
    .map((each) => `+${each.replace("CAP_", "").toLowerCase()}`);
  const directory = value("RuntimeDirectory");
  const runtime =
    directory === undefined
      ? ""
      : `mkdir -p /run/${directory}; chmod ${value("RuntimeDirectoryMode")} /run/${directory};`;
  return [
    "setpriv",
    ...(capabilities.length === 0 ? [] : [`--bounding-set=-all,${capabilities.join(",")}`]),
    ...(value("NoNewPrivileges") === "yes" ? ["--no-new-privs"] : []),
    "--",
    "sh",
    "-euc",
    `umask ${value("UMask") ?? "0022"}; ${runtime} exec "$@"`,
    "unit",
    ...(value("ExecStart") ?? "").split(" "),
  ];
};

const begin = (command: string, args: readonly string[], input = ""): Running => {
  const child = spawn(command, [...args], { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => undefined).end(input);
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => {
      // A machine that runs for a test says little; what it says first is of use when the test fails.
      if (lines.length < 2000) lines.push(line);
    });
  const ended = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  return {
    lines,
    ended,
    end: async () => {
      // nsenter waits for the process that it started in the other namespaces, and passes no signal on.
      const inner = childOf(child.pid ?? 0);
      if (inner !== null) process.kill(inner, "SIGTERM");
      await ended;
    },
  };
};

/** Asks until the answer is right; two minutes only keep a failing test from hanging. */
export const until = async <T>(what: string, ask: () => Promise<T> | T, holds: (answer: T) => boolean): Promise<T> => {
  const end = performance.now() + 120_000;
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    assert.ok(performance.now() < end, `still not so: ${what}; last: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};
export const says = (running: Running, line: RegExp): Promise<unknown> =>
  until(
    `it says ${line}`,
    () => running.lines,
    (lines) => lines.some((each) => line.test(each)),
  );

const repository = fileURLToPath(new URL("../..", import.meta.url));
const gatewayAt = "/var/lib/cells/gateway";

/**
 * What a shell does for a gateway that is no VM but a process of the first machine: its certificate, its configuration and its
 * address on the bridge. The program's arguments are `command`.
 * @param from where that machine has the repository @param node its Node @param credentialHashes who may ask
 */
export const gatewayProcess = (
  address: string,
  port: number,
  credentialHashes: readonly string[],
  { from = repository, node = process.execPath }: { readonly from?: string; readonly node?: string } = {},
): { readonly prepare: string; readonly input: string; readonly command: readonly string[] } => {
  const configuration: ProcessConfiguration = {
    name: peerName("gateway"),
    role: "gateway",
    address,
    directory: gatewayAt,
    runDirectory: gatewayAt,
    certificate: {
      certFile: "/var/lib/cells/authority/gateway.cert.pem",
      keyFile: "/var/lib/cells/authority/gateway.key.pem",
      caFile: "/var/lib/cells/authority/authority.pem",
    },
    peersFile: "/var/lib/cells/host/peers.json",
    gateway: { listen: { address, port }, credentialHashes: [...credentialHashes] },
  };
  const certificates = join(from, "runtime/identity/certificates.ts");
  const issue = `import { issueCertificate } from "${certificates}"; await issueCertificate("/var/lib/cells/authority", "gateway", ["${address}"]);`;
  return {
    prepare: `mkdir -p ${gatewayAt}; cat > ${gatewayAt}/config.json; ip address add ${address}/32 dev cells0
${node} --input-type=module-typescript -e '${issue}'`,
    input: JSON.stringify(configuration),
    command: [node, join(from, "gateway/main.ts"), `${gatewayAt}/config.json`],
  };
};
/** Such a gateway, once it listens, on port 7127. */
export const startGateway = async (machine: Machine, address: string, credentialHash: string): Promise<void> => {
  const { prepare, input, command } = gatewayProcess(address, 7127, [credentialHash]);
  const { code, stderr } = await machine.run(["sh", "-euc", prepare], input);
  assert.equal(code, 0, stderr);
  await says(machine.start(command), /gateway\/listening/);
};
