import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { AccountSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { Kernel } from "../kernel/kernel.ts";

/*
 * A user of a cell, at a door that is held open: he asks its controller again and again, by the ticket that the service `tenancy` gave for
 * his session, and what he is told is seen by the invariants. The operator makes and disables him, and asks until there is an answer.
 */
export interface Visit {
  readonly user: string;
  readonly cell: string;
  readonly ticket: string;
  readonly sinceMs: number;
  /** Somebody has asked for it: from then on it may be so. */
  isRevoking: boolean;
  /** When `tenancy` has said that he is disabled; null: it has not. */
  revokedMs: number | null;
}
export interface Told {
  readonly visit: Visit;
  /** `open`, `old`, `unknown`, `silent`. */
  readonly state: string;
  readonly askedMs: number;
}

/** Null: it does not run. */
interface Asked {
  request(request: Json): Promise<Json> | null;
}
/** Of the installation. */
interface Doors {
  readonly kernel: Kernel;
  readonly processes: ReadonlyMap<PeerName, Asked>;
  readonly controllers: ReadonlyMap<string, Asked>;
}

const askEveryMs = 200;
const againMs = 500;
/** A service that starts anew between a link and its use takes it no more, and never so often. */
const mostLinks = 5;
const tenancy = peerName("tenancy");
const operator = { operator: true } as const;

export class Visitors {
  readonly visits: Visit[] = [];
  /** Invariants look on. */
  readonly watchers: ((told: Told) => void)[] = [];
  /** Of administrators whom the operator lets back in; null: as whom one is not in. */
  readonly returnWatchers: ((back: { readonly user: string; readonly role: string | null }) => void)[] = [];
  readonly #installation: Doors;
  #serial = 0;
  /** They ask no more. */
  haveLeft = false;
  readonly #uids = new Map<string, string>();

  constructor(installation: Doors) {
    this.#installation = installation;
  }

  /** A user of the account that has the cell, and his first ticket. `account`: the root cell says that it has it; null: it gets one. */
  arrive(cell: string, user: string, account: string | null): void {
    const path = account ?? `ROOT/of-${cell}`;
    this.#do(
      [
        ["addAccount", { path }, {}],
        ["addUser", { name: user, account: path, role: "account-admin", password: "set" }, {}],
        ...(account === null ? [["giveCell", { account: path }, { cell }] as const] : []),
      ],
      () => this.#enter(cell, user),
    );
  }

  /** A user of another account, to whom this cell's account gives a role on it. The cell's account is there. */
  invite(cell: string, user: string, owner: string | null): void {
    const account = `ROOT/guest-${user}`;
    const given = { account: owner ?? `ROOT/of-${cell}`, cells: [cell], to: account, role: "user" };
    this.#do(
      [
        ["addAccount", { path: account }, {}],
        ["addUser", { name: user, account, role: "account-admin", password: "set" }, {}],
        ["addDelegation", given, {}],
      ],
      () => this.#enter(cell, user),
    );
  }
  /** What he was given is taken back. */
  dismiss(user: string): void {
    this.#revoke(user, ["deleteDelegation", {}, { uid: this.#uids.get(`ROOT/guest-${user}`) ?? "" }]);
  }

  /** The operator's way back in: this administrator gives himself a password by the link, and logs in; by another link where one opens nothing. */
  recover(user: string, attempts = mostLinks): void {
    const { kernel } = this.#installation;
    const request = this.#request("recoverAdmin", { name: user }, {}) as { readonly link: string };
    this.#until(request, (answer) => {
      const { uid = "" } = answer as { readonly uid?: string };
      const used = { kind: "link-end", user: uid, hash: request.link, source: "outside", password: "phc" };
      this.#until(used, () => {
        const session = `session of ${request.link}`;
        const begun = { user: uid, password: "phc", totp: null };
        const login = { kind: "login-end", domain: "ROOT", user, source: "outside", session, begun, matched: true };
        this.#until(login, () =>
          this.#until({ ...this.#request("whoAmI", {}, {}), by: { session } }, (who) => {
            const role = (who as { readonly user?: { readonly role: string } }).user?.role ?? null;
            if (role === null && attempts > 1) {
              kernel.clock.after(againMs, () => this.recover(user, attempts - 1));
              return;
            }
            kernel.log(`user.${user}`, "back-in", { as: role ?? "nobody" });
            for (const watcher of this.returnWatchers) watcher({ user, role });
          }),
        );
      });
    });
  }

  /** So many users of an account, each of whom is refused so often. */
  pester(path: string, users: number, times: number): void {
    for (let index = 0; index < users; index += 1) {
      const name = `${path.split("/").at(-1)}${index}`;
      this.#do(
        [
          ["addAccount", { path }, {}],
          ["addUser", { name, account: path, role: "user", password: "set" }, {}],
        ],
        () => {
          this.#serial += 1;
          const session = `session${this.#serial}`;
          const begun = { user: this.#uids.get(name) ?? "", password: "phc" };
          const login = {
            kind: "login-end",
            domain: "ROOT",
            user: name,
            source: "outside",
            begun,
            matched: true,
            session,
          };
          this.#until(login, () => this.#beRefused(name, session, times));
        },
      );
    }
  }
  #beRefused(user: string, session: string, times: number): void {
    const { kernel } = this.#installation;
    if (times === 0) {
      kernel.log(`user.${user}`, "refused", {});
      return;
    }
    this.#until({ ...this.#request("addAccount", { path: "ROOT/never/there" }, {}), by: { session } }, () =>
      this.#beRefused(user, session, times - 1),
    );
  }

  disable(user: string): void {
    this.#revoke(user, ["changeUser", { state: "disabled" }, { uid: this.#uids.get(user) ?? "" }]);
  }
  #revoke(user: string, ask: readonly [name: string, body: JsonObject, parameters: JsonObject]): void {
    for (const visit of this.visits) if (visit.user === user) visit.isRevoking = true;
    const [name, body, parameters] = ask;
    // What is not there yet is taken back once it is.
    this.#untilTaken(this.#request(name, body, parameters), () => {
      for (const visit of this.visits)
        if (visit.user === user) visit.revokedMs ??= this.#installation.kernel.clock.nowMs;
    });
  }

  /** The account is there from now on, and may have so much; asked for until it was taken. */
  limit(path: string, limits: JsonObject): void {
    const { kernel } = this.#installation;
    this.#do([["addAccount", { path }, {}]], () =>
      this.#until(this.#request("listAccounts", {}, {}), (body) => {
        const { uid = "" } = (body as unknown as readonly AccountSummary[]).find((each) => each.path === path) ?? {};
        const set = (): void =>
          this.#until(this.#request("setQuota", { limits }, { uid }), (answer) => {
            // Before the root controller was heard nobody would count.
            if ((answer as { readonly error?: Json }).error === undefined) kernel.log("operator", "limits", { path });
            else kernel.clock.after(againMs, set);
          });
        set();
      }),
    );
  }

  /**
   * An account with a user, who has a key and a session, and whoever else knows of them: it gives and is given roles, a provider of logins maps to
   * it, and its user has invited somebody. Asked for until they are there.
   */
  member(path: string, user: string): void {
    const own = { name: user, account: path, role: "domain-admin", password: "set" };
    const [given, taken] = [
      { account: path, to: "ROOT/operator", role: "reader" },
      { account: "ROOT/operator", to: path, role: "reader" },
    ];
    const mappings = [{ claim: "groups", value: "all", account: path, role: "user" }];
    this.#do(
      [
        ["addAccount", { path }, {}],
        ["addUser", own, {}],
      ],
      () => {
        const uid = this.#uids.get(user) ?? "";
        const nothing = (): void => undefined;
        this.#until(this.#request("addKey", { user: uid }, {}), nothing);
        for (const body of [given, taken]) this.#until(this.#request("addDelegation", body, {}), nothing);
        const provider = { name: user, issuer: `https://${user}.example`, clientId: "cells", mappings };
        this.#until(this.#request("addProvider", provider, {}), nothing);
        this.#serial += 1;
        const begun = { user: uid, password: "phc", totp: null };
        const session = `session${this.#serial}`;
        const login = { domain: "ROOT", user, source: "outside", session };
        this.#until({ kind: "login-end", ...login, begun, matched: true }, () => {
          const invitation = this.#request("addInvitation", { domain: "ROOT", role: "user" }, {});
          this.#until({ ...invitation, by: { session } }, (answer) =>
            this.#installation.kernel.log("operator", "member", { path, user, ...(answer as JsonObject) }),
          );
        });
      },
    );
  }

  /** With all of its cells, however often it has to be said. */
  deleteAccount(path: string, cells: readonly string[]): void {
    const { kernel } = this.#installation;
    this.#until(this.#request("listAccounts", {}, {}), (body) => {
      const { uid = "" } = (body as unknown as readonly AccountSummary[]).find((each) => each.path === path) ?? {};
      const end = (): void => {
        const asked = { ...this.#request("deleteAccount", {}, { uid }), query: { allowDestroy: [...cells] } };
        this.#until(asked, (answer) => {
          const { error } = answer as { readonly error?: { readonly message: string } };
          if (error === undefined || /no account/.test(error.message)) kernel.log("operator", "deletes", { path });
          else kernel.clock.after(againMs, end);
        });
      };
      end();
    });
  }

  #request(name: string, body: JsonObject, parameters: JsonObject): object {
    this.#serial += 1;
    const key = { id: `CELL${this.#serial}`, sealed: "sealed" };
    const fresh = { uid: `drawn${this.#serial}`, number: String(this.#serial).padStart(12, "0") };
    return {
      kind: "ask",
      by: operator,
      name,
      parameters,
      query: {},
      body,
      password: "phc",
      fresh,
      key,
      link: `link${this.#serial}`,
    };
  }

  /** One after the other, each until it is answered. */
  #do(asks: readonly (readonly [name: string, body: JsonObject, parameters: JsonObject])[], then: () => void): void {
    const [first, ...rest] = asks;
    if (first === undefined) {
      then();
      return;
    }
    const [name, body, parameters] = first;
    this.#serial += 1;
    const uid = `drawn${this.#serial}`;
    if (name === "addUser") this.#uids.set(String(body.name), uid);
    if (name === "addDelegation") this.#uids.set(String(body.to), uid);
    const fresh = { uid, number: String(this.#serial).padStart(12, "0") };
    const request = { kind: "ask", by: operator, name, parameters, query: {}, body, password: "phc", fresh };
    // What was made before an answer was lost is there: the second time is refused, and as good.
    if (name === "addDelegation") this.#untilTaken(request, () => this.#do(rest, then));
    else this.#until(request, () => this.#do(rest, then));
  }

  /** Until it is taken, or is there already: what it names may not be there yet. */
  #untilTaken(request: object, then: () => void): void {
    const { kernel } = this.#installation;
    this.#until(request, (body) => {
      const { error } = body as { readonly error?: { readonly code: string } };
      if (error === undefined || error.code === "conflict") then();
      else if (!this.haveLeft) kernel.clock.after(againMs, () => this.#untilTaken(request, then));
    });
  }

  #enter(cell: string, user: string): void {
    const login = { domain: "ROOT", user, source: "outside" };
    this.#serial += 1;
    const [session, hash] = [`session${this.#serial}`, `ticket${this.#serial}`];
    const begun = { user: this.#uids.get(user) ?? "", password: "phc" };
    this.#until({ kind: "login-end", ...login, begun, matched: true, session }, () =>
      this.#untilTaken({ kind: "ticket", session, hash, cell }, () => {
        const { kernel } = this.#installation;
        const visit: Visit = {
          user,
          cell,
          ticket: hash,
          sinceMs: kernel.clock.nowMs,
          isRevoking: false,
          revokedMs: null,
        };
        this.visits.push(visit);
        kernel.log(`user.${user}`, "visit", { cell });
        this.#ask(visit);
      }),
    );
  }

  #until(request: object, then: (body: Json) => void): void {
    const { kernel, processes } = this.#installation;
    let isDone = false;
    const ask = (): void => {
      if (isDone) return;
      kernel.clock.after(againMs, ask);
      void processes
        .get(tenancy)
        ?.request(request as unknown as Json)
        ?.then((answer) => {
          if (isDone) return;
          isDone = true;
          then((answer as { readonly body: Json }).body);
        });
    };
    ask();
  }

  #ask(visit: Visit): void {
    const { kernel, controllers } = this.#installation;
    if (this.haveLeft) return;
    kernel.clock.after(askEveryMs, () => this.#ask(visit));
    const askedMs = kernel.clock.nowMs;
    const answer = controllers.get(visit.cell)?.request({ method: "TICKET-WORTH", hash: visit.ticket });
    void answer?.then((worth) => {
      const { state } = worth as { readonly state: string };
      for (const watcher of this.watchers) watcher({ visit, state, askedMs });
    });
  }
}
