import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:https";
import { connect as connectTcp } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { percentile } from "../measure.ts";

/*
 * What clients do at a door, in processes of their own, so that their work is in nobody's figures. Certificates are not looked at: what is
 * measured is the other end.
 */
const host = "127.0.0.1";
const atOnce = 64;
/** What one source may open at once, a door says (`handshakes.ts`); many connections come from many. */
const ofSource = 200;
/** By number, from 1; none of them is the machine's own, which no door bounds. */
export const sourceOf = (number: number): string => `127.0.1.${number}`;

/** Opens so many connections that ask nothing. @returns how many stood, and how many of them stand still when all were opened */
export async function hold(port: number, count: number): Promise<Readonly<Record<string, number>>> {
  let [opened, ended] = [0, 0];
  const open = (number: number): Promise<void> =>
    new Promise((resolve) => {
      const below = connectTcp({ host, port, localAddress: sourceOf(1 + Math.floor(number / ofSource)) });
      below.on("error", () => resolve());
      const socket = connect({ socket: below, rejectUnauthorized: false }, () => {
        opened += 1;
        resolve();
        socket.once("close", () => {
          ended += 1;
        });
      });
      socket.resume().on("error", () => resolve());
    });
  for (let at = 0; at < count; at += atOnce)
    await Promise.all(Array.from({ length: Math.min(atOnce, count - at) }, (_, each) => open(at + each)));
  await sleep(500);
  return { opened, standing: opened - ended };
}

export interface Asked {
  readonly port: number;
  readonly path: string;
  readonly credential: string;
  /** Where it comes from. */
  readonly localAddress: string;
}
const ask = (agent: Agent, { port, path, credential, localAddress }: Asked): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${credential}` };
    request({ host, port, path, agent, headers, localAddress, rejectUnauthorized: false }, (answer) => {
      answer
        .resume()
        .once("end", () => resolve(answer.statusCode ?? 0))
        .once("error", reject);
    })
      .once("error", reject)
      .end();
  });
const withAgent = async <T>(work: (agent: Agent) => Promise<T>): Promise<T> => {
  const agent = new Agent({ keepAlive: true });
  try {
    return await work(agent);
  } finally {
    agent.destroy();
  }
};

/** Asks as fast as answers come, over so many connections, until it is ended. */
export const flood = (asked: Asked, connections: number): Promise<unknown> =>
  withAgent(async (agent) => {
    const one = async (): Promise<never> => {
      for (;;) await ask(agent, asked).catch(() => sleep(20));
    };
    return Promise.all(Array.from({ length: connections }, one));
  });

/** Connects anew for each request, as fast as it can, from so many places at once, until it is ended. */
export const connects = (asked: Asked, connections: number): Promise<unknown> => {
  const one = async (): Promise<never> => {
    for (;;) {
      const agent = new Agent({ keepAlive: false });
      await ask(agent, asked).catch(() => sleep(20));
      agent.destroy();
    }
  };
  return Promise.all(Array.from({ length: connections }, one));
};

/** Asks 25 times a second for so long. Rejects where anything but 200 is answered. */
export const asksSteadily = (asked: Asked, count: number): Promise<Readonly<Record<string, number>>> =>
  withAgent(async (agent) => {
    const times: number[] = [];
    for (let at = 0; at < count; at += 1) {
      const began = performance.now();
      const status = await ask(agent, asked);
      times.push(performance.now() - began);
      if (status !== 200) throw new Error(`the neighbour was answered ${status}`);
      await sleep(Math.max(0, 40 - (performance.now() - began)));
    }
    return { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) };
  });

/** The same program as another process. @returns what it says, once it says it */
export function beside(words: readonly string[]): {
  readonly said: Promise<Readonly<Record<string, number>>>;
  readonly end: () => Promise<void>;
} {
  const child: ChildProcess = spawn(process.execPath, [process.argv[1] ?? "", ...words], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const said = (async () => {
    if (child.stdout === null) throw new Error("it has no output");
    for await (const line of createInterface({ input: child.stdout }))
      return JSON.parse(line) as Readonly<Record<string, number>>;
    throw new Error(`"${words[0] ?? ""}" ended and said nothing`);
  })();
  // It may be ended before anybody asks what it says.
  said.catch(() => undefined);
  return {
    said,
    end: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
