import { readFileSync } from "node:fs";
import type { Service } from "../../core/env.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createEcho, type EchoRequest } from "../http/echo.testing.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { restartSelf, stopAtSignals } from "../life/signals.ts";
import { createObserver, logFatalErrors } from "../observation/observer.ts";
import { type RunningService, runService } from "./process.ts";
import { runRoles } from "./roles-of-process.ts";

/** How a role is made to fail: in a step that has begun, in work that nobody waits for, in a timer, while it starts again. */
export type Failure = "step" | "rejection" | "timer" | "start" | "restart" | "port" | "nobody";
export type Asked = EchoRequest | { readonly ask: "fail"; readonly how: Failure } | { readonly ask: "lives" };

/** Run with `fork` and a configuration file for each role: the roles of all in one process, asked over its channel by name. */
const failing = (self: PeerName): Service<object> => {
  const echo = createEcho(self) as Service<object>;
  return {
    ...echo,
    step: (state, input, now) => {
      const asked = input.kind === "request" ? (input.request as Asked) : null;
      if (asked?.ask !== "fail") return echo.step(state, input, now);
      // Half of it is done: this must never be seen.
      (state as { desired: Map<string, Json> }).desired.set("number/half", 1);
      throw new Error("a step failed");
    },
  };
};

if (process.send !== undefined && import.meta.filename === process.argv[1]) {
  const running = new Map<string, RunningService>();
  const lives = new Map<string, number>();
  const failures = new Map<string, (how: Failure) => void>();
  let failsToStart = 0;
  const roles = process.argv.slice(2).map((file) => {
    const configuration = JSON.parse(readFileSync(file, "utf8")) as ProcessConfiguration;
    const { name } = configuration;
    const run = async (): Promise<void> => {
      lives.set(name, (lives.get(name) ?? 0) + 1);
      const observer = createObserver(name);
      logFatalErrors(observer);
      if (failsToStart > 0) {
        failsToStart -= 1;
        throw new Error("a start failed");
      }
      // Only what is said within the role's life is its own.
      const poll = setInterval(() => {
        const how = asked.shift();
        if (how === "timer") throw new Error("a timer failed");
        if (how === "rejection") void Promise.reject(new Error("a rejection failed"));
        if (how === "restart") restartSelf();
        if (how === "port") throw Object.assign(new Error("a port is taken"), { code: "EADDRINUSE" });
      }, 5);
      const asked: Failure[] = [];
      failures.set(name, (how) => void asked.push(how));
      stopAtSignals(async () => clearInterval(poll));
      running.set(name, await runService({ configuration, observer, service: failing(name) }));
    };
    return { name, run };
  });
  // It never answers: nobody waits for it.
  const apart = { name: "apart", isApart: true, run: () => new Promise<void>(() => undefined) } as const;
  const { answer } = runRoles([...roles, apart], () => undefined, {
    firstMs: 20,
    longestMs: 80,
    lastingMs: 60_000,
    endMs: 5000,
  });
  process.on("message", ({ id, role, request }: { id: number; role: string; request: Asked }) => {
    const reply = (response: Json): void => void process.send?.({ id, response });
    if (request.ask === "lives") return reply({ lives: lives.get(role) ?? 0, all: answer() });
    if (request.ask !== "fail") {
      running
        .get(role)
        ?.request(request)
        .then(reply, (error: Error) => reply({ error: error.message }));
      return;
    }
    if (request.how === "nobody")
      setImmediate(() => {
        throw new Error("nobody failed");
      });
    if (request.how === "start") failsToStart = 3;
    if (request.how === "step" || request.how === "start")
      running
        .get(role)
        ?.request(request)
        .then(reply, (error: Error) => reply({ error: error.message }));
    else {
      failures.get(role)?.(request.how);
      reply(null);
    }
  });
  process.send({ id: 0, response: null });
}
