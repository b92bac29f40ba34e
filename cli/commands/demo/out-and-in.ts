import { fileURLToPath } from "node:url";
import type { ElementWithState } from "../../../model/contract/follow/rows.ts";
import type { Client } from "../../connection/client.ts";
import { listenerCommand } from "../../connection/probe.ts";
import { CommandFailure, exitCodes } from "../../terminal/failure.ts";

/**
 * The way in and the way out of a testbed, by two examples: a web server with an address of its own, and a machine that reaches
 * somebody outside through its cell's small VM. On the testbed a namespace is the outside, with the upstream router and a
 * server behind it, which says whom it sees.
 */
const example = (name: string): string => fileURLToPath(new URL(`../../../examples/${name}.sf`, import.meta.url));
export const outAndInExamples = [
  { cell: "web", file: example("public-web"), guests: ["web/server/vm"] },
  { cell: "team", file: example("egress"), guests: ["team/egress/vm", "team/worker/vm"] },
] as const;

export interface Attempt {
  readonly cell: string;
  /** Paths of VMs, and an address of somebody outside. */
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly expected: "passes" | "blocked";
}
export interface Answered {
  readonly seen: "passes" | "blocked";
  /** Whom somebody outside saw. */
  readonly as: string | null;
}

const answersAt = 8080;
const closedPort = 22;
export const outAndInAttempts = (somebody: string): readonly Attempt[] => [
  { cell: "web", from: somebody, to: "web/server/vm", port: 443, expected: "passes" },
  { cell: "team", from: "team/worker/vm", to: somebody, port: answersAt, expected: "passes" },
  { cell: "web", from: somebody, to: "web/server/vm", port: closedPort, expected: "blocked" },
  { cell: "web", from: "web/server/vm", to: somebody, port: answersAt, expected: "blocked" },
  { cell: "team", from: somebody, to: "team/egress/vm", port: closedPort, expected: "blocked" },
];

/** So long is waited for an answer that shall not come; for one that shall, as long as a busy machine with emulated guests takes. */
const waitSeconds = { blocked: 2, passes: 15 } as const;
const execTimeoutMs = 30_000;

/** A request of HTTP, which any server answers with something; the server outside says whom it sees without being asked. */
const commandOf = (address: string, { port, expected }: Attempt): readonly string[] => {
  const seconds = waitSeconds[expected];
  const ask = `printf 'GET / HTTP/1.0\\r\\n\\r\\n'`;
  return ["sh", "-c", `${ask} | socat -t${seconds} - TCP4:${address}:${port},connect-timeout=${seconds}`];
};
/** Who refuses has had the packet, and his answer has come back. */
const answeredBy = (stdout: string, stderr: string): Answered => ({
  seen: stdout !== "" || stderr.includes("refused") ? "passes" : "blocked",
  as: /^seen as (\S+)/.exec(stdout)?.[1] ?? null,
});

const isPath = (end: string): boolean => end.includes("/");
/** All pools of a testbed that are not external are in 10.0.0.0/8. */
const isExternal = (address: string): boolean => !address.startsWith("10.");
/** Addresses of the VM's interfaces, which stand beside it: of `shop/web/interface` for `shop/web/vm`. */
const addressesOf = (elements: readonly ElementWithState[], vm: string): readonly string[] => {
  const group = vm.slice(0, vm.lastIndexOf("/"));
  return elements.flatMap(({ path, type, state }) =>
    type === "VirtualInterface" && path.startsWith(`${group}/`) && state.address != null ? [state.address] : [],
  );
};
/** @param outside the one that they know outside */
export const addressOf = (elements: readonly ElementWithState[], vm: string, outside = false): string => {
  const address = addressesOf(elements, vm).find((each) => !outside || isExternal(each));
  if (address === undefined)
    throw new CommandFailure(exitCodes.notAsDeclared, `${vm} has no address${outside ? " outside" : ""}`);
  return address;
};

export interface Outside {
  readonly somebody: string;
  run(command: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }>;
}
/** Of the testbed in that directory. */
export const outsideOf = async (directory: string | undefined): Promise<Outside> => {
  const { runOutside } = await import("../../../testbed/command.ts");
  const { outside } = await import("../../../testbed/configuration.ts");
  return { somebody: outside.somebody, run: (command) => runOutside(command, directory) };
};

/** Something listens wherever a packet shall not arrive, and somebody outside answers. */
export const listenOutAndIn = async (client: Client, outside: Outside): Promise<void> => {
  const server = `socat TCP4-LISTEN:${answersAt},fork,reuseaddr SYSTEM:"echo seen as \\$SOCAT_PEERADDR"`;
  await outside.run(["sh", "-c", `${server} >/dev/null 2>&1 </dev/null & sleep 0.2`]);
  const command = listenerCommand("tcp", closedPort);
  for (const { cell, to: vm, port } of outAndInAttempts(outside.somebody))
    if (port === closedPort) await client.exec(cell, { vm, command, timeoutMs: execTimeoutMs });
};

export const attempt = async (
  client: Client,
  outside: Outside,
  elements: readonly ElementWithState[],
  asked: Attempt,
): Promise<Answered> => {
  const { cell, from, to } = asked;
  const command = commandOf(isPath(to) ? addressOf(elements, to, true) : to, asked);
  const { stdout, stderr } = isPath(from)
    ? await client.exec(cell, { vm: from, command, timeoutMs: execTimeoutMs })
    : await outside.run(command);
  return answeredBy(stdout, stderr);
};
