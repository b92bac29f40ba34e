import { createTickets, type Tickets, takeTicketInput } from "../../core/controller/requests/tickets.ts";
import { documentsOf } from "../../core/documents/readers/table.ts";
import type { Service } from "../../core/env.ts";
import { createOutbox, isObject } from "../../core/outbox.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { TestInstallation } from "../../runtime/installation.testing.ts";
import { createObserver } from "../../runtime/observation/observer.ts";
import { type RunningService, runService } from "../../runtime/process/process.ts";

/*
 * Controllers, as far as tickets concern them: what one does with a ticket and how it hears what that is worth, each with its store and its
 * connection to the service of users. All are in this process.
 */
export interface Follower {
  readonly cell: string;
  /** What the ticket with this hash is worth, as soon as that was said. */
  isOpen(hash: string): Promise<boolean>;
  /** When it was said, by the clock of `performance`, that a ticket opens nothing any more. */
  closed(): Promise<number>;
  stop(): Promise<void>;
}

const guard = (self: PeerName, hear: (isOpen: boolean) => void): Service<Tickets> => ({
  restore: (restored) => createTickets(self, restored, createOutbox(restored)),
  step: (state, input, now) => {
    const effects = takeTicketInput(state, input, now) ?? [];
    if (input.kind === "actual" && isObject(input.value)) hear(input.value.open === true);
    return { state, effects };
  },
  audience: () => null,
  entitled: () => false,
  accepts: () => false,
  read: documentsOf("controller"),
});

export const startFollowers = (
  installation: TestInstallation,
  cells: readonly string[],
): Promise<readonly Follower[]> => Promise.all(cells.map((cell) => startFollower(installation, cell)));

async function startFollower(installation: TestInstallation, cell: string): Promise<Follower> {
  const name = peerName(`controller.${cell}`);
  const { configuration } = await installation.configure(name);
  let isClosed = (_atMs: number): void => {};
  const hear = (isOpen: boolean): void => void (isOpen || isClosed(performance.now()));
  const observer = createObserver(name, () => undefined);
  const running: RunningService = await runService({ configuration, observer, service: guard(name, hear) });
  return {
    cell,
    isOpen: async (hash) => {
      const worth: Json = await running.request({ method: "TICKET-WORTH", hash });
      return isObject(worth) && worth.state === "open";
    },
    closed: () =>
      new Promise((resolve) => {
        isClosed = resolve;
      }),
    stop: () => running.stop({ goodbye: false }),
  };
}
