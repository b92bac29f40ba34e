import { fileURLToPath } from "node:url";
import type { ElementWithState } from "../../../model/contract/follow/rows.ts";
import { type Client, clientFromConfiguration } from "../../connection/client.ts";
import {
  listenerCommand,
  listenersOf,
  type Probe,
  probeCommand,
  seenIn,
  shopProbes,
  tryAll,
} from "../../connection/probe.ts";
import type { Context } from "../../context/context.ts";
import { readElements } from "../../output/follow.ts";
import { CommandFailure, exitCodes } from "../../terminal/failure.ts";
import { table } from "../../terminal/terminal.ts";
import { apply } from "../model/change.ts";
import { type UpArguments, up } from "../up.ts";
import {
  type Answered,
  type Attempt,
  addressOf,
  attempt,
  listenOutAndIn,
  outAndInAttempts,
  outAndInExamples,
  outsideOf,
} from "./out-and-in.ts";

/**
 * `cells demo`: from nothing to a cell of three machines, and then the proof, with packets that guests really send, that
 * what the specification permits passes and that nothing else does, within the cloud and between it and the outside.
 */
const cell = "shop";
const example = fileURLToPath(new URL("../../../examples/shop/shop.sf", import.meta.url));
const applyTimeoutMs = 300_000;
const execTimeoutMs = 20_000;
const guestTimeoutMs = 90_000;

interface Tried {
  readonly probe: Probe;
  readonly seen: "passes" | "blocked";
  /** What `why` says decides. */
  readonly verdict: string;
}

/** A machine that runs is still booting: its agent answers a little later, and has its address later still. */
const untilGuestAnswers = async (client: Client, cell: string, vm: string, address: string): Promise<void> => {
  const end = performance.now() + guestTimeoutMs;
  let last = "";
  for (;;) {
    try {
      const answer = await client.exec(cell, { vm, command: ["ip", "-4", "address"], timeoutMs: execTimeoutMs });
      if (answer.stdout.includes(address)) return;
      last = `it has not got its address ${address} yet`;
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      last = error.message;
    }
    if (performance.now() > end) {
      throw new CommandFailure(exitCodes.notAsDeclared, `the guest ${vm} does not answer: ${last}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
};

/** Something listens wherever a probe goes: then only the rules can be what stops it. */
const listen = (client: Client): Promise<unknown> =>
  Promise.all(
    listenersOf(shopProbes).map(({ vm, protocol, port }) =>
      client.exec(cell, { vm, command: listenerCommand(protocol, port), timeoutMs: execTimeoutMs }),
    ),
  );

const tryOut = async (client: Client, elements: readonly ElementWithState[], probe: Probe): Promise<Tried> => {
  const command = probeCommand(probe, addressOf(elements, probe.to));
  const answer = await client.exec(cell, { vm: probe.from, command, timeoutMs: execTimeoutMs });
  const { verdict } = await client.why(cell, probe);
  return { probe, seen: seenIn(probe, answer), verdict };
};

const nameOf = (probe: Probe): string =>
  `${probe.from} -> ${probe.to}${probe.port === null ? "" : `:${probe.port}`} ${probe.protocol}`;

export const demo = async (
  asked: Context,
  { directory, hosts, profile }: Pick<UpArguments, "directory" | "hosts" | "profile">,
): Promise<void> => {
  // The cloud that is made here, whichever another name would lead to.
  const context = directory === undefined ? asked : { ...asked, client: () => clientFromConfiguration(directory) };
  const { terminal } = context;
  if (context.json) throw new CommandFailure(exitCodes.usage, "the demo is for people: it has no --output json");
  const heading = (text: string): void => terminal.print(`\n${terminal.paint("bold", text)}`);

  heading("1. A cloud on this machine");
  await up(context, { hosts, servers: undefined, port: undefined, directory, profile, newProfile: "processes" });

  heading(`2. A cell from its specification, ${example}`);
  await apply(context, example, { yes: true, wait: true, timeoutMs: applyTimeoutMs });
  const client = context.client();
  const elements = await readElements(client, cell);

  heading("3. The proof: packets sent by the guests themselves");
  const guests = [...new Set(shopProbes.flatMap(({ from, to }) => [from, to]))];
  await Promise.all(
    guests.map(async (vm) => {
      const address = addressOf(elements, vm);
      await untilGuestAnswers(client, cell, vm, address);
      terminal.print(`${vm} answers, ${address}`);
    }),
  );
  await listen(client);
  const tried = await tryAll(shopProbes, async (probe) => {
    const result = await tryOut(client, elements, probe);
    const right = result.seen === probe.expected;
    terminal.print(`  ${mark(terminal, right)} ${nameOf(probe)}: ${result.seen}`);
    return result;
  });
  heading("Connection, expected and seen, and what decides");
  for (const line of table(rowsOf(tried, context))) terminal.print(line);

  heading("4. A way in and a way out: packets from outside, and to somebody there");
  const further = await outAndIn(context, client, directory, heading);

  heading("It is left running");
  for (const line of [
    "cells status                                     everything there is",
    "cells get shop --state                           the cell's elements",
    'cells why "shop/web/vm -> shop/db/vm:5432"       what decides about a connection',
    'cells why "internet -> web/server/vm:443"        and what about one from outside',
    "cells exec shop/web/vm -- sh -c 'ip a; hostname' a command in a guest",
    "cells web                                        the same in a browser, signed in as you",
    "cells down                                       ends it; --purge removes its data",
  ]) {
    terminal.print(`  ${line}`);
  }
  const all = [...tried.map(({ probe, seen }) => seen === probe.expected), ...further];
  const wrong = all.filter((isRight) => !isRight).length;
  if (wrong > 0) {
    throw new CommandFailure(exitCodes.notAsDeclared, `${wrong} of ${all.length} connections are not as expected`);
  }
};

/** @returns of each attempt whether it went as expected */
const outAndIn = async (
  context: Context,
  client: Client,
  directory: string | undefined,
  heading: (text: string) => void,
): Promise<readonly boolean[]> => {
  const { terminal } = context;
  const outside = await outsideOf(directory);
  const elements: ElementWithState[] = [];
  for (const { cell: name, file, guests } of outAndInExamples) {
    await apply(context, file, { yes: true, wait: true, timeoutMs: applyTimeoutMs });
    const own = await readElements(client, name);
    elements.push(...own);
    for (const vm of guests) await untilGuestAnswers(client, name, vm, addressOf(own, vm));
  }
  await listenOutAndIn(client, outside);
  const tried = await Promise.all(
    outAndInAttempts(outside.somebody).map(async (asked): Promise<readonly [Attempt, Answered]> => {
      const answered = await attempt(client, outside, elements, asked);
      const seen = answered.as === null ? answered.seen : `${answered.seen}, seen there as ${answered.as}`;
      terminal.print(`  ${mark(terminal, answered.seen === asked.expected)} ${connectionOf(asked)}: ${seen}`);
      return [asked, answered];
    }),
  );
  heading("Connection, expected and seen, and what decides");
  const rows = await Promise.all(
    tried.map(async ([asked, { seen }]) => {
      const { verdict } = await client.why(asked.cell, { ...asked, protocol: "tcp" });
      return rowOf(terminal, connectionOf(asked), asked.expected, seen, verdict);
    }),
  );
  for (const line of table(rows)) terminal.print(line);
  return tried.map(([asked, { seen }]) => seen === asked.expected);
};
const connectionOf = ({ from, to, port }: Attempt): string => `${from} -> ${to}:${port} tcp`;

const mark = (terminal: Context["terminal"], isRight: boolean): string =>
  isRight ? terminal.paint("green", "✓") : terminal.paint("red", "✗");
const rowOf = (
  terminal: Context["terminal"],
  connection: string,
  expected: string,
  seen: string,
  verdict: string,
): readonly string[] => [
  mark(terminal, seen === expected),
  connection,
  `expected ${expected}`,
  `seen ${seen}`,
  // The first sentence: `cells why` says the rest, with the rule that would open it.
  terminal.paint("grey", verdict.split(". ", 1)[0] ?? verdict),
];
const rowsOf = (tried: readonly Tried[], { terminal }: Context): readonly (readonly string[])[] =>
  tried.map(({ probe, seen, verdict }) => rowOf(terminal, nameOf(probe), probe.expected, seen, verdict));
