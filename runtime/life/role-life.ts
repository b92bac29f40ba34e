import { AsyncLocalStorage } from "node:async_hooks";

/**
 * A process may run several roles, each of which fails and is started again alone (`roles-of-process.ts`). Whatever goes on
 * in a process goes on in the life of one role: what a role opens, sets and waits for inherits it, as does what comes of that.
 * So an error that nobody caught names its role. A process of one service has no such life.
 */
export interface RoleLife {
  readonly role: string;
  /** Called at once when it fails, before anything else can happen in the process: nothing of it may go on. */
  readonly breaks: Set<(error: Error) => void>;
  /** Ends as by a crash and begins anew. */
  fail(error: Error): void;
  /** Ends in order and begins anew. */
  restart(): void;
}
const lives = new AsyncLocalStorage<RoleLife>();

/** Null: this process is one service. */
export const currentLife = (): RoleLife | null => lives.getStore() ?? null;
export const inLife = <T>(life: RoleLife, run: () => T): T => lives.run(life, run);

/** Runs in the life of whoever calls this, and fails there, whoever calls what it returns: a socket may serve several roles. */
export const boundToLife = <A extends readonly unknown[]>(run: (...given: A) => void): ((...given: A) => void) => {
  const life = currentLife();
  if (life === null) return run;
  return (...given) => {
    try {
      inLife(life, () => run(...given));
    } catch (error) {
      life.fail(error as Error);
    }
  };
};

/** For what is the process' and no role's: it goes on when the role ends in whose life it happens. */
export const outsideLives = <T>(run: () => T): T => lives.exit(run);

/** Returns how to take it back. In a process without roles an error ends the process, and nothing is called. */
export const breakAtFailure = (broken: (error: Error) => void): (() => void) => {
  const life = currentLife();
  life?.breaks.add(broken);
  return () => void life?.breaks.delete(broken);
};
