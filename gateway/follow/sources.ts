import { setTimeout as sleep } from "node:timers/promises";
import type { CellSummary, InstallationStatus } from "../../model/api.ts";
import type { Rows, Topic } from "../../model/contract/follow/follow.ts";
import { rowsOfCell, rowsOfCells, rowsOfCounters, rowsOfHa, rowsOfStatus } from "../../model/contract/follow/rows.ts";
import type { HaReport } from "../../model/contract/operator/ha.ts";
import { isObject, type Json } from "../../model/json/json.ts";
import { parseJson } from "../../runtime/http/http.ts";
import type { PeerResponse } from "../../runtime/http/https.ts";
import type { ReadCounters } from "../numbers/numbers.ts";
import type { Timeline } from "../observation/timeline.ts";
import { modelAt } from "../requests/cell-source.ts";
import { RefusedError, refusalIn, refused } from "../requests/refused.ts";
import type { TopicSource } from "./topic.ts";

/** How topics are read: each by the requests that the same person could make. */
export interface Readers {
  isOperator(authorization: string): boolean;
  /** The only cell that this credential opens; null: it is none of a cell. */
  cellOf(authorization: string): string | null;
  status(): Promise<InstallationStatus>;
  cells(authorization: string): Promise<readonly CellSummary[]>;
  /** Rejects with a refusal where there is no such cell for who shows this. */
  requireCell(cell: string, authorization: string): Promise<void>;
  /** A GET of the cell's controller. */
  ask(
    cell: string,
    path: string,
    authorization: string,
    options: { readonly signal: AbortSignal; readonly follows: boolean },
  ): Promise<PeerResponse>;
  /** Rejects with a refusal 404 where the installation has no HA Manager. */
  ha(): Promise<HaReport>;
  readonly counters: ReadCounters;
  readonly timeline: Pick<Timeline, "follow">;
}

/** Loads change without an event. */
const statusEveryMs = 5_000;
const cellEveryMs = 15_000;
const countersEveryMs = 5_000;
/** Of whoever is told no events of services. */
const listEveryMs = 3_000;
const reconnectMs = { first: 250, last: 5_000 } as const;

export async function sourceOf(readers: Readers, topic: Topic, authorization: string): Promise<TopicSource> {
  const isOperator = readers.isOperator(authorization);
  const watchServices: TopicSource["watch"] = (changed, signal) => {
    if (!isOperator) return;
    const end = readers.timeline.follow(changed);
    signal.addEventListener("abort", end, { once: true });
  };
  if (topic.kind === "status") {
    if (!isOperator)
      throw refused(403, "forbidden", "the topic status is for the operator, by the operator's credential");
    return {
      read: async () => ({ rows: rowsOfStatus(await readers.status()) }),
      watch: watchServices,
      everyMs: statusEveryMs,
    };
  }
  if (topic.kind === "ha") {
    if (!isOperator) throw refused(403, "forbidden", "the topic ha is for the operator, by the operator's credential");
    return { read: async () => ({ rows: await haRows(readers) }), watch: watchServices, everyMs: statusEveryMs };
  }
  if (topic.kind === "cells")
    return {
      read: async () => ({ rows: rowsOfCells(await readers.cells(authorization)) }),
      watch: watchServices,
      everyMs: isOperator ? statusEveryMs : listEveryMs,
    };
  const { cell } = topic;
  const own = readers.cellOf(authorization);
  // Nobody is asked: that other cell's controller would be shown this credential, and what it says would tell whether there is one.
  if (own !== null && own !== cell)
    throw refused(403, "forbidden", `the credential is one of the cell "${own}" and opens no other`);
  await readers.requireCell(cell, authorization);
  if (topic.kind === "counters")
    return {
      read: async (signal) => ({ rows: rowsOfCounters(await readers.counters(cell, authorization, signal)) }),
      watch: () => undefined,
      everyMs: countersEveryMs,
    };
  return {
    // Without a model a cell has no elements.
    read: async (signal) => {
      const { model, version } = await versionOf(readers, cell, authorization, { signal, whereNone: {} });
      return { rows: rowsOfCell(model), ...(version === null ? {} : { version }) };
    },
    watch: (changed, signal) => void watchCell(readers, cell, authorization, { changed, signal }),
    everyMs: cellEveryMs,
  };
}

/** Where there is no HA Manager there is nothing that it works on. */
async function haRows(readers: Readers): Promise<Rows> {
  try {
    return rowsOfHa(await readers.ha());
  } catch (error) {
    if (error instanceof RefusedError && error.statusCode === 404) return {};
    throw error;
  }
}

interface HowRead {
  readonly signal: AbortSignal;
  /** What is said of a cell without a model; absent: its controller's refusal. */
  readonly whereNone?: Json;
}
/** With `$state`, as whoever shows this may read it. Rejects with the refusal of who answers. */
export const modelOf = async (
  readers: Pick<Readers, "requireCell" | "ask">,
  cell: string,
  authorization: string,
  how: HowRead,
): Promise<Json> => (await versionOf(readers, cell, authorization, how)).model;

/** Rejects with a refusal where whoever shows this may read no VM at that path. */
export async function requireVm(
  readers: Pick<Readers, "requireCell" | "ask">,
  { cell, path, authorization }: { readonly cell: string; readonly path: string; readonly authorization: string },
  signal: AbortSignal,
): Promise<void> {
  await readers.requireCell(cell, authorization);
  const none = refused(404, "not-found", `there is no VM "${path.slice(0, 200)}" in the cell "${cell}"`);
  const parts = path.split("/");
  if (path.length > 1024 || parts.some((part) => part === "" || part === "." || part === "..")) throw none;
  const { model } = await readAt(readers, { cell, at: modelAt(path), authorization }, { signal });
  if (!isObject(model) || model["x.type"] !== "VM") throw none;
}

async function versionOf(
  readers: Pick<Readers, "requireCell" | "ask">,
  cell: string,
  authorization: string,
  how: HowRead,
): Promise<Versioned> {
  await readers.requireCell(cell, authorization);
  return await readAt(readers, { cell, at: "model?state=true", authorization }, how);
}

interface Versioned {
  readonly model: Json;
  readonly version: number | null;
}
/** Of a cell that is there for whoever shows this. */
async function readAt(
  readers: Pick<Readers, "ask">,
  { cell, at, authorization }: { readonly cell: string; readonly at: string; readonly authorization: string },
  { signal, whereNone }: HowRead,
): Promise<Versioned> {
  const answer = await readers.ask(cell, at, authorization, { signal, follows: false });
  const text = await answer.text();
  const read = parseJson(text);
  const [, version = null] = /^"(\d{1,15})"$/.exec(String(answer.headers.etag)) ?? [];
  if (answer.status === 200 && read.ok)
    return { model: read.value, version: version === null ? null : Number(version) };
  if (answer.status === 404 && whereNone !== undefined) return { model: whereNone, version: null };
  const message = `the controller of ${cell} answered ${answer.status}`;
  throw refusalIn(answer.status, text, "controller-unreachable", message);
}

/** What an event says does not matter here: the whole state is read. When a ticket is worth less the controller ends the stream, which is one, too. */
async function watchCell(
  readers: Readers,
  cell: string,
  authorization: string,
  { changed, signal }: { readonly changed: () => void; readonly signal: AbortSignal },
): Promise<void> {
  for (let pauseMs: number = reconnectMs.first; !signal.aborted; pauseMs = Math.min(2 * pauseMs, reconnectMs.last)) {
    try {
      const asked = { signal, follows: true } as const;
      const answer = await readers.ask(cell, "events?follow=true&past=false", authorization, asked);
      if (answer.status !== 200) answer.body.destroy();
      else {
        changed();
        for await (const _chunk of answer.body) {
          pauseMs = reconnectMs.first;
          changed();
        }
      }
    } catch {
      // The next reading says what is wrong.
    }
    if (signal.aborted) return;
    changed();
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}
