import type { FastifyInstance, FastifyRequest } from "fastify";
import { viaBy, viaHeader } from "../../../model/contract/audit/via.ts";
import { keyHeader } from "../../../model/contract/request.ts";
import { cursorIn, cursorOf, mostOfPage, nextHeader } from "../../../model/contract/tenancy/pages.ts";
import type { QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import { allows } from "../../../model/contract/tenancy/rules.ts";
import type { AccountSummary, DomainSummary, WhoAmI } from "../../../model/contract/tenancy/tenancy.ts";
import { parseJson } from "../../../runtime/http/http.ts";
import { RefusedError, refusalIn, refused } from "../../requests/refused.ts";
import { serveRoute } from "../../requests/serve.ts";
import type { Contract } from "../../shared/contract.ts";
import { createHarvest, createRelease, createUsers } from "./harvest.ts";
import { forWhom } from "./primary.ts";
import { requireTold, storageLimitIn } from "./quota.ts";
import type { Asker } from "./rights.ts";
import type { Asked } from "./sources.ts";
import { createFindUpload, releaseOf } from "./uploads.ts";
import type { Volumes } from "./volumes.ts";
import { createWaiting, type Waiting, waitingLimits } from "./waiting.ts";

/** Requests about persistent volumes, each for whoever the gateway says that it comes from. */
export function serveVolumes(
  app: FastifyInstance,
  contract: Pick<Contract, "ask" | "askedFor">,
  volumes: Volumes,
): void {
  const known = new WeakMap<FastifyRequest, AskedBy>();
  const waiting = createWaiting(waitingLimits);
  // Nothing of a body is read for somebody whom the gateway does not know.
  app.addHook("onRequest", async (request) => {
    known.set(request, await whoAsks(contract, request, waiting));
  });
  const askedBy = async (request: FastifyRequest) => known.get(request) ?? whoAsks(contract, request, waiting);
  serveRoute(app, "listVolumes", async ({ request, query }, reply) => {
    const { asker } = await askedBy(request);
    const { limit = mostOfPage, after, tag, ...more } = query;
    const behind = after === undefined ? undefined : cursorIn("listVolumes", after);
    if (behind === null)
      throw refused(400, "bad-request", "after in the query: it is no cursor that this list has given");
    const found = await volumes.find(asker, { ...more, tag: tag ?? [], behind, limit: limit + 1 });
    const page = found.slice(0, limit);
    const last = page.at(-1);
    if (found.length > limit && last !== undefined) reply.header(nextHeader, cursorOf("listVolumes", last.uid));
    return page;
  });
  /** What waits for cells gives its place back when it is over, also where its client has gone before. */
  const byWhoAsks = async <T>(request: FastifyRequest, work: (asked: AskedBy) => Promise<T>): Promise<T> => {
    const asked = await askedBy(request);
    try {
      return await forWhom.run(asked.told, () => work(asked));
    } finally {
      asked.leave();
    }
  };
  serveRoute(app, "addVolume", async ({ request, body }, reply) => {
    if (body === null) throw refused(400, "bad-request", "a volume is needed");
    const key = request.headers[keyHeader];
    const made = await byWhoAsks(request, (asked) =>
      volumes.add(asked, body, typeof key === "string" ? [asked.who, key] : null),
    );
    reply.code(201);
    return made;
  });
  serveRoute(app, "readVolume", ({ request, parameters }) =>
    byWhoAsks(request, (asked) => volumes.read(asked, parameters.uid)),
  );
  serveRoute(app, "changeVolume", ({ request, parameters, body }) =>
    byWhoAsks(request, (asked) => volumes.change(asked, parameters.uid, body ?? {})),
  );
  serveRoute(app, "addVolumeVersion", ({ request, parameters, body }) =>
    byWhoAsks(request, (asked) => volumes.addVersion(asked, parameters.uid, body ?? {})),
  );
  serveRoute(app, "deleteVolume", ({ request, parameters, query }) =>
    byWhoAsks(request, (asked) => volumes.remove(asked, parameters.uid, query)),
  );
  serveRoute(app, "shareVolume", ({ request, parameters, body }) => {
    if (body === null) throw refused(400, "bad-request", "a share is needed");
    return byWhoAsks(request, async ({ asker, domain }) =>
      volumes.share(asker, parameters.uid, body, body.kind === "domain" ? await domain(body.path ?? "") : undefined),
    );
  });
  serveRoute(app, "unshareVolume", ({ request, parameters }) =>
    byWhoAsks(request, ({ asker }) => volumes.unshare(asker, parameters.uid, parameters.id)),
  );
}

interface AskedBy extends Asked {
  readonly who: string;
  /** Of what CaaS does for him by its own credential. */
  readonly told: Readonly<Record<string, string>>;
  readonly leave: () => void;
  /** UID of a domain; undefined: he is not told. */
  readonly domain: (path: string) => Promise<string | undefined>;
}

/** By what the gateway says, each time anew: what was taken from him counts at once. */
async function whoAsks(
  contract: Pick<Contract, "ask" | "askedFor">,
  request: FastifyRequest,
  waiting: (who: string) => Waiting,
): Promise<AskedBy> {
  const headers = contract.askedFor(request.raw);
  const ask = async (path: string): Promise<unknown> => {
    const answer = await contract.ask({ method: "GET", path, headers }).catch(() => {
      throw refused(502, "unreachable", "the gateway behind this door does not answer");
    });
    if (answer.status !== 200) throw refusalIn(answer.status, answer.text, "unreachable", "the gateway refuses it");
    const read = parseJson(answer.text);
    return read.ok ? read.value : null;
  };
  const [{ user, reach, rules, domains = {} }, cells, accounts] = (await Promise.all([
    ask("/whoami"),
    ask("/cells"),
    // Whose role does not show him his account has nothing by its cells, and of its volumes those alone that are of a path.
    ask("/accounts").catch((error: unknown) => {
      if (error instanceof RefusedError && error.statusCode === 403) return [];
      throw error;
    }),
  ])) as [WhoAmI, readonly { readonly cell: string }[], readonly AccountSummary[]];
  const names = new Set(cells.map(({ cell }) => cell));
  const own = accounts.find(({ path }) => path === user?.account);
  const asker: Asker = {
    account: user?.account ?? null,
    reach: user === null ? "installation" : reach,
    accounts: new Map(accounts.flatMap(({ path, uid, cells }) => [path, ...cells].map((name) => [name, uid] as const))),
    domains: new Map(Object.entries(domains)),
    cells: new Set(own?.cells ?? []),
    mayRead: user === null || allows(rules, "cell.read"),
    mayChange: user === null || allows(rules, "cell.change"),
  };
  const who = user?.uid ?? "operator";
  const his = waiting(who);
  return {
    asker,
    who,
    told: headers[viaHeader] === undefined ? {} : { [viaHeader]: viaBy(headers[viaHeader], who) },
    leave: his.leave,
    domain: async (path) => {
      const known = asker.domains.get(path);
      if (known !== undefined) return known;
      const told = (await ask("/domains").catch((error: unknown) => {
        if (error instanceof RefusedError && error.statusCode < 500) return [];
        throw error;
      })) as readonly DomainSummary[];
      return told.find((each) => each.path === path)?.uid;
    },
    users: createUsers(contract, headers, names, his),
    harvest: createHarvest(contract, headers, his),
    release: releaseOf(contract, headers, asker, createRelease(contract, headers, names, his)),
    upload: createFindUpload(contract, headers),
    storage: async (account) => {
      if (account === null) return null;
      requireTold(asker, account);
      return storageLimitIn((await ask("/quotas")) as readonly QuotaSummary[], account);
    },
  };
}
