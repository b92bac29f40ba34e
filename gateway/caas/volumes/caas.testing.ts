import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { ControllerResponse } from "../../../core/controller/requests/requests.ts";
import { World } from "../../../core/controller/world.testing.ts";
import { cellName, peerName } from "../../../model/cell/identifiers.ts";
import { viaHeader, viaText } from "../../../model/contract/audit/via.ts";
import type { QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import { builtInRoles } from "../../../model/contract/tenancy/rules.ts";
import type { Upload } from "../../../model/contract/tenancy/volumes/uploads.ts";
import { assertConforms } from "../../../model/contract/testing/conforms.testing.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import type { Answered, Asked, Contract } from "../../shared/contract.ts";
import { createCaas } from "../caas.ts";
import { volumesPath } from "./layout.ts";
import { domainOf } from "./rights.ts";

export interface Answer {
  readonly status: number;
  readonly json: JsonObject;
  readonly list: readonly JsonObject[];
  readonly headers: Readonly<Record<string, unknown>>;
}
/** Who there is, by credential: his account, his role, and the cells that he may see and change. */
export interface Person {
  readonly account: string | null;
  readonly role?: "user" | "reader" | "domain-admin" | "account-admin";
  readonly cells: readonly string[];
  /** Of these the ones that are another account's. */
  readonly others?: readonly string[];
}

/** As `tenancy` makes one up. */
/** The same of domains. */
export const uidOfAccount = (path: string): string => `uid-of-${path.replaceAll("/", "-")}`;

/**
 * CaaS before cells whose controllers are the real ones, step by step, and a gateway that only knows who somebody is and hands
 * requests on: by a credential of a part where it is CaaS' own.
 */
export class CaasWorld {
  readonly directory = mkdtempSync(join(tmpdir(), "cells-caas-"));
  readonly cells = new Map<string, World>();
  readonly people: Record<string, Person>;
  /** Of accounts and domains whose path another one had before. */
  readonly uids = new Map<string, string>();
  quotas: readonly QuotaSummary[] = [];
  /** What waits for volumes, by the account that brought it. */
  readonly uploads = new Map<string | null, readonly Upload[]>();
  /** What was asked of cells: `PATCH primary`. */
  readonly asked: string[] = [];
  /** Called before a cell is asked; what it throws is a connection that broke. */
  before: (what: string) => void | Promise<void> = () => undefined;
  /** The same behind it: an answer that is lost. */
  behind: (what: string) => void = () => undefined;
  readonly logged: string[] = [];
  /** For whom CaaS changed the primary cell, as it says. */
  readonly changedFor: string[] = [];
  app: FastifyInstance;

  constructor(people: Record<string, Person>, ...cells: readonly string[]) {
    this.people = { operator: { account: null, cells: ["primary", ...cells] }, ...people };
    for (const cell of ["primary", ...cells]) {
      const world = new World({ cell: cellName(cell), directory: true });
      world.put({ [cell]: { "x.type": "Cell", "x.name": cell } });
      this.cells.set(cell, world);
    }
    writeFileSync(join(this.directory, "credential"), "caas\n");
    this.app = this.#start();
  }
  #start(): FastifyInstance {
    const contract: Contract = {
      ask: (asked) => this.#contract(asked),
      open: () => Promise.reject(new Error("nothing is opened here")),
      passOn: async (_incoming, outgoing) => void outgoing.writeHead(418).end("{}"),
      passUpgradeOn: () => undefined,
      askedFor: ({ headers, method }) => ({
        authorization: headers.authorization ?? "",
        [viaHeader]: viaText({ personality: "caas", command: method ?? "", id: "r1", source: "192.0.2.7" }),
      }),
      close: () => undefined,
    };
    const configuration = {
      name: peerName("personality.caas"),
      role: "personality.caas",
      directory: this.directory,
      personality: { gateway: { address: "127.0.0.1", port: 1 }, credentialFile: join(this.directory, "credential") },
    } as unknown as ProcessConfiguration;
    return createCaas(
      configuration,
      { log: (event, fields) => void this.logged.push(`${event} ${JSON.stringify(fields)}`) },
      undefined,
      contract,
    );
  }
  cell(name: string): World {
    const found = this.cells.get(name);
    if (found === undefined) throw new Error(name);
    return found;
  }
  async #contract({ method, path, headers, body = "" }: Asked): Promise<Answered> {
    const who = String(headers.authorization ?? "").replace("Bearer ", "");
    const refusal = (status: number, message: string): Answered => ({
      status,
      headers: {},
      text: JSON.stringify({ error: { code: "refused", message } }),
    });
    const person = this.people[who];
    if (person === undefined && who !== "caas") return refusal(401, "a valid credential is needed");
    if (path === "/whoami" && person !== undefined) return this.#whoAmI(who, person);
    if (path === "/cells" && person !== undefined)
      return { status: 200, headers: {}, text: JSON.stringify(person.cells.map((cell) => ({ cell }))) };
    if (path === "/quotas" && person !== undefined)
      return { status: 200, headers: {}, text: JSON.stringify(this.quotas) };
    if (path === "/accounts" && person !== undefined) {
      return { status: 200, headers: {}, text: JSON.stringify(this.#accountsOf(person)) };
    }
    if (path === "/domains" && person !== undefined) return this.#domains(person);
    if (path.startsWith("/uploads") && person !== undefined) return this.#uploads(method, path, person);
    const { pathname, searchParams } = new URL(path, "http://gateway");
    const [, , cell = "", kind, ...below] = pathname.split("/").map(decodeURIComponent);
    const world = this.cells.get(cell);
    const mayAsk = who === "caas" ? cell === "primary" : person?.cells.includes(cell) === true;
    if (world === undefined || !mayAsk) return refusal(404, `there is no cell "${cell}"`);
    if (who !== "caas" && method !== "GET" && person?.role === "reader")
      return refusal(403, "your role does not allow it");
    const what = `${method} ${cell}${searchParams.get("dryRun") === "true" ? " dry" : ""}`;
    await this.before(what);
    if (method !== "GET") this.asked.push(what);
    if (method !== "GET" && who === "caas") this.changedFor.push(String(headers[viaHeader]));
    const within = who === "caas" ? { within: { path: volumesPath, access: "write" } } : {};
    const answer: ControllerResponse =
      kind === "elements"
        ? world.ask({ method: "ELEMENTS", limit: 1, name: "none", ...within })
        : world.ask({
            method,
            path: below.join("/"),
            state: searchParams.get("state") === "true",
            ...within,
            ...(method === "PATCH" ? { patch: JSON.parse(String(body)) as Json } : {}),
            dryRun: searchParams.get("dryRun") === "true",
            allowDestroy: searchParams.getAll("allowDestroy"),
          });
    world.settle();
    this.behind(what);
    return { status: answer.status, headers: { etag: `"${answer.version}"` }, text: JSON.stringify(answer.body) };
  }
  #uploads(method: string, path: string, { account }: Person): Answered {
    const its = this.uploads.get(account) ?? [];
    if (method === "GET") return { status: 200, headers: {}, text: JSON.stringify(its) };
    const id = path.slice("/uploads/".length);
    this.asked.push(`${method} ${path}`);
    this.uploads.set(
      account,
      its.filter((each) => each.id !== id),
    );
    const isThere = its.some((each) => each.id === id);
    return { status: isThere ? 200 : 404, headers: {}, text: isThere ? JSON.stringify({ removed: id }) : "{}" };
  }
  #accountsOf({ account, role }: Person): Json {
    const found = new Map<string, Set<string>>();
    for (const { account: path, cells, others = [] } of Object.values(this.people)) {
      const isSeen = account === null || path === account;
      if (path === null || !(isSeen || (role === "domain-admin" && domainOf(path) === domainOf(account)))) continue;
      const its = found.get(path) ?? new Set();
      for (const cell of cells) if (!others.includes(cell)) its.add(cell);
      found.set(path, its);
    }
    return [...found].map(([path, cells]) => ({
      path,
      uid: this.uids.get(path) ?? uidOfAccount(path),
      cells: [...cells],
    }));
  }
  /** Those that somebody's account is in, from `ROOT` on. */
  #domainsOf(account: string): Readonly<Record<string, string>> {
    const parts = domainOf(account).split("/");
    const paths = parts.map((_part, at) => parts.slice(0, at + 1).join("/"));
    return Object.fromEntries(paths.map((path) => [path, this.uids.get(path) ?? uidOfAccount(path)]));
  }
  /** All of them for the operator, and nobody else is told any. */
  #domains({ account }: Person): Answered {
    if (account !== null) return { status: 403, headers: {}, text: '{"error":{"code":"forbidden","message":"no"}}' };
    const known = Object.values(this.people).map((each) =>
      each.account === null ? {} : this.#domainsOf(each.account),
    );
    const all = Object.entries(Object.assign({}, ...known) as Readonly<Record<string, string>>);
    return { status: 200, headers: {}, text: JSON.stringify(all.map(([path, uid]) => ({ path, uid }))) };
  }
  #whoAmI(who: string, { account, role = "user" }: Person): Answered {
    const found = builtInRoles.find(({ name }) => name === role);
    const user = account === null ? null : { uid: who, account };
    const { reach, rules } =
      account === null ? { reach: "installation", rules: [] } : (found ?? { reach: "account", rules: [] });
    const more = account === null ? {} : { domains: this.#domainsOf(account) };
    return { status: 200, headers: {}, text: JSON.stringify({ user, reach, rules, expires: null, ...more }) };
  }
  async ask(who: string, line: string, body?: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const [method = "GET", url = "/"] = line.split(" ");
    const answer = await this.app.inject({
      method: method as "GET",
      url,
      headers: { authorization: `Bearer ${who}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
    const { statusCode: status, body: text } = answer;
    assertConforms(method, url, { status, type: String(answer.headers["content-type"] ?? ""), text });
    const json = JSON.parse(text) as JsonObject;
    return { status, json, list: Array.isArray(json) ? (json as readonly JsonObject[]) : [], headers: answer.headers };
  }
  /** Its process ends and another one begins, whose store is empty. */
  async restart(): Promise<void> {
    await this.app.close();
    this.app = this.#start();
  }
  /** The cell is lost and put back as it was at that model, and counts on from there to the version that it had. */
  putBack(name: string, model: Json): void {
    const versionOf = (world: World): number => Number(world.ask({ method: "GET", path: "" }).version);
    const had = versionOf(this.cell(name));
    const world = new World({ cell: cellName(name), directory: true });
    this.cells.set(name, world);
    world.put(model as JsonObject);
    for (let at = 0; versionOf(world) < had; at += 1)
      world.ask({ method: "PATCH", path: "", patch: [{ op: "add", path: `/${name}/note`, value: at }] });
    world.settle();
  }
  /** As it stands in the primary cell. */
  volumes(): JsonObject {
    const { body } = this.cell("primary").ask({ method: "GET", path: volumesPath });
    const { change: _, ...volumes } = body as JsonObject;
    return volumes.error === undefined ? volumes : {};
  }
  async end(): Promise<void> {
    await this.app.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
