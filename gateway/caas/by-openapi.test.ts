import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { openApi } from "../../model/contract/openapi.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { CaasWorld } from "./volumes/caas.testing.ts";

/*
 * A client that is made of the OpenAPI document and knows nothing else of the interface lets users work with persistent volumes: what the document leaves
 * out, or says wrong, it cannot ask for or read.
 */
interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonObject }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: JsonObject }>> }>
  >;
}
interface Asking {
  readonly body?: JsonObject;
  readonly [parameter: string]: string | number | boolean | readonly string[] | JsonObject | undefined;
}
interface Answered {
  readonly status: number;
  readonly json: JsonObject;
  readonly list: readonly JsonObject[];
}
type Send = (
  line: string,
  body: JsonObject | undefined,
  headers: Readonly<Record<string, string>>,
) => Promise<Answered>;

/** A function for each operation, by its `operationId`. What is asked and answered is held to the document's schemas. */
function clientOf(document: JsonObject, send: Send): (operation: string, asking?: Asking) => Promise<Answered> {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: "openapi", ...document });
  const pointer = (...parts: readonly string[]): string =>
    `openapi#/${parts.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")}`;
  const compiled = new Map<string, ValidateFunction>();
  const hold = (value: Json, what: string, ...at: readonly string[]): void => {
    const ref = pointer(...at);
    const validate = compiled.get(ref) ?? ajv.compile({ $ref: ref });
    compiled.set(ref, validate);
    assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`);
  };
  const paths = document.paths as unknown as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const operations = new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, operation]) => [operation.operationId, { path, method, operation }] as const,
      ),
    ),
  );
  return async (name, { body, ...given } = {}) => {
    const found = operations.get(name);
    assert.ok(found !== undefined, `the document has no operation ${name}`);
    const { path, method, operation } = found;
    const { parameters = [], requestBody, responses } = operation;
    const query = new URLSearchParams();
    const headers: Record<string, string> = {};
    let url = path;
    for (const [key, value] of Object.entries(given)) {
      const parameter = parameters.find((each) => each.name === key);
      assert.ok(parameter !== undefined, `${name} has no parameter ${key}`);
      if (parameter.in === "path") url = url.replace(`{${key}}`, encodeURIComponent(String(value)));
      else if (parameter.in === "header") headers[key.toLowerCase()] = String(value);
      else for (const each of Array.isArray(value) ? value : [value]) query.append(key, String(each));
    }
    for (const { name: needed, required, in: where } of parameters)
      assert.ok(required !== true || where === "header" || needed in given, `${name} needs ${needed}`);
    if (body !== undefined) {
      assert.ok(requestBody?.content["application/json"] !== undefined, `${name} takes no JSON`);
      hold(body, `what ${name} is sent`, "paths", path, method, "requestBody", "content", "application/json", "schema");
    }
    const answer = await send(`${method.toUpperCase()} ${url}${query.size === 0 ? "" : `?${query}`}`, body, headers);
    const status = String(answer.status);
    const at = status in responses ? status : "default";
    const response = responses[at];
    assert.ok(response !== undefined, `${name}: the document has no answer ${status}`);
    if (response.content?.["application/json"] !== undefined)
      hold(
        answer.json,
        `what ${name} answers`,
        "paths",
        path,
        method,
        "responses",
        at,
        "content",
        "application/json",
        "schema",
      );
    return answer;
  };
}

const people = {
  ann: { account: "ROOT/acme/dev", cells: ["shop"] },
  bob: { account: "ROOT/bank/core", cells: ["bank"] },
} as const;
const disk = { "x.type": "Volume", "x.size": 64 };

test("users make, find, change, share, harvest and delete persistent volumes by a client of the document alone", async () => {
  const world = new CaasWorld(people, "shop", "bank");
  world.cell("shop").put({ shop: { "x.type": "Cell", "x.name": "shop", db: { disk } } });
  const id = "0123456789abcdef0123456789abcdef";
  world.uploads.set("ROOT/acme/dev", [
    { id, sha256: "a".repeat(64), sizeMiB: 8, image: `upload-0011223344556677-${id}` },
  ]);
  try {
    const as = (who: string) => clientOf(openApi(), (line, body, headers) => world.ask(who, line, body, headers));
    const [ann, bob] = [as("ann"), as("bob")];
    const ok = async (answer: Promise<Answered>): Promise<Answered> => {
      const got = await answer;
      assert.ok(got.status < 300, JSON.stringify(got.json));
      return got;
    };
    const key = { "Idempotency-Key": "k1" };
    const data = await ok(
      ann("addVolume", { ...key, body: { name: "data", sizeMiB: 64, tags: ["db"], text: "first" } }),
    );
    const again = await ok(
      ann("addVolume", { ...key, body: { name: "data", sizeMiB: 64, tags: ["db"], text: "first" } }),
    );
    assert.equal(again.json.uid, data.json.uid);
    const uid = String(data.json.uid);
    const found = await ok(ann("listVolumes", { text: "fir", tag: ["db"], leastMiB: 64, limit: 1 }));
    assert.deepEqual(
      found.list.map((each) => each.uid),
      [uid],
    );
    const changed = await ok(ann("changeVolume", { uid, body: { name: "base", sizeMiB: 128 } }));
    assert.deepEqual([changed.json.name, changed.json.sizeMiB], ["base", 128]);
    await ok(ann("addVolumeVersion", { uid, body: { upload: id } }));
    assert.equal((await bob("readVolume", { uid })).status, 404);
    const shared = await ok(
      ann("shareVolume", { uid, body: { kind: "account", path: "ROOT/bank/core", right: "copy" } }),
    );
    const clone = await ok(bob("addVolume", { body: { name: "mine", from: { volume: uid, version: 1 } } }));
    const [share] = shared.json.shares as readonly JsonObject[];
    await ok(ann("unshareVolume", { uid, id: String(share?.id) }));
    assert.equal((await bob("readVolume", { uid })).status, 404);
    await ok(bob("readVolume", { uid: String(clone.json.uid) }));
    const kept = await ok(ann("addVolume", { body: { name: "kept", from: { cell: "shop", path: "shop/db/disk" } } }));
    assert.equal(world.cell("shop").ask({ method: "DELETE", path: "" }).status, 200);
    const read = await ok(ann("readVolume", { uid: String(kept.json.uid) }));
    assert.deepEqual(
      (read.json.versions as readonly JsonObject[]).map(({ number }) => number),
      [1],
    );
    const needed = await ann("deleteVolume", { uid, allowDestroy: "base" });
    assert.equal(needed.status, 409, "its clone needs it");
    assert.doesNotMatch(JSON.stringify(needed.json), new RegExp(String(clone.json.uid)));
    await ok(bob("deleteVolume", { uid: String(clone.json.uid), allowDestroy: "mine" }));
    const asked = await ok(ann("deleteVolume", { uid, dryRun: true }));
    assert.deepEqual(asked.json.versions, [1, 2]);
    assert.equal((await ann("deleteVolume", { uid })).status, 409);
    await ok(ann("deleteVolume", { uid, allowDestroy: "base" }));
    const left = (await ok(ann("listVolumes"))).list.map((each) => each.name);
    assert.deepEqual(left, ["kept"]);
  } finally {
    await world.end();
  }
});
