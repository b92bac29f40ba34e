import assert from "node:assert/strict";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import { openApi } from "../../model/contract/openapi.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import { type Answered, clientOf } from "../shared/by-openapi.testing.ts";

interface Means {
  readonly said: () => string;
  readonly ask: (
    method: string,
    path: string,
    body?: JsonObject,
    credential?: string,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<{ readonly status: number; readonly json: unknown }>;
  /** What hosts would do: the controller of a cell is started, and ended. */
  readonly startAsHostsWould: (cell: string) => Promise<unknown>;
  readonly components: () => Promise<Readonly<Record<string, unknown>>>;
  readonly end: (name: PeerName) => Promise<void>;
  readonly installation: TestInstallation;
}

/**
 * A user makes a cell on demand, changes it, lets somebody of another account look at it, takes that back and deletes it, by a client of
 * the OpenAPI document alone.
 *
 * @param ann administers `ROOT/dev`; bob's account is another one
 */
export async function cellsByTheDocument(
  { ask, said, startAsHostsWould, components, end, installation }: Means,
  { ann, bob }: { readonly ann: string; readonly bob: string },
): Promise<void> {
  const as = (credential: string) =>
    clientOf(openApi(), async (line, body, headers) => {
      const [method = "", path = ""] = line.split(" ");
      const { status, json } = await ask(method, path, body as JsonObject | undefined, credential, headers);
      return { status, json: json as JsonObject, list: Array.isArray(json) ? (json as readonly JsonObject[]) : [] };
    });
  const [hers, his] = [as(ann), as(bob)];
  const ok = async (answer: Promise<Answered>): Promise<Answered> => {
    const got = await answer;
    assert.ok(got.status < 300, `${JSON.stringify(got.json)}\n${said()}`);
    return got;
  };
  const cell = "lab";
  const named = async (client: typeof his): Promise<readonly unknown[]> =>
    (await ok(client("listCells"))).list.map((each) => each.cell);
  const model = { lab: { "x.type": "Cell", web: { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" } } };
  await ok(hers("putModel", { cell, body: model, dryRun: true }));
  assert.ok(!(await named(hers)).includes(cell));
  await Promise.all([ok(hers("putModel", { cell, body: model })), startAsHostsWould(cell)]);
  assert.ok((await named(hers)).includes(cell));
  assert.ok(!(await named(his)).includes(cell));
  const note = [
    { op: "test", path: "/lab/web/x.memory", value: 64 },
    { op: "add", path: "/lab/note", value: "ours" },
  ];
  await ok(hers("patchModel", { cell, body: note, "Idempotency-Key": "lab-1" }));
  assert.equal(((await ok(hers("readModel", { cell }))).json.lab as JsonObject).note, "ours");
  assert.equal((await his("readModel", { cell })).status, 404);

  const { user } = (await ok(his("whoAmI"))).json as { readonly user: JsonObject };
  const given = { account: "ROOT/dev", cells: [cell], to: String(user.uid), role: "reader" };
  const { uid } = (await ok(hers("addDelegation", { body: given }))).json;
  await eventually("he may look at it", async () => (await his("readModel", { cell })).status === 200);
  assert.deepEqual(await named(his), [cell]);
  assert.equal((await his("patchModel", { cell, body: note })).status, 403, "and change nothing");
  assert.equal((await his("deleteModel", { cell })).status, 403);
  await ok(hers("deleteDelegation", { uid: String(uid) }));
  await eventually("he may not any more", async () => (await his("readModel", { cell })).status === 404);

  await ok(hers("deleteModel", { cell, dryRun: true }));
  assert.ok((await named(hers)).includes(cell), "it was only shown");
  await ok(hers("deleteModel", { cell }));
  await eventually(`it has ended\n${said()}`, async () => (await components()).lab === undefined);
  await end(peerName("controller.lab"));
  await installation.forget(peerName("controller.lab"));
}
