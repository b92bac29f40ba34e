import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createGateway } from "../../gateway/gateway.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Login } from "../../model/contract/tenancy/tenancy.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import { newTenantTicket, ticketPath } from "../../runtime/identity/tickets.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { type Follower, startFollowers } from "./followers.ts";

/*
 * The same questions at our own door: the service of users is a process with all that stands in its store, the gateway is this one, with whom it
 * speaks by mutual TLS. A password is one that this service hashed, a session is what Keystone has as a token, and a ticket for a cell what it has
 * as a token for a project.
 */
const operator = "open-sesame-of-the-bench";
const credentialHashes = [hashCredential(operator)];
const main = fileURLToPath(new URL("../../runtime/main.ts", import.meta.url));
const password = "a password of the bench";
/** Of those that `tenancy-process.ts` makes. */
const [domain, name, uid, cell] = ["ROOT/d0", "u0", "user-0", "cell-0"];
const tenancy = peerName("tenancy");

export interface Door {
  sessionForPassword(): Promise<string>;
  ticketForSession(session: string): Promise<void>;
  validate(session: string): Promise<void>;
  /**
   * Disables a user who is in at the controllers of these cells, and lets him in again: for each of them the time from the request to the gateway
   * until the ticket that it follows opens nothing any more, milliseconds.
   *
   * @param rounds how often
   */
  rightTakenBack(cells: readonly string[], rounds: number): Promise<readonly number[]>;
  end(): Promise<void>;
}

/** @param store of the service, of which it takes a copy */
export async function startDoor(store: string): Promise<Door> {
  const installation = await createTestInstallation("bench-door");
  let child: ChildProcess | null = null;
  let close = async (): Promise<void> => {};
  const end = async (): Promise<void> => {
    await close();
    const isOver = child === null || child.exitCode !== null ? null : once(child, "exit");
    child?.kill("SIGKILL");
    await isOver;
    await installation.remove();
  };
  try {
    const own = join(installation.directory, tenancy);
    await mkdir(own);
    await copyFile(store, join(own, "state.sqlite"));
    const change = { role: "tenancy", tenancy: { credentialHashes } } as const;
    const { file } = await installation.configure(tenancy, { change });
    child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, file], { stdio: "ignore" });
    const gateway = { listenFd: -1, supervisorSocket: join(installation.directory, "none"), credentialHashes };
    const { configuration } = await installation.configure(peerName("gateway"), {
      change: { role: "gateway", gateway },
    });
    const app = createGateway(configuration);
    const url = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
    close = () => app.close();
    const ask = asker(Number(url.port));
    await eventually(
      "the service of users answers",
      async () => (await ask("GET", "/whoami", operator)).status === 200,
    );
    // He reaches cells of many accounts, of his domain and below.
    await must(ask("PUT", `/users/${uid}`, operator, { password, role: "domain-admin" }));
    return { ...questions(ask, configuration, installation), end };
  } catch (error) {
    await end();
    throw error;
  }
}

function questions(ask: Ask, gateway: ProcessConfiguration, installation: TestInstallation): Omit<Door, "end"> {
  const logIn = async (): Promise<string> => {
    const { text } = await must(ask("POST", "/logins", null, { user: name, domain, password }));
    return (JSON.parse(text) as Login).session;
  };
  const ticketFor = async (session: string, of: string): Promise<string> => {
    const hash = hashCredential(newTenantTicket());
    const headers = { authorization: `Bearer ${session}`, "content-type": "application/json" };
    const asked = { method: "PUT", path: ticketPath(hash), headers, body: JSON.stringify({ cell: of }) };
    const { status } = await peerRequest(gateway, tenancy, asked);
    if (status !== 200) throw new Error(`no ticket was issued: ${status}`);
    return hash;
  };
  const become = (state: string): Promise<Answer> => must(ask("PUT", `/users/${uid}`, operator, { state }));
  const takeBack = async (followers: readonly Follower[]): Promise<readonly number[]> => {
    const session = await logIn();
    for (const follower of followers)
      if (!(await follower.isOpen(await ticketFor(session, follower.cell))))
        throw new Error(`the controller of ${follower.cell} was not told what a ticket is worth`);
    const closed = followers.map((follower) => follower.closed());
    const beganMs = performance.now();
    await become("disabled");
    const atMs = await Promise.all(closed);
    await become("enabled");
    return atMs.map((each) => each - beganMs);
  };
  return {
    sessionForPassword: logIn,
    ticketForSession: async (session) => {
      await ticketFor(session, cell);
    },
    validate: async (session) => {
      await must(ask("GET", "/whoami", session));
    },
    rightTakenBack: async (cells, rounds) => {
      const followers = await startFollowers(installation, cells);
      try {
        const times: number[] = [];
        for (let round = 0; round < rounds; round += 1) times.push(...(await takeBack(followers)));
        return times;
      } finally {
        for (const follower of followers) await follower.stop();
      }
    },
  };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}
type Ask = (method: string, path: string, credential: string | null, body?: object) => Promise<Answer>;
async function must(answer: Promise<Answer>): Promise<Answer> {
  const { status, text } = await answer;
  if (status >= 300) throw new Error(`the gateway answered ${status}: ${text}`);
  return { status, text };
}

/** Each request makes a connection, as at Keystone's. */
const asker = (port: number): Ask => {
  const agent = new Agent({ keepAlive: false });
  return (method, path, credential, body) =>
    new Promise((resolve, reject) => {
      const headers = {
        ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      };
      const asked = request({ agent, host: "127.0.0.1", port, path, method, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        answer.once("error", reject);
        answer.once("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      asked.once("error", reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
};
