import { setTimeout as sleep } from "node:timers/promises";
import { writeErrorLine } from "../life/error-line.ts";
import { currentLife, inLife, type RoleLife } from "../life/role-life.ts";
import { stopLife } from "../life/signals.ts";
import { transportLimits } from "../transport/connections/connection.ts";
import { createLinks, shareLinks } from "../transport/links/links.ts";

/**
 * Several roles in one process: one start of Node, one heap, one event loop. A role that fails is named, loses what it has
 * open as by a crash, and is started again alone from its store, ever later when it fails over and over. The others go on.
 *
 * Everything that a role leaves behind goes with the process alone: one that cannot be ended in time, or whose port is still
 * taken by an earlier life of it, ends the process, and whoever started that starts it again.
 */
export interface ProcessRole {
  readonly name: string;
  /** Resolves when the role answers; it then runs until it is stopped (`signals.ts`). */
  readonly run: () => Promise<void>;
  /** Whether it answers says nothing of the process: the others are not to be ended for it. */
  readonly isApart?: true;
}
export interface RestTimes {
  readonly firstMs: number;
  readonly longestMs: number;
  /** A role that answered for so long is started at once when it fails. */
  readonly lastingMs: number;
  /** For what a role has open to end. */
  readonly endMs: number;
}
const restTimes: RestTimes = { firstMs: 200, longestMs: 10_000, lastingMs: 30_000, endMs: 10_000 };

export interface RolesOfProcess {
  /** True while every role answers that counts. */
  answer(): boolean;
}

/**
 * Starts all roles; each is on its own from then on. Once in a process, whose uncaught errors it takes. `answers` is called
 * whenever one begins to answer.
 */
export const runRoles = (
  roles: readonly ProcessRole[],
  answers: () => void = () => undefined,
  times: RestTimes = restTimes,
): RolesOfProcess => {
  const answering = new Set<string>();
  for (const event of ["uncaughtException", "unhandledRejection"] as const)
    process.on(event, (thrown: unknown) => {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      const life = currentLife();
      if (life !== null && living.has(life)) life.fail(error);
      else if (life === null) endProcess("process", error);
      // Of a life that is over: what it has left behind fails, too.
      else writeErrorLine(life.role, "process/failed", error);
    });
  const living = new Set<RoleLife>();
  const links = createLinks(transportLimits);

  const keep = async ({ name, run }: ProcessRole): Promise<void> => {
    for (let rest = times.firstMs; ; ) {
      const over = Promise.withResolvers<Error | null>();
      const fail = (error: Error): void => {
        if (!living.delete(life)) return;
        answering.delete(name);
        for (const broken of life.breaks) broken(error);
        over.resolve(error);
      };
      const life: RoleLife = { role: name, breaks: new Set(), fail, restart: () => over.resolve(null) };
      living.add(life);
      let since = Number.POSITIVE_INFINITY;
      shareLinks(links, () => inLife(life, run)).then(() => {
        if (!living.has(life)) return;
        answering.add(name);
        since = performance.now();
        answers();
      }, fail);
      const error = await over.promise;
      living.delete(life);
      answering.delete(name);
      if (error !== null) {
        writeErrorLine(name, "process/failed", error);
        // An earlier life of it has not let go.
        if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") endProcess(name, error);
      }
      const ended = await Promise.race([stopLife(life), sleep(times.endMs, false, { ref: false })]);
      if (!ended) endProcess(name, new Error("what it has open does not end"));
      if (error === null || performance.now() - since >= times.lastingMs) rest = times.firstMs;
      await sleep(rest);
      rest = Math.min(2 * rest, times.longestMs);
    }
  };
  for (const role of roles) void keep(role);
  return { answer: () => roles.every(({ name, isApart }) => isApart === true || answering.has(name)) };
};

const endProcess = (role: string, error: Error): never => {
  writeErrorLine(role, "process/failed", error);
  process.exit(1);
};
