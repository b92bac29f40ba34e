import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClientConfiguration } from "../cli/connection/client-config.ts";
import { volumesCredentialFile } from "./configuration.ts";
import { writeAtomically } from "./files.ts";
import type { Places } from "./places.ts";
import { readRecord } from "./record.ts";
import { doorMember } from "./supervisor/members.ts";
import { askSupervisor } from "./supervisor/supervisor-client.ts";

/*
 * What CaaS keeps stands in the cell `primary`. Where a cloud runs in itself that is there, and its controller gives CaaS its
 * credential; where services are processes the cell is made here, by the operator.
 */
const cell = "primary";
const attempts = 120;
const againMs = 250;

/** Rejects with a sentence. Asked for again it does what is missing. */
export async function openPrimary(at: Places, client: ClientConfiguration): Promise<void> {
  const record = readRecord(at);
  if (record === undefined || record.profile !== undefined || record.doors?.caas === undefined) return;
  const file = volumesCredentialFile(at, doorMember("caas"));
  if (existsSync(file)) return;
  await askSupervisor(at.supervisorSocket, "POST", `/cells/${cell}`);
  const headers = { authorization: `Bearer ${client.credential}`, "content-type": "application/json" };
  /** Its controller was only just started. */
  const ask = async (method: string, path: string, body?: object): Promise<Response> => {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await fetch(`${client.url}/cells/${cell}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (answer.status < 500 || attempt === attempts) return answer;
      await answer.body?.cancel();
      await sleep(againMs);
    }
  };
  const demand = async (method: string, path: string, body: object): Promise<unknown> => {
    const answer = await ask(method, path, body);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`the cell ${cell} could not be made for CaaS: ${text}`);
    return JSON.parse(text);
  };
  const there = await ask("GET", "/model");
  await there.body?.cancel();
  if (!there.ok) await demand("PUT", "/model", { [cell]: { "x.type": "Cell", "x.name": cell, volumes: {} } });
  const made = (await demand("POST", "/credentials", { note: "CaaS", path: `${cell}/volumes`, access: "write" })) as {
    readonly credential: string;
  };
  writeAtomically(file, `${made.credential}\n`, 0o600);
}
