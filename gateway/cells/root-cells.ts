import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { componentOf, controllersPath } from "../../core/cells/controller-vm.ts";
import { rootCell } from "../../core/documents/cells.ts";
import type { ElementAnswer, Refusal } from "../../model/api.ts";
import { cellName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { isAuthorized } from "../../runtime/http/bearer.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { PeerBook, ProcessConfiguration } from "../../runtime/installation.ts";
import { controllerOf, isChildName } from "../requests/cell-names.ts";
import { RefusedError, refused } from "../requests/refused.ts";
import { isOfSession, type Tenants } from "../tenancy/tenants.ts";
import type { Registry } from "./registry.ts";

/*
 * Where the cloud runs in itself, a cell of the operator's is an element of the root cell, `cells/<cell>`: its controller's VM,
 * its quota and its end follow from that (decisions/0030, 0031). The gateway has no rights of its own there; whoever asks
 * for a cell to be made shows a credential of the root cell. Its first model is an empty one, which makes version 1.
 *
 * That a cell exists is read off the book of peers, where its controller is as long as it lives: nobody has to be asked, so
 * the other cells' requests pass while the root controller is away.
 */
const defaultLongestStartMs = 120_000;
/** The root controller holds an answer back for less than this. */
const heldBackMs = 90_000;
const answerTimeoutMs = 10_000;

/** As `elementPath` makes it, with a query or without. */
const elementForm = new RegExp(`^model/${rootCell}/cells/([^/?]+)(?:\\?|$)`);
const ownAttempts = 40;
const ownAgainMs = 250;

interface Answer {
  readonly status: number;
  readonly json: Json;
}

/** @param longestStartMs how long whoever wants a new cell waits for its controller at most */
export function createRootCells(
  configuration: ProcessConfiguration,
  operatorHashes: readonly string[],
  tenants: Pick<Tenants, "ticketFor" | "forget">,
  longestStartMs = defaultLongestStartMs,
): Registry {
  /** In place of a user's session: a ticket for the one cell that is asked about. */
  const shownOf = async (authorization: string, path: string): Promise<string> => {
    if (!isOfSession(authorization)) return authorization;
    const child = elementForm.exec(path)?.[1];
    if (child === undefined) throw refused(403, "forbidden", "what runs the cloud is for the operator's credential");
    return await tenants.ticketFor(rootCell, authorization, child);
  };
  const ask = async (
    method: "GET" | "PUT" | "DELETE",
    path: string,
    authorization: string,
    {
      body,
      signal = AbortSignal.timeout(answerTimeoutMs),
    }: { readonly body?: JsonObject; readonly signal?: AbortSignal } = {},
  ): Promise<Answer> => {
    try {
      const send = async () =>
        peerRequest(configuration, controllerOf(rootCell), {
          method,
          path: `/cells/${rootCell}/${path}`,
          headers: { authorization: await shownOf(authorization, path), "content-type": "application/json" },
          signal,
          idleTimeoutMs: heldBackMs,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      let answer = await send();
      if (answer.status === 401 && isOfSession(authorization)) {
        // The ticket is too old, or its user is out: then there is no other.
        answer.body.destroy();
        tenants.forget(rootCell, authorization, elementForm.exec(path)?.[1]);
        answer = await send();
      }
      return { status: answer.status, json: JSON.parse(await answer.text()) as Json };
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      if (signal.aborted && signal.reason?.name !== "TimeoutError") throw error;
      const message = `the controller of the root cell, which makes and ends cells, does not answer: ${(error as Error).message}`;
      throw refused(502, "controller-unreachable", message);
    }
  };
  const elementPath = (cell: string): string => `model/${rootCell}/cells/${cell}`;

  /** By a user the cell was bound to his account; until the service that says so has heard it, it is not there for him. */
  const untilOwn = async (cell: string, authorization: string): Promise<void> => {
    for (let attempt = 1; isOfSession(authorization); attempt += 1) {
      try {
        await tenants.ticketFor(cell, authorization);
        return;
      } catch (error) {
        if (attempt === ownAttempts) throw error;
        await sleep(ownAgainMs);
      }
    }
  };

  const inBook = async (): Promise<readonly string[]> => {
    const { peers } = JSON.parse(await readFile(configuration.peersFile, "utf8")) as PeerBook;
    return Object.keys(peers).flatMap((peer) =>
      peer.startsWith("controller.") ? [peer.slice("controller.".length)] : [],
    );
  };
  const names = async (authorization: string): Promise<readonly string[]> => {
    const { status, json } = await ask("GET", `model/${rootCell}`, authorization);
    // It has no model: its store was lost, and the book knows better.
    if (status === 404) return [...new Set([rootCell, ...(await inBook())])];
    if (status !== 200) return [rootCell];
    const { cells } = json as { readonly cells?: Readonly<Record<string, unknown>> };
    const made = Object.entries(cells ?? {}).filter(([, each]) => isCellController(each));
    const own = [rootCell, ...made.map(([name]) => name)];
    // Their child cells, to any depth: nobody but their controllers' names tells of them.
    const children = (await inBook()).filter((cell) => isChildName(cell) && own.includes(cell.split(".").at(-1) ?? ""));
    return [...own, ...children.sort()];
  };
  const end = async (cell: string, authorization: string): Promise<void> => {
    const answer = await ask("DELETE", elementPath(cell), authorization);
    if (answer.status !== 200 && answer.status !== 404) throw passedOn(answer);
  };

  /** Why there is no controller yet, as far as the root cell knows: its VM says more than its cell. */
  const whyNotYet = async (cell: string, authorization: string, otherwise: string): Promise<string> => {
    const vm = `${controllersPath}/${componentOf(cellName(cell))}/vm`;
    const told = await ask("GET", `why?element=${encodeURIComponent(vm)}`, authorization).catch(() => null);
    return told?.status === 200 ? (told.json as unknown as ElementAnswer).verdict : otherwise;
  };
  const untilReady = async (cell: string, authorization: string, left: AbortSignal): Promise<void> => {
    const until = performance.now() + longestStartMs;
    let reason = "nothing is known of it yet";
    while (performance.now() < until) {
      const signal = AbortSignal.any([left, AbortSignal.timeout(Math.max(1, Math.ceil(until - performance.now())))]);
      const path = `${elementPath(cell)}?state=true&until=ready`;
      const answer = await ask("GET", path, authorization, { signal }).catch((error: unknown) => {
        if (left.aborted || performance.now() < until) throw error;
        return null;
      });
      if (answer === null) break;
      if (answer.status !== 200) throw passedOn(answer);
      const { $state: state } = answer.json as { readonly $state?: { phase: string; reason: string | null } };
      if (state?.phase === "ready") return;
      reason = state?.reason ?? reason;
      if (state?.phase !== "failed") continue;
      await end(cell, authorization);
      throw refused(409, "conflict", `the cell "${cell}" could not be made: ${reason}`);
    }
    const why = await whyNotYet(cell, authorization, reason);
    const message = `the controller of the cell "${cell}" has not started within ${longestStartMs / 1000} s: ${why}. It goes on: apply again, or take it back with \`cells delete ${rootCell}/cells/${cell}\``;
    throw refused(503, "controller-unreachable", message);
  };

  return {
    names: (authorization) =>
      names(authorization).catch(async () => (await inBook()).filter((cell) => !cell.includes("."))),
    has: async (cell) => (await inBook()).includes(cell),
    isMade: async (cell, authorization) => {
      if (!(await inBook()).includes(cell)) return false;
      // A cell that is being ended answers until it has ended; one of its name is made anew after that.
      return (await names(authorization).catch(() => [cell])).includes(cell);
    },
    make: async (cell, authorization, signal) => {
      const body = { "x.type": "CellController", "x.name": cell, "x.cell": { [cell]: { "x.type": "Cell" } } };
      const answer = await ask("PUT", elementPath(cell), authorization, { body });
      if (answer.status !== 200) throw passedOn(answer);
      await untilReady(cell, authorization, signal);
      await untilOwn(cell, authorization);
    },
    end,
    empties: true,
    // A user by a ticket: the root controller decides.
    mayEnd: (authorization) => isOfSession(authorization) || isAuthorized(authorization, operatorHashes),
    mayMake: (authorization) => isOfSession(authorization) || isAuthorized(authorization, operatorHashes),
    give: async (cell, account, authorization) => {
      const { status, json } = await ask("GET", elementPath(cell), authorization);
      if (status !== 200) throw passedOn({ status, json });
      const { "x.account": _, ...element } = json as JsonObject;
      const body = { ...element, "x.account": account };
      const answer = await ask("PUT", elementPath(cell), authorization, { body });
      if (answer.status !== 200) throw passedOn(answer);
    },
    firstVersion: 1,
  };
}

const isCellController = (json: unknown): boolean =>
  typeof json === "object" &&
  json !== null &&
  (json as Readonly<Record<string, unknown>>)["x.type"] === "CellController";

/** What the root controller said against a request, as its own client would have been told. */
function passedOn({ status, json }: Answer): RefusedError {
  const { error } = (json ?? {}) as unknown as Partial<Refusal>;
  return new RefusedError(
    status,
    error ?? { code: "controller-unreachable", message: `the root cell answered ${status}` },
  );
}
