import { createReadStream } from "node:fs";
import { mkdir, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { LogLine } from "../../../core/distribution/node/types.ts";
import { rootCell } from "../../../core/documents/cells.ts";
import type { EventName } from "../../../core/telemetry/event-names.ts";
import type { BackupSchedule } from "../../../model/cell/cell.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import { defaultKept, defaultPeriodMinutes } from "../../../model/check/root-cell/check-backup.ts";
import type { Json } from "../../../model/json/json.ts";
import { type Collected, collectBackup } from "../../backup/collect.ts";
import { type Order, readSignedOrder, type SignedOrder } from "../../backup/order.ts";
import { readBody } from "../../http/http.ts";
import { type OutgoingPeerRequest, type PeerResponse, peerRequest } from "../../http/https.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { listPeers } from "../../transport/peers.ts";
import {
  type BackupRecord,
  backupNameAt,
  lastMadeMs,
  namesIn,
  readRecord,
  recordAfter,
  removable,
  writeRecord,
} from "./record.ts";

/**
 * The schedule of the root specification (`x.backup`): the root cell's controller has the authority sign an order for the
 * operator's key, gathers the parts, which it cannot open, and gives the file to every storage server. It remembers when
 * the last one was made (record.ts). No process's part and no server's list, answer or silence holds up the others: each
 * has a bound in bytes and time of its own. Which may be removed: `record.ts`; defaults: `model/check/root-cell/check-backup.ts`.
 */
const lookEveryMs = 60_000;
const retryMs = 15 * 60_000;
const mostBytes = 256 * 1024 ** 2;
const askMs = 20_000;
const partIdleMs = 120_000;
/** Of a list of backups, or of what is in the way. */
const longestAnswer = 64 * 1024;
/** What one process or server may take of everybody's room and time. Only tests give others. */
const most = { partBytes: 64 * 1024 ** 2, partMs: 5 * 60_000, giveMs: 10 * 60_000 } as const;

export interface ScheduleContext {
  readonly configuration: ProcessConfiguration;
  /** Of the whole document. */
  readonly model: () => Promise<Json>;
  /** An order of the authority's for this recipient. */
  readonly order: (recipient: string) => Promise<SignedOrder>;
  readonly log: (event: EventName, fields: LogLine["fields"]) => void;
  readonly nowMs: () => number;
  readonly most?: { readonly [name in keyof typeof most]?: number };
}

type Attributes = { readonly [name: string]: Json };
const isAttributes = (value: Json): value is Attributes =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What the root specification asks for; null: nothing, or nothing that was checked. Beside the cell stand what it extends. */
export const scheduleIn = (document: Json): BackupSchedule | null => {
  const isRoot = ([name, value]: readonly [string, Json]): boolean =>
    isAttributes(value) && value["x.type"] === "Cell" && (value["x.name"] ?? name) === rootCell;
  const [, root = null] = Object.entries(isAttributes(document) ? document : {}).find(isRoot) ?? [];
  const attributes = isAttributes(root) ? root : {};
  const [publicKey, period, keep] = ["publicKey", "period", "keep"].map((name) => attributes[`x.backup.${name}`]);
  if (typeof publicKey !== "string") return null;
  return {
    publicKey,
    periodMinutes: typeof period === "number" ? period : defaultPeriodMinutes,
    keep: typeof keep === "number" ? keep : defaultKept,
  };
};

/** What a server has, oldest first; `why`: it was not to be learned. */
interface ServerList {
  readonly agent: PeerName;
  readonly names: readonly string[];
  readonly why: string | null;
}

/** Looks once whether one is due, and makes it. Never rejects: what is in the way is logged, and tried again. */
export class BackupSchedulerRun {
  readonly #context: ScheduleContext;
  readonly #most: { readonly [name in keyof typeof most]: number };
  #notBeforeMs = 0;
  /** Here as well as on the disk: one that is full makes no more backups than are wanted. */
  #record: BackupRecord | null = null;
  /** That no storage server answers was said, and none has since. */
  #isSilence = false;

  constructor(context: ScheduleContext) {
    this.#context = context;
    this.#most = { ...most, ...context.most };
  }

  async look(): Promise<void> {
    const { nowMs, log } = this.#context;
    if (nowMs() < this.#notBeforeMs) return;
    try {
      const schedule = scheduleIn(await this.#context.model());
      if (schedule !== null) await this.#keepUp(schedule);
    } catch (error) {
      this.#notBeforeMs = nowMs() + retryMs;
      log("backup/failed", { why: (error as Error).message });
    }
  }

  async #keepUp(schedule: BackupSchedule): Promise<void> {
    const { configuration, nowMs } = this.#context;
    this.#record ??= await readRecord(configuration.directory);
    const isDue = (lists: readonly (readonly string[])[]): boolean =>
      nowMs() >= lastMadeMs(this.#record, lists, nowMs()) + schedule.periodMinutes * 60_000;
    if (!isDue([])) return;
    const agents = await listPeers(configuration, "agent.");
    const servers = await Promise.all(agents.map((agent) => this.#listOf(agent)));
    const there = servers.filter(({ why }) => why === null);
    // None that answers: whether one is due is not known, and there is nowhere to put it.
    if (there.length === 0) return this.#saySilence(servers);
    this.#isSilence = false;
    if (isDue(there.map(({ names }) => names))) await this.#make(schedule, servers);
  }

  /** Once, and not each minute: it ends by itself when a server answers. */
  #saySilence(servers: readonly ServerList[]): void {
    if (!this.#isSilence) this.#context.log("backup/waits", { servers: servers.length, why: whySilent(servers) });
    this.#isSilence = true;
  }

  async #listOf(agent: PeerName): Promise<ServerList> {
    try {
      const text = await this.#ask(agent, { method: "GET", path: "/backups", signal: AbortSignal.timeout(askMs) });
      return { agent, names: namesIn(JSON.parse(text) as Json, this.#context.nowMs()), why: null };
    } catch (error) {
      return { agent, names: [], why: (error as Error).message };
    }
  }

  async #open(peer: PeerName, request: OutgoingPeerRequest): Promise<PeerResponse> {
    const answer = await peerRequest(this.#context.configuration, peer, request);
    if (answer.status === 200) return answer;
    throw new Error(`"${peer}" answers ${answer.status}: ${(await shortText(answer, peer)).slice(0, 500)}`);
  }

  async #ask(peer: PeerName, request: OutgoingPeerRequest): Promise<string> {
    return shortText(await this.#open(peer, request), peer);
  }

  async #make({ publicKey, keep }: BackupSchedule, servers: readonly ServerList[]): Promise<void> {
    const { configuration, log, nowMs } = this.#context;
    const order = await this.#context.order(publicKey);
    const directory = join(configuration.directory, "backup-gathered");
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { mode: 0o700 });
    try {
      const file = join(directory, "whole");
      const { names, missing, bytes } = await this.#gather(file, order);
      const name = backupNameAt((JSON.parse(order.text) as Order).issued);
      const before = this.#record;
      const held = new Set(missing.flatMap(({ name: process }) => before?.newest[process] ?? []));
      const kept = await Promise.all(servers.map((server) => this.#give(server, file, { name, keep, held })));
      const failed = kept.filter((why) => why !== null);
      if (failed.length === servers.length) throw new Error(`no storage server took it: ${failed[0]}`);
      const made = { name, nowMs: nowMs(), names, missing: missing.map(({ name: process }) => process) };
      this.#record = recordAfter(before, made);
      log("backup/made", { backup: name, bytes, servers: servers.length - failed.length, missing: missing.length });
      for (const why of failed) log("backup/failed", { why });
      for (const { name: from, why } of missing) log("backup/failed", { why: `${from} is not in it: ${why}` });
      await writeRecord(configuration.directory, this.#record);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  async #gather(file: string, order: SignedOrder): Promise<Collected> {
    // The parts lie there beside the whole, and the disk is the stores' own.
    const disk = await statfs(dirname(file));
    const room = Math.min(mostBytes, Math.floor((disk.bavail * disk.bsize) / 4));
    const { partBytes, partMs } = this.#most;
    const ask = async (name: string): Promise<AsyncIterable<Uint8Array>> => {
      const body = JSON.stringify(order);
      const bounds = { idleTimeoutMs: partIdleMs, signal: AbortSignal.timeout(partMs) };
      return (await this.#open(peerName(name), { method: "POST", path: "/backup", body, ...bounds })).body;
    };
    const bounds = { mostBytes: room, mostPartBytes: partBytes };
    return collectBackup(file, { order, key: null, authority: null, ask, ...bounds });
  }

  /** Null when the server has it; older ones than are to be kept are then removed there. Otherwise why not. */
  async #give(
    { agent, names, why }: ServerList,
    file: string,
    what: Parameters<typeof removable>[1],
  ): Promise<string | null> {
    if (why !== null) return `"${agent}" did not say what it keeps, and gets none: ${why}`;
    try {
      const signal = AbortSignal.timeout(this.#most.giveMs);
      const headers = { "content-length": (await stat(file)).size };
      const body = createReadStream(file);
      await this.#ask(agent, { method: "PUT", path: `/backups/${what.name}`, headers, body, signal });
      for (const each of removable(names, what))
        await this.#ask(agent, { method: "DELETE", path: `/backups/${each}`, signal });
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  }
}

/** Why there is nowhere to put a backup, and what an operator can do. */
const whySilent = (servers: readonly ServerList[]): string => {
  const [first] = servers;
  const silent =
    first === undefined
      ? "this cloud has no storage server to keep it; let a machine join that has one (`cells host token --agent`)"
      : `no storage server answers (of ${servers.length}, "${first.agent}": ${first.why}); start one again, or see that the root cell's controller can reach it`;
  return `a backup may be due, and ${silent}. It is made within a minute then. Until then \`cells management backup FILE\` makes one on your machine`;
};

const shortText = async ({ body }: PeerResponse, peer: PeerName): Promise<string> => {
  const text = await readBody(body, longestAnswer);
  body.destroy();
  if (text.ok) return text.value;
  throw new Error(
    `what "${peer}" answers is ${text.error === "too-large" ? `longer than ${longestAnswer} bytes` : "no text"}`,
  );
};

/** Has the authority sign an order, which it does for the root cell's controller alone. Rejects with what is in the way. */
export const orderOf = async (configuration: ProcessConfiguration, recipient: string): Promise<SignedOrder> => {
  const asked = { method: "POST", path: "/backup-order", body: JSON.stringify({ recipient }) };
  const answer = await peerRequest(configuration, peerName("authority"), asked);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`the authority signs no order: ${text.slice(0, 500)}`);
  return readSignedOrder(JSON.parse(text));
};

/** Looks once a minute, until it is stopped. */
export const startBackups = (context: ScheduleContext): { stop(): void } => {
  const run = new BackupSchedulerRun(context);
  let busy = false;
  const timer = setInterval(async () => {
    if (busy) return;
    busy = true;
    await run.look();
    busy = false;
  }, lookEveryMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
};
