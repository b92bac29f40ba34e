import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { createTickets, takeTicketInput } from "../../core/controller/requests/tickets.ts";
import { readStored, restoredOf, storeKey } from "../../core/distribution/node/stored.ts";
import { type ActualLook, tenancy } from "../../core/documents/tenancy.ts";
import type { Effect, Input, Restored } from "../../core/env.ts";
import { createOutbox, toJson } from "../../core/outbox.ts";
import type { By } from "../../core/tenancy/actor.ts";
import type { SignedBegun } from "../../core/tenancy/logins/signed.ts";
import { createTenancy } from "../../core/tenancy/tenancy.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import { builtInUid } from "../../model/contract/tenancy/rules.ts";
import type { Json } from "../../model/json/json.ts";
import { seal, unseal } from "../../runtime/identity/own/seal.ts";
import { openStore } from "../../runtime/process/store.ts";
import { isSignature } from "../../runtime/tenancy/signatures.ts";

/*
 * The service `tenancy` at one size, of `tenancy.ts`: over a store on disk, in a process of its own, since its memory is measured. Arguments:
 * `make` or `measure`, the file of the store, domains, accounts, users, repetitions.
 */
export interface TenancyReport {
  readonly restoreMs: number;
  readonly heapMiB: number;
  /** Of the whole process, at rest. */
  readonly residentMiB: number;
  readonly firstLooksMs: readonly number[];
  readonly signedMs: readonly number[];
  /** Processor time of one. */
  readonly signedCpuMs: number;
  readonly canMs: readonly number[];
  /** At a cell's controller, of a ticket that it follows. */
  readonly knownMs: readonly number[];
  /** From a user disabled until all that controllers are told of his tickets is said: a step. */
  readonly takenBackMs: readonly number[];
}
const [what = "", file = "", ...size] = process.argv.slice(2);
const isMaking = what === "make";
const [domains = 1, accounts = 1, users = 1, repetitions = 1] = size.map(Number);
const key = Buffer.alloc(32, 7);
const secret = "a-secret-of-a-key-that-has-43-characters-ok";

function* records(): Generator<readonly [string, Json]> {
  yield ["domain/domain.root", { uid: "domain.root", name: "ROOT", parent: null, state: "enabled" }];
  for (let n = 0; n < domains; n += 1) {
    const parent = n < 32 ? "domain.root" : `domain-${n % 32}`;
    yield [`domain/domain-${n}`, { uid: `domain-${n}`, name: `d${n}`, parent, state: "enabled" }];
  }
  for (let n = 0; n < accounts; n += 1) {
    const uid = `account-${n}`;
    const number = String(n).padStart(12, "0");
    yield [`account/${uid}`, { uid, name: `a${n}`, domain: `domain-${n % domains}`, number, state: "enabled" }];
    yield [`owner/cell-${n}`, { account: uid }];
  }
  const password = `$argon2id$v=19$m=19456,t=2,p=1$${"c".repeat(22)}$${"h".repeat(43)}`;
  for (let n = 0; n < users; n += 1) {
    const uid = `user-${n}`;
    const role = builtInUid(n % 5 === 0 ? "account-admin" : "user");
    yield [`user/${uid}`, { uid, name: `u${n}`, account: `account-${n % accounts}`, role, state: "enabled", password }];
    const sealed = seal(key, `CELL${n}`, secret);
    if (n % 5 === 0) yield [`key/CELL${n}`, { user: uid, note: "", state: "enabled", madeMs: 0, sealed }];
    if (n % 10 === 0) yield [`session/session-${n}`, { user: uid, untilMs: Date.now() + 3_600_000 }];
  }
}

if (isMaking) {
  const store = openStore(file);
  let batch = new Map<string, Json>();
  for (const [name, value] of records()) {
    batch.set(storeKey.own(name), value);
    if (batch.size < 10_000) continue;
    store.commit(batch);
    batch = new Map();
  }
  store.commit(batch);
  store.close();
  process.exit();
}

const service = createTenancy({ self: peerName("tenancy") });
const beginMs = performance.now();
const again = openStore(file);
// As a process does it, with what that needs meanwhile.
const restored = (): Restored => restoredOf(readStored(again.load()));
const state = service.restore(restored());
const step = (input: Input): readonly Effect[] =>
  service.step(state, input, { ms: performance.now(), wallMs: Date.now() }).effects;
step({ kind: "start" });
const restoreMs = performance.now() - beginMs;
globalThis.gc?.();
const heapMiB = process.memoryUsage().heapUsed / 2 ** 20;
const [, resident = "0"] = /VmRSS:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8")) ?? [];

const request = (asked: object): { readonly status: number; readonly body: Json } => {
  const effects = step({ kind: "request", id: 1, request: asked as unknown as Json });
  const reply = effects.find((effect) => effect.kind === "reply");
  return reply?.response as unknown as { status: number; body: Json };
};
const timed = (work: (round: number) => void): number[] =>
  Array.from({ length: repetitions }, (_, round) => {
    const before = performance.now();
    work(round);
    return performance.now() - before;
  });
const must = (what: string, status: number, expected = 200): void => {
  if (status !== expected) throw new Error(`${what}: ${status}`);
};
const operator: By = { operator: true };
const ask = (name: string, more: object): number =>
  request({
    kind: "ask",
    by: operator,
    name,
    parameters: {},
    query: {},
    body: {},
    password: null,
    fresh: { uid: "", number: "" },
    ...more,
  }).status;
const follow = (session: string, cell: string, hash: string): void => {
  must("ticket", request({ kind: "ticket", session, hash, cell }).status);
  step({ kind: "desired", from: peerName(`controller.${cell}`), key: `look/${hash}`, value: { ticket: hash } });
};

const firstLooksMs = timed((round) => {
  const n = (round * 10) % Math.min(users, accounts);
  follow(`session-${n}`, `cell-${n}`, `look-${round}`);
});
const cpuMs = (): number => process.threadCpuUsage().user / 1000 + process.threadCpuUsage().system / 1000;
const beforeMs = cpuMs();
const signedMs = timed((round) => {
  const id = `CELL${(round * 5) % users}`;
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const stringToSign = `AWS4-HMAC-SHA256\n${date}\n${date.slice(0, 8)}/here/ec2/aws4_request\n${"a".repeat(64)}`;
  const signed = { scheme: "sigv4", key: id, stringToSign } as const;
  const begun = request({ kind: "signed-begin", signed, source: "192.0.2.7" }).body as unknown as SignedBegun;
  // One that is wrong costs what a right one costs, and the client's part is not counted.
  isSignature(unseal(key, id, begun.sealed ?? ""), { ...signed, signature: "0".repeat(64) });
});
const signedCpuMs = (cpuMs() - beforeMs) / repetitions;
const canMs = timed((round) => {
  const n = round % users;
  const query = { user: `u${n}`, domain: pathOf(n), verb: "vm.console", path: `cell-${n % accounts}/web` };
  must("can", ask("can", { query }));
});
const takenBackMs = timed((round) => {
  const n = ((round % 100) * 10) % users;
  must(
    "change",
    ask("changeUser", { parameters: { uid: `user-${n}` }, body: { state: round % 2 === 0 ? "disabled" : "enabled" } }),
  );
});

const self = peerName("controller.shop");
const given = { records: new Map(), desiredAt: new Map() };
const tickets = createTickets(self, given, createOutbox(given));
const atController = (input: Input): void =>
  void takeTicketInput(tickets, input, { ms: performance.now(), wallMs: Date.now() });
const worth: ActualLook = {
  open: true,
  user: "ann@ROOT",
  account: "ROOT/dev",
  rules: [{ verb: "*", effect: "allow" }],
};
const hashes = Array.from({ length: 1000 }, (_, n) => n.toString(16).padStart(64, "0"));
atController({ kind: "reachable", peer: tenancy, reachable: true });
for (const hash of hashes) {
  atController({ kind: "request", id: 1, request: { method: "TICKET-WORTH", hash } });
  atController({ kind: "actual", from: tenancy, key: `${self}/look/${hash}`, value: toJson(worth) });
}
const knownMs = timed((round) => {
  const hash = hashes[round % hashes.length] ?? "";
  atController({ kind: "request", id: 1, request: { method: "TICKET-WORTH", hash } });
});

function pathOf(user: number): string {
  const domain = (user % accounts) % domains;
  return domain < 32 ? `ROOT/d${domain}` : `ROOT/d${domain % 32}/d${domain}`;
}
again.close();
const report: TenancyReport = {
  restoreMs,
  heapMiB,
  residentMiB: Number(resident) / 1024,
  firstLooksMs,
  signedMs,
  signedCpuMs,
  canMs,
  knownMs,
  takenBackMs,
};
process.stdout.write(JSON.stringify(report));
