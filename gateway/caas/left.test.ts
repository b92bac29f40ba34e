import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../model/json/json.ts";
import { type Answer, CaasWorld, uidOfAccount } from "./volumes/caas.testing.ts";
import { openIndex } from "./volumes/search.ts";

/* What is left behind: the origin of somebody's clone when it is deleted, and the path of a domain that is. */
const people = {
  ann: { account: "ROOT/acme/dev", cells: ["shop"] },
  bob: { account: "ROOT/bank/core", cells: ["bank"] },
} as const;
const withWorld = async (work: (world: CaasWorld) => Promise<void>): Promise<void> => {
  const world = new CaasWorld(people, "shop", "bank");
  try {
    await work(world);
  } finally {
    await world.end();
  }
};
const said = ({ status, json }: Answer): string => `${status} ${(json.error as JsonObject | undefined)?.message ?? ""}`;
const made = async (world: CaasWorld, who: string, body: object): Promise<string> => {
  const answer = await world.ask(who, "POST /volumes", body);
  assert.equal(answer.status, 201, said(answer));
  return String(answer.json.uid);
};
const seenBy = async (world: CaasWorld, who: string): Promise<readonly unknown[]> =>
  (await world.ask(who, "GET /volumes")).list.map(({ uid }) => uid);
const removed = (world: CaasWorld, who: string, uid: string): Promise<Answer> =>
  world.ask(who, `DELETE /volumes/${uid}?allowDestroy=${uid}`);

test("an origin that is deleted stays with the provider for its clones, is nobody else's, and goes with the last of them", () =>
  withWorld(async (world) => {
    const origin = await made(world, "ann", { name: "golden", sizeMiB: 64, tags: ["web"], text: "ours" });
    const share = { kind: "account", path: "ROOT/bank/core", right: "copy" };
    assert.equal((await world.ask("ann", `POST /volumes/${origin}/shares`, share)).status, 200);
    const [one, two] = [
      await made(world, "bob", { name: "one", from: { volume: origin } }),
      await made(world, "bob", { name: "two", from: { volume: origin } }),
    ];
    const shown = await world.ask("ann", `DELETE /volumes/${origin}?dryRun=true`);
    assert.deepEqual([shown.status, shown.json.stays], [200, undefined]);
    const gone = await removed(world, "ann", origin);
    assert.deepEqual([gone.status, gone.json.stays], [200, true], said(gone));
    for (const who of ["ann", "bob"]) assert.ok(!(await seenBy(world, who)).includes(origin), who);
    assert.equal((await removed(world, "ann", origin)).status, 404);
    const { [origin]: left } = world.volumes() as Readonly<Record<string, JsonObject>>;
    assert.deepEqual(
      Object.keys(left ?? {}).filter((name) => /account|owner|-copy-|-connect-/.test(name)),
      [],
      "nobody may do anything with it",
    );
    assert.deepEqual([left?.tags, left?.text, left?.shares], [[], " ", {}], "what was written of it is gone");
    await made(world, "ann", { name: "golden", sizeMiB: 64 });
    assert.match(said(await removed(world, "operator", origin)), /^409 .* has clones among persistent volumes/);
    assert.equal((await removed(world, "bob", one)).status, 200);
    assert.ok((await seenBy(world, "operator")).includes(origin), "the other one still needs it");
    assert.equal((await removed(world, "bob", two)).status, 200);
    assert.ok(!(await seenBy(world, "operator")).includes(origin));
    assert.equal(world.volumes()[origin], undefined);
  }));

test("of a row of clones each that was left goes once nothing is made of it any more, and one that somebody has stays", () =>
  withWorld(async (world) => {
    const first = await made(world, "ann", { name: "first", sizeMiB: 64 });
    const second = await made(world, "ann", { name: "second", from: { volume: first } });
    const third = await made(world, "ann", { name: "third", from: { volume: second } });
    const kept = await made(world, "ann", { name: "kept", sizeMiB: 64 });
    const ofKept = await made(world, "ann", { name: "of-kept", from: { volume: kept } });
    for (const uid of [first, second]) assert.equal((await removed(world, "ann", uid)).json.stays, true);
    assert.equal((await removed(world, "ann", third)).json.stays, undefined);
    assert.equal((await removed(world, "ann", ofKept)).json.stays, undefined);
    assert.deepEqual(Object.keys(world.volumes()), [kept]);
  }));

test("of versions of which nobody has a clone nothing is left, and those stay that one with a clone is made of", () =>
  withWorld(async (world) => {
    const uid = await made(world, "ann", { name: "golden", sizeMiB: 64 });
    const add = async (body: object): Promise<void> => {
      const answer = await world.ask("ann", `POST /volumes/${uid}/versions`, body);
      assert.equal(answer.status, 200, said(answer));
    };
    await add({ sizeMiB: 64 });
    await add({ from: { volume: uid, version: 1 } });
    await add({ sizeMiB: 64 });
    const clone = await made(world, "ann", { name: "clone", from: { volume: uid, version: 3 } });
    await made(world, "ann", { name: "other", from: { volume: uid, version: 1 } });
    assert.equal((await removed(world, "ann", uid)).json.stays, true);
    const left = () => world.volumes()[uid] as JsonObject;
    const versions = () => Object.keys(left()).filter((name) => /^v\d/.test(name) && !name.endsWith("-size"));
    assert.deepEqual([versions(), left().version], [["v1", "v3"], 3]);
    assert.equal((await removed(world, "ann", clone)).status, 200);
    assert.deepEqual([versions(), left().version], [["v1"], 1]);
  }));

test("what is left for clones is in nobody's account, and in the room of the domain where it was left", () =>
  withWorld(async (world) => {
    let last = await made(world, "ann", { name: "row", sizeMiB: 64 });
    for (let at = 0; at < 3; at += 1) {
      const next = await made(world, "ann", { name: `row-${at}`, from: { volume: last } });
      assert.equal((await removed(world, "ann", last)).json.stays, true);
      last = next;
    }
    const index = openIndex(":memory:");
    index.fill("1", world.volumes());
    const { account, domain, all } = index.others("ROOT/acme/dev", null, last);
    assert.deepEqual([account.elements, domain.elements, all.elements], [0, 3, 3]);
    assert.equal(index.others("ROOT/bank/core", null, last).domain.elements, 0);
    index.close();
  }));

test("a share with a domain is for that one: who has its path later is another, for the storage layer as well", () =>
  withWorld(async (world) => {
    const uid = await made(world, "ann", { name: "data", sizeMiB: 64 });
    const body = { kind: "domain", path: "ROOT/bank", right: "copy" };
    // She is told nothing of a domain that she is not in, so hers is for the path alone.
    const byPath = await world.ask("ann", `POST /volumes/${uid}/shares`, body);
    assert.equal(byPath.status, 200, said(byPath));
    const holders = () =>
      Object.values((world.volumes()[uid] as JsonObject).shares as JsonObject).map(
        (each) => (each as JsonObject).holder,
      );
    assert.deepEqual(holders(), [undefined]);
    const [only] = byPath.json.shares as readonly JsonObject[];
    assert.equal((await world.ask("ann", `DELETE /volumes/${uid}/shares/${only?.id}`)).status, 200);
    assert.equal((await world.ask("operator", `POST /volumes/${uid}/shares`, body)).status, 200);
    assert.deepEqual(holders(), [uidOfAccount("ROOT/bank")]);
    assert.deepEqual(await seenBy(world, "bob"), [uid]);
    assert.equal((await world.ask("bob", `GET /volumes/${uid}`)).status, 200);
    world.uids.set("ROOT/bank", "uid-of-another-bank");
    assert.deepEqual(await seenBy(world, "bob"), []);
    assert.equal((await world.ask("bob", `GET /volumes/${uid}`)).status, 404);
    // Of the domain that she is in she knows which it is.
    const own = { kind: "domain", path: "ROOT/acme", right: "copy" };
    assert.equal((await world.ask("ann", `POST /volumes/${uid}/shares`, own)).status, 200);
    assert.ok(holders().includes(uidOfAccount("ROOT/acme")));
  }));
