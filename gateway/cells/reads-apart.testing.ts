import assert from "node:assert/strict";
import { routeNames, routeOf } from "../../model/contract/routes.ts";
import type { UsageDay } from "../../model/contract/tenancy/usage.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { eventually } from "../../runtime/installation.testing.ts";

/*
 * A tenant learns nothing of others: whatever may be read, by the table of routes, is for him the same before and after another tenant acts, and
 * what is another's is answered as what nobody has. Every route that is added later is read here too.
 */
const queries: Readonly<Record<string, readonly string[]>> = {
  can: ["?user=ann&domain=ROOT&verb=cell.read&path=shop", "?user=bob&domain=ROOT&verb=cell.read&path=shop"],
  listAllElements: ["", "?limit=1", "?account=ROOT/dev", "?account=ROOT", "?cell=vault", "?name=web"],
  readAudit: ["", "?limit=1000", "?service=tenancy&after=0", "?service=controller.shop"],
  listUsage: ["", "?path=ROOT/dev"],
};
/** Of a cell, and of what may be in it. */
const inCell = (path: string): readonly string[] => [`${path}/web`, `${path}/nothing`];

const addresses = (cells: readonly string[], names: readonly string[]): readonly string[] =>
  routeNames.flatMap((name) => {
    const { method, path, answer } = routeOf(name);
    // What goes on for as long as somebody listens, or is opened by what was given before, is tried by those that are about it.
    if (method !== "GET" || answer.stream) return [];
    const filled = path.includes("{cell}")
      ? cells.flatMap((cell) =>
          path
            .replace("{cell}", cell)
            .split("{path*}")
            .reduce<readonly string[]>(
              (paths, rest, part) => (part === 0 ? [rest] : paths.flatMap((each) => inCell(`${each}${cell}`))),
              [],
            ),
        )
      : [path];
    const named = filled.flatMap((each) =>
      /\{\w+\}/.test(each) ? names.map((own) => each.replace(/\{\w+\}/, encodeURIComponent(own))) : [each],
    );
    return named.flatMap((each) => (queries[name] ?? [""]).map((query) => `${each}${query}`));
  });

/** Hours pass meanwhile, for everybody. */
const timeless = (address: string, json: unknown): unknown =>
  address.startsWith("/usage") && Array.isArray(json)
    ? (json as readonly UsageDay[]).map(({ hours: _hours, used: _used, ...day }) => day)
    : json;

/** An installation with a root cell. */
export interface Asking {
  readonly operator: string;
  readonly said: () => string;
  readonly ask: (
    method: string,
    path: string,
    body?: JsonObject,
    credential?: string,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<{ readonly status: number; readonly json: unknown }>;
  /** A cell `shop` with these VMs. */
  readonly shop: (...names: string[]) => JsonObject;
}
/** Bob has the cell `vault` for a while; ann has `shop`, and acts. */
export async function readsAreApart(
  { ask, operator, shop, said }: Asking,
  { ann, bob, secret }: { readonly ann: string; readonly bob: string; readonly secret: string },
): Promise<void> {
  const done = async (method: string, path: string, body?: object, by = ann): Promise<unknown> => {
    const answer = await ask(method, path, body as JsonObject | undefined, by);
    assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.json)}\n${said()}`);
    return answer.json;
  };
  const give = (account: string) => done("PUT", "/owners/vault", { account }, operator);
  await give("ROOT/ops");
  await eventually("bob has it", async () => (await ask("GET", "/cells/vault/model", undefined, bob)).status === 200);
  const users = (await done("GET", "/users")) as readonly { readonly uid: string; readonly name: string }[];
  const uid = users.find(({ name }) => name === "ann")?.uid ?? assert.fail("ann");
  const all = addresses(["vault", "shop", "nobodys"], ["web", uid]);
  assert.ok(all.length > 50, `${all.length} addresses`);
  const read = async (): Promise<ReadonlyMap<string, string>> => {
    const found = new Map<string, string>();
    for (const address of all) {
      const { status, json } = await ask("GET", address, undefined, bob);
      found.set(address, `${status} ${JSON.stringify(timeless(address, json))}`);
    }
    return found;
  };
  const before = await read();
  assert.ok([...before.values()].filter((text) => text.startsWith("200")).length > 15, "he may read something");

  await done("PUT", "/cells/shop/model", shop("web", "db"));
  await done("POST", "/users", { name: "eve", account: "ROOT/dev", role: "user", password: `another ${secret}` });
  const { key } = (await done("POST", "/keys", { note: "hers" })) as { readonly key: { readonly id: string } };
  await done("DELETE", `/keys/${key.id}`);
  await done("POST", "/delegations", { account: "ROOT/dev", to: "0".repeat(12), role: "reader", cells: ["shop"] });
  const session = (await done("POST", "/logins", { user: "eve", password: `another ${secret}` })) as {
    readonly session: string;
  };
  for (const [method, path, body] of [
    ["POST", "/logins", { user: "ann", password: "wrong" }],
    ["PUT", "/cells/vault/model", shop("web")],
    ["DELETE", "/cells/vault/model"],
    ["POST", "/users", { name: "mine", account: "ROOT/ops", role: "user", password: `of ${secret}` }],
    ["POST", "/cells/shop/credentials", { note: "hers" }],
    ["PUT", "/cells/shop/model", { shop: { "x.type": "Nothing" } }],
  ] as const)
    await ask(method, path, body as JsonObject | undefined, path === "/users" ? session.session : ann);
  await done("PUT", "/cells/shop/model", shop("web", "app"));

  const after = await read();
  for (const [address, text] of before) {
    assert.equal(after.get(address), text, `what bob reads of ${address} has changed with what ann did`);
  }
  for (const [address, text] of after) {
    if (!address.includes("shop")) continue;
    const nobodys = after.get(address.replaceAll("shop", "nobodys"));
    if (nobodys !== undefined) assert.equal(text.replaceAll("shop", "nobodys"), nobodys, address);
  }
  await give("ROOT/operator");
  await eventually(
    "it is the operator's",
    async () => (await ask("GET", "/cells/vault", undefined, bob)).status === 404,
  );
}
