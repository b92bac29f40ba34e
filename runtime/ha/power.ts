import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { mayAsk } from "../../core/documents/permissions.ts";
import { isSameUuid, type PowerController, type PowerReading, uuidOf } from "../../core/ha/power/controller.ts";
import { type DueEnd, endToSay } from "../../core/ha/power/ends.ts";
import type { DueOrder } from "../../core/ha/power/orders.ts";
import { toJson } from "../../core/outbox.ts";
import { hostName, hostPeer, type PeerName } from "../../model/cell/identifiers.ts";
import { powerController, powerReading } from "../../model/contract/operator/ha.ts";
import { read } from "../../model/contract/schema.ts";
import { Fault } from "../../model/json/reader.ts";
import { sendJson, sendRefusal } from "../http/http.ts";
import { peerRequest } from "../http/https.ts";
import { openSeal, type Seal } from "../identity/own/seal.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { askedBy } from "../observation/asked-by.ts";
import { askEnds } from "../presence/ask-ends.ts";
import type { Asked, Further } from "../process/asked.ts";
import { listPeers } from "../transport/peers.ts";
import { type AskedExecutor, type CarriedOut, carryOut } from "./carry-out.ts";

/*
 * Power at the HA Manager's edge. Passwords are sealed with a key of this process' own directory before its service has them, and opened
 * for the moment in which another host is asked to use one; so its store, what is told of it and its backups have none.
 */
const path = /^\/power\/([a-z0-9-]+)$/;
/** While something is done about a host that has a controller; otherwise the service says when that begins. */
const everyMs = 2_000;
/** A host gives up after 10 s. */
const patienceMs = 12_000;
const longestBody = 4096;

/** @param directory of the HA Manager's process */
export const openPowerSeal = (directory: string): Promise<Seal> => openSeal(directory, "power.key", "power");

const askHost = async (
  configuration: ProcessConfiguration,
  by: PeerName,
  action: "read" | "off" | "try",
  controller: PowerController,
  over?: AbortSignal,
  handsOver?: () => void,
): Promise<PowerReading | null> => {
  try {
    const late = AbortSignal.timeout(patienceMs);
    const body = JSON.stringify({ action, controller });
    const answer = await peerRequest(configuration, by, {
      method: "POST",
      path: "/power",
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
      body,
      ...(handsOver === undefined ? {} : { handsOver }),
      signal: over === undefined ? late : AbortSignal.any([late, over]),
    });
    const said = answer.status === 200 ? read(powerReading, JSON.parse(await answer.text())) : null;
    return said === null || said instanceof Fault ? null : said;
  } catch {
    return null;
  }
};

/** Asks a host; an order to cut is sent once that host waits for it, so one that stands still or is lost does not have it. */
export const askExecutor = (
  configuration: ProcessConfiguration,
  by: PeerName,
  action: "read" | "off",
  controller: PowerController,
  over: AbortSignal,
): AskedExecutor => {
  const back = new AbortController();
  let isHandedOver = false;
  const handsOver = (): void => {
    isHandedOver = true;
  };
  const isCut = action === "off";
  const until = isCut ? AbortSignal.any([over, back.signal]) : over;
  return {
    answer: askHost(configuration, by, action, controller, until, isCut ? handsOver : undefined),
    withdraw: () => {
      if (!isHandedOver) back.abort();
      return !isHandedOver;
    },
  };
};

/** Carries out what is due, for as long as the process lives. @returns what ends that */
export const followOrders = (configuration: ProcessConfiguration, asked: Asked, seal: Seal): (() => void) => {
  let isStopped = false;
  const under = new Set<string>();
  const carry = async (order: DueOrder): Promise<void> => {
    const { host, nonce } = order;
    const { sealed, ...rest } = order.controller;
    const password = seal.open(sealed);
    const carried: Partial<CarriedOut> =
      password === null
        ? {}
        : await carryOut(
            order,
            (executor, what, over) => askExecutor(configuration, executor, what, { ...rest, password }, over),
            (ms) => sleep(ms, undefined, { ref: false }),
          );
    const { said = null, ...more } = carried;
    const reason =
      password === null
        ? `its password was sealed elsewhere: register the controller of ${host} anew`
        : `no host that was asked to could reach it`;
    const reading = said ?? { power: null, uuid: null, reason };
    await asked.service?.request(toJson({ kind: "ha-power-read", host, nonce, ...reading, ...more }));
  };
  const look = async (): Promise<void> => {
    const next = toJson({ kind: "ha-power-next", under: [...under] });
    const due = ((await asked.service?.request(next)) ?? []) as unknown as readonly DueOrder[];
    for (const order of due) {
      under.add(order.host);
      void carry(order)
        .catch(() => undefined)
        .finally(() => under.delete(order.host));
    }
  };
  const sayEnd = async (due: DueEnd): Promise<void> => {
    const { host, boot } = due;
    const members = await listPeers(configuration, "presence.");
    let say = endToSay(due, await askEnds(configuration, members, host, null));
    // Whether it was taken is seen in what the same members answer.
    if (typeof say === "object") say = endToSay(due, await askEnds(configuration, members, host, say));
    if (say === "over") await asked.service?.request({ kind: "ha-end-told", host, boot });
  };
  const lookAtEnds = async (): Promise<void> => {
    const due = ((await asked.service?.request({ kind: "ha-ends-next" })) ?? []) as unknown as readonly DueEnd[];
    for (const end of due) {
      const name = `end of ${end.host}`;
      if (under.has(name)) continue;
      under.add(name);
      void sayEnd(end)
        .catch(() => undefined)
        .finally(() => under.delete(name));
    }
  };
  const follow = async (): Promise<void> => {
    while (!isStopped) {
      try {
        if (asked.service !== null) {
          await asked.service.request({ kind: "ha-power-wait" });
          await look();
          await lookAtEnds();
        }
      } catch {
        // It starts anew, and the next one is asked.
      }
      await sleep(everyMs, undefined, { ref: false });
    }
  };
  void follow();
  return () => {
    isStopped = true;
  };
};

/** `PUT /power/<host>` registers a controller once it was tried, `DELETE` forgets it. Nothing is switched by either. */
export const powerRegistrations = (configuration: ProcessConfiguration, seal: Seal): Further => ({
  answers: (url) => path.test(url),
  handler: (asked) => async (incoming, response) => {
    const { method, url, peer } = incoming;
    const json = (status: number, content: object): void => sendJson(response, status, content);
    const refuse = (status: number, code: string, message: string): void =>
      sendRefusal(response, status, code, message);
    const host = hostName(path.exec(url)?.[1] ?? "");
    const { service } = asked;
    if (!mayAsk("ha-manager", peer, method, url))
      return refuse(403, "forbidden", `only the gateway may register a controller, and this is "${peer}"`);
    if (service === null) return refuse(503, "busy", "the service is starting: ask again in a moment");
    const hosts = await listPeers(configuration, "host.");
    if (!hosts.includes(hostPeer(host)))
      return refuse(
        404,
        "ha/no-host",
        `there is no host ${host}; the hosts are ${hosts.map((each) => each.slice(5)).join(", ")}`,
      );
    if (method === "DELETE") {
      const by = askedBy(incoming, { verb: "forgetPower", target: host });
      return json(200, (await service.request({ kind: "ha-power-remove", host }, by)) as object);
    }
    const sent = await text(incoming.body).catch(() => "");
    const controller = sent.length > longestBody ? null : readController(sent);
    if (controller === null)
      return refuse(
        400,
        "bad-request",
        "the body is {kind, address, user, password}, of Redfish with fingerprint, of IPMI perhaps with suite, of an agent with agent and perhaps plug and options",
      );
    const others = toJson({ kind: "ha-power-executors", host });
    const executors = (await service.request(others)) as unknown as readonly PeerName[];
    const tried = await tryController(configuration, host, executors, controller);
    if (typeof tried === "string") return refuse(409, "ha/power", tried);
    const { password, ...rest } = controller;
    const registered = { ...rest, host, sealed: seal.seal(password), uuid: tried.uuid };
    const { kind, address, agent = kind, plug } = controller;
    const what = `${agent} ${address}${plug === undefined ? "" : ` plug ${plug}`}`;
    const by = askedBy(incoming, { verb: "registerPower", target: host, what });
    const said = await service.request(toJson({ kind: "ha-power-register", host, controller: registered }), by);
    const { taken } = said as { readonly taken?: string };
    if (taken !== undefined)
      return refuse(
        ...([409, "ha/power"] as const),
        `${what} is registered for ${taken}: one machine's power cannot be that of two`,
      );
    json(200, { host, kind, address, uuid: tried.uuid, power: "on" });
  },
});

const readController = (sent: string): PowerController | null => {
  try {
    const said = read(powerController, JSON.parse(sent));
    if (said instanceof Fault || (said.kind === "redfish" && said.fingerprint === undefined)) return null;
    const { agent, plug, options } = said;
    const isOfAgent = [agent, plug, options].some((each) => each !== undefined);
    return said.kind === "agent" ? (agent === undefined ? null : said) : isOfAgent ? null : said;
  } catch {
    return null;
  }
};

/** That it is this host's: the host says in-band which machine it is, and another one reads the same at the controller. */
const tryController = async (
  configuration: ProcessConfiguration,
  host: string,
  others: readonly PeerName[],
  controller: PowerController,
): Promise<{ readonly uuid: string } | string> => {
  if (controller.kind === "agent") return tryAgent(configuration, host, others, controller);
  const own = (await ownUuid(configuration, hostPeer(hostName(host)))) ?? null;
  if (own === null)
    return `${host} does not say which machine it is: it has to be up, with a system UUID in its firmware`;
  const { address } = controller;
  const said = await readByOthers(configuration, others, controller);
  if (typeof said === "string") return said;
  const { uuid, power } = said;
  if (uuid === null || !isSameUuid(uuid, own))
    return `the controller at ${address} is another machine's: it shows the UUID ${uuid}, and ${host} has ${own}`;
  return power === "on" ? { uuid: own } : `the controller at ${address} reads off while ${host} is up`;
};

/** An agent shows no machine: another host reads twice that it is on, and this one is heard before and after. */
const tryAgent = async (
  configuration: ProcessConfiguration,
  host: string,
  others: readonly PeerName[],
  controller: PowerController,
): Promise<{ readonly uuid: string } | string> => {
  const isUp = async (): Promise<boolean> => (await ownUuid(configuration, hostPeer(hostName(host)))) !== undefined;
  if (!(await isUp())) return `${host} is not heard: what switches its power is tried while it is up`;
  const said = await readByOthers(configuration, others, controller);
  if (typeof said === "string") return said;
  if (said.power === "off") return `${controller.agent} at ${controller.address} reads off while ${host} is up`;
  return (await isUp()) ? { uuid: "" } : `${host} was not heard any more after its power had been read`;
};

/** What the first other host that knows it reads, of those that would carry out an order; else why nobody does. */
const readByOthers = async (
  configuration: ProcessConfiguration,
  others: readonly PeerName[],
  controller: PowerController,
): Promise<PowerReading | string> => {
  const isAgent = controller.kind === "agent";
  let why = `no other host could ask the controller at ${controller.address}`;
  for (const by of others) {
    const said = await askHost(configuration, by, isAgent ? "try" : "read", controller);
    if (said === null) continue;
    if (said.power !== null && (said.uuid !== null || isAgent)) return said;
    why = said.reason ?? why;
  }
  return why;
};

/** Null: its firmware does not say; undefined: the host does not answer. */
const ownUuid = async (configuration: ProcessConfiguration, host: PeerName): Promise<string | null | undefined> => {
  try {
    const asked = { method: "GET", path: "/identity", signal: AbortSignal.timeout(patienceMs) };
    const answer = await peerRequest(configuration, host, asked);
    const { uuid } = JSON.parse(await answer.text()) as { readonly uuid?: unknown };
    if (answer.status !== 200) return undefined;
    return typeof uuid === "string" ? uuidOf(uuid) : null;
  } catch {
    return undefined;
  }
};
