import type { Json } from "../../model/json/json.ts";
import { wakeable } from "../../runtime/process/wakeable.ts";
import type { HypervisorDriver } from "../drivers/hypervisor/driver.ts";
import type { AwaitedGuest, HostRequest } from "../host-requests.ts";

/**
 * Asks the agents of guests that have not come up yet, until each has answered once. A question waits in the guest's channel until
 * somebody reads there, so the answer comes as soon as the agent does. It judges nothing.
 */
export interface GuestWatch {
  /** Something may have changed in who is waited for. */
  wake(): void;
  close(): void;
}
export interface GuestWatchOptions {
  readonly hypervisor: Pick<HypervisorDriver, "answers">;
  readonly request: (request: Json) => Promise<Json>;
  /** Default: the machine's. Returns what cancels it. */
  readonly after?: (ms: number, run: () => void) => () => void;
}

/** Others who have business with the agent have their turn after each question. */
const questionMs = 1000;
const pauseMs = 250;

const machineTimer = (ms: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};
const nameOf = ({ vm, incarnation, reboots }: AwaitedGuest): string => `${vm}@${incarnation}.${reboots}`;

export const createGuestWatch = ({ hypervisor, request, after = machineTimer }: GuestWatchOptions): GuestWatch => {
  const ask = (message: HostRequest): Promise<Json> => request(message as unknown as Json);
  const asked = new Set<string>();
  let awaited: ReadonlySet<string> = new Set();
  const cancels = new Set<() => void>();
  let closed = false;

  const question = async (guest: AwaitedGuest): Promise<void> => {
    const name = nameOf(guest);
    if (closed || !awaited.has(name)) {
      asked.delete(name);
      return;
    }
    const isUp = await hypervisor.answers(guest.vm, guest.incarnation, questionMs).catch(() => false);
    if (closed) return;
    if (isUp) {
      await ask({ kind: "guest-up", guest }).catch(() => undefined);
      asked.delete(name);
      return;
    }
    const cancel = after(pauseMs, () => {
      cancels.delete(cancel);
      void question(guest);
    });
    cancels.add(cancel);
  };
  // It fails when the service is ending.
  const look = wakeable(
    async () => {
      const guests = (await ask({ kind: "awaited-guests" })) as unknown as readonly AwaitedGuest[];
      awaited = new Set(guests.map(nameOf));
      for (const guest of guests) {
        if (asked.has(nameOf(guest))) continue;
        asked.add(nameOf(guest));
        void question(guest);
      }
    },
    () => closed,
  );
  return {
    wake: () => {
      void look();
    },
    close: () => {
      closed = true;
      for (const cancel of cancels) cancel();
    },
  };
};
