import { createServer, type IncomingMessage, type Server } from "node:http";
import { constants } from "node:os";
import { type EventRing, serviceHeading, streamEvents } from "../../runtime/observation/events.ts";
import type { Installation } from "../installation.ts";
import type { Places } from "../places.ts";
import { answerBackup } from "./supervisor-backup.ts";

/** A DNS label, shorter by `controller.`: that and the cell's name are a certificate's common name, at most 64 characters. */
export const isCellName = (text: string): boolean => /^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$/.test(text);

interface Answer {
  readonly status: number;
  readonly body: unknown;
}
const done = (body: unknown): Answer => ({ status: 200, body });
const refused = (status: number, code: string, message: string): Answer => ({
  status,
  body: { error: { code, message } },
});

const stopGraceMs = 5000;
const largestBodyBytes = 4096;

const bodyOf = async (
  request: IncomingMessage,
): Promise<{ readonly signal?: unknown; readonly cellUid?: unknown; readonly cellNumber?: unknown }> => {
  let text = "";
  for await (const part of request) {
    text += String(part);
    if (text.length > largestBodyBytes) throw new Error("the body is too long");
  }
  return text === "" ? {} : JSON.parse(text);
};

const onCell = async (
  installation: Installation,
  method: string,
  cell: string,
  request: IncomingMessage,
): Promise<Answer> => {
  if (!isCellName(cell)) {
    return refused(
      400,
      "cell/name",
      `\`${cell}\` cannot name a cell: use lower-case letters, digits and \`-\`, at most 53`,
    );
  }
  if (method === "POST") {
    const { cellUid, cellNumber } = await bodyOf(request);
    const given = typeof cellUid === "string" && typeof cellNumber === "number" ? { cellUid, cellNumber } : undefined;
    return done(await installation.addCell(cell, given));
  }
  if (method !== "DELETE") return refused(405, "method", "use POST or DELETE");
  return (await installation.removeCell(cell))
    ? done({})
    : refused(404, "cell/unknown", `there is no cell ${cell}; there are: ${installation.cells().join(", ") || "none"}`);
};

const onMember = async (
  installation: Installation,
  verb: string,
  name: string,
  request: IncomingMessage,
): Promise<Answer> => {
  const member = installation.member(name);
  if (member === undefined) return refused(404, "member/unknown", `there is no member ${name}`);
  if (verb === "start") member.start();
  if (verb === "stop") await member.stop(stopGraceMs);
  if (verb === "kill") {
    const { signal = "SIGKILL" } = await bodyOf(request);
    if (typeof signal !== "string" || !(signal in constants.signals)) {
      return refused(400, "signal", `\`${String(signal)}\` is no signal: write SIGKILL, SIGTERM, SIGSTOP, …`);
    }
    if (!member.kill(signal as NodeJS.Signals)) return refused(409, "member/ended", `${name} is not running`);
  }
  return done(member.status());
};

const answer = async (installation: Installation, request: IncomingMessage): Promise<Answer> => {
  const { method = "GET" } = request;
  const [, first = "", second, third] = new URL(request.url ?? "/", "http://supervisor").pathname.split("/");
  const name = second === undefined ? undefined : decodeURIComponent(second);
  if (third !== undefined) return refused(404, "path", "there is nothing below this path");
  if (method === "GET" && name === undefined && first === "status") return done({ services: installation.status() });
  if (method === "GET" && name === undefined && first === "cells") return done(installation.cells());
  if (name !== undefined && first === "cells") return onCell(installation, method, name, request);
  if (name !== undefined && method === "POST" && ["kill", "stop", "start"].includes(first)) {
    return onMember(installation, first, name, request);
  }
  return refused(404, "path", "GET /status, GET /cells, POST|DELETE /cells/<cell>, POST /kill|stop|start/<member>");
};

/** `SupervisorApi`, `GET /events[?follow=true]` as every process has it, and its part of a backup, and what tests do to members: `POST /kill/<member>` {signal}, `/stop/<member>`, `/start/<member>`. */
export const supervisorServer = (installation: Installation, events: EventRing, at: Places): Server =>
  createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://supervisor");
    if (request.method === "GET" && pathname === "/events") {
      const follow = searchParams.get("follow") === "true" ? { follow: events.subscribe } : {};
      streamEvents(response, { past: events.past(), heading: serviceHeading, ...follow });
      return;
    }
    if (request.method === "POST" && (pathname === "/backup-order" || pathname === "/backup")) {
      void answerBackup(at, pathname, request, response);
      return;
    }
    answer(installation, request)
      .catch((error: unknown) => refused(500, "supervisor", error instanceof Error ? error.message : String(error)))
      .then(({ status, body }) => {
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      });
  });
