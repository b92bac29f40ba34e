import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../../model/json/json.ts";
import { type Answer, CaasWorld, uidOfAccount } from "./caas.testing.ts";

const people = {
  ann: { account: "ROOT/acme/dev", cells: ["shop"] },
  amy: { account: "ROOT/acme/dev", role: "reader", cells: ["shop"] },
  adam: { account: "ROOT/acme/ops", role: "domain-admin", cells: ["shop"] },
  bob: { account: "ROOT/bank/core", cells: ["bank"] },
  // Who was let look at a cell of another account.
  eve: { account: "ROOT/other/x", cells: ["bank"], others: ["bank"] },
} as const;
const withWorld = async (work: (world: CaasWorld) => Promise<void>): Promise<void> => {
  const world = new CaasWorld(people, "shop", "bank");
  try {
    await work(world);
  } finally {
    await world.end();
  }
};
const uidOf = ({ json }: Answer): string => String(json.uid);
const said = ({ status, json }: Answer): string =>
  `${status} ${String(((json.error ?? {}) as JsonObject).message ?? "")}`;
const group = (world: CaasWorld, uid: string): JsonObject => (world.volumes()[uid] ?? {}) as JsonObject;

test("an empty volume is made in the primary cell, for the account of who asks, and found there", () =>
  withWorld(async (world) => {
    const made = await world.ask("ann", "POST /volumes", {
      name: "data",
      sizeMiB: 64,
      tags: ["db", "ref:/x"],
      text: "<ref:/nowhere/at/all>",
    });
    assert.equal(made.status, 201, said(made));
    const uid = uidOf(made);
    assert.deepEqual(
      [made.json.account, made.json.version, made.json.sizeMiB, made.json.rights, made.json.text, made.json.tags],
      ["ROOT/acme/dev", 1, 64, ["copy", "write", "manage"], "<ref:/nowhere/at/all>", ["db", "ref:/x"]],
    );
    assert.equal(made.json.reference, `<ref://primary.cells.internal/primary/volumes/${uid}/v1>`);
    assert.equal(group(world, uid).text, " <ref:/nowhere/at/all>", "what somebody wrote is no reference");
    const { v1, "v1-copy-owner": copy, "v1-connect-owner": connect } = group(world, uid);
    assert.deepEqual(v1, { "x.type": "Volume", "x.public": true, "x.size": 64 });
    const to = { "x.account": "ROOT/acme/dev", "x.holder": uidOfAccount("ROOT/acme/dev") };
    const grant = { "x.type": "VolumeGrant", "x.volume": "<ref:../v1>", ...to };
    assert.deepEqual(
      [copy, connect],
      [
        { ...grant, "x.grant": "copy" },
        { ...grant, "x.grant": "connect" },
      ],
    );
    assert.deepEqual(
      (await world.ask("ann", "GET /volumes")).list.map((each) => each.uid),
      [uid],
    );
    const read = await world.ask("ann", `GET /volumes/${uid}`);
    assert.deepEqual([(read.json.versions as JsonObject[])[0]?.phase, read.json.shares], ["ready", []]);
    assert.match(
      said(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 1 })),
      /^409 .*has a persistent volume data already/,
    );
    assert.equal(
      (await world.ask("bob", "POST /volumes", { name: "data", sizeMiB: 1 })).status,
      201,
      "names are an account's own",
    );
  }));

test("what is not one's own and what is not there are the same, whatever is asked", () =>
  withWorld(async (world) => {
    const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 }));
    const other = "pv-00000000-0000-4000-8000-000000000000";
    for (const [line, body] of [
      ["GET", undefined],
      ["PATCH", { name: "mine" }],
      ["DELETE", undefined],
      ["POST /versions", { sizeMiB: 1 }],
      ["POST /shares", { kind: "all", right: "copy" }],
      ["DELETE /shares/s-0", undefined],
    ] as const) {
      const [method, rest = ""] = line.split(" ");
      const [his, none] = [
        await world.ask("bob", `${method} /volumes/${uid}${rest}`, body),
        await world.ask("bob", `${method} /volumes/${other}${rest}`, body),
      ];
      assert.equal(said(his).replace(uid, other), said(none), line);
      assert.equal(his.status, 404, line);
    }
    const clone = await world.ask("bob", "POST /volumes", { name: "mine", from: { volume: uid } });
    assert.match(said(clone), /^404 there is no persistent volume/);
    assert.deepEqual((await world.ask("bob", "GET /volumes")).list, []);
    assert.match(
      said(await world.ask("bob", "POST /volumes", { name: "x", sizeMiB: 1, account: "ROOT/acme/dev" })),
      /^404 there is no account/,
    );
    for (const odd of ["%3Fstate", "..%2Fx", `${uid}%2Fv1`])
      assert.equal((await world.ask("ann", `GET /volumes/${odd}`)).status, 404, odd);
    assert.equal((await world.ask("nobody", "GET /volumes")).status, 401);
    // His own account's reader sees it and changes nothing; the administrator of the domain does.
    assert.equal((await world.ask("amy", `GET /volumes/${uid}`)).status, 200);
    assert.match(
      said(await world.ask("amy", `PATCH /volumes/${uid}`, { name: "b" })),
      /^403 your role does not let you/,
    );
    assert.match(
      said(await world.ask("amy", "POST /volumes", { name: "b", sizeMiB: 1 })),
      /^403 your role does not let you/,
    );
    assert.equal((await world.ask("adam", `PATCH /volumes/${uid}`, { name: "b" })).json.name, "b");
    assert.equal((await world.ask("operator", `GET /volumes/${uid}`)).status, 200);
  }));

test("whoever has an account's path after it has nothing of what it had", () =>
  withWorld(async (world) => {
    const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 }));
    const his = uidOf(await world.ask("operator", "POST /volumes", { name: "given", sizeMiB: 64 }));
    const shares = `POST /volumes/${his}/shares`;
    await world.ask("operator", shares, { kind: "account", path: "ROOT/bank/core", right: "copy" });
    await world.ask("operator", shares, { kind: "cell", path: "bank", right: "manage" });
    for (const [who, id] of [
      ["ann", uid],
      ["adam", uid],
      ["bob", his],
    ] as const)
      assert.equal((await world.ask(who, `GET /volumes/${id}`)).status, 200, who);
    world.uids.set("ROOT/acme/dev", "another-one").set("ROOT/bank/core", "another-one");
    for (const [who, id] of [
      ["ann", uid],
      ["adam", uid],
      ["bob", his],
    ] as const) {
      assert.equal((await world.ask(who, `GET /volumes/${id}`)).status, 404, who);
      assert.deepEqual((await world.ask(who, "GET /volumes")).list, [], who);
    }
    assert.equal((await world.ask("operator", `GET /volumes/${uid}`)).status, 200);
    const again = await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 });
    assert.equal(again.status, 201, "its names are free");
    const none = { name: "x", sizeMiB: 1, account: "ROOT/acme/none" };
    for (const who of ["adam", "operator"])
      assert.match(said(await world.ask(who, "POST /volumes", none)), /^404 there is no account ROOT\/acme\/none/);
  }));

test("it is shared with a cell, an account, a domain or all, each for what it says, and taken back", () =>
  withWorld(async (world) => {
    const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 }));
    const share = (body: object, who = "ann") => world.ask(who, `POST /volumes/${uid}/shares`, body);
    const rights = async (who = "bob"): Promise<unknown> => (await world.ask(who, `GET /volumes/${uid}`)).json.rights;
    // Whoever has the path later is another one, for the storage layer as well.
    const banks = { "x.holder": uidOfAccount("ROOT/bank/core") };
    for (const [body, grants] of [
      [
        { kind: "cell", path: "bank", right: "copy" },
        { "x.cell": "<ref://bank.cells.internal/>", ...banks },
      ],
      [
        { kind: "account", path: "ROOT/bank/core", right: "write" },
        { "x.account": "ROOT/bank/core", ...banks },
      ],
      [
        { kind: "domain", path: "ROOT/bank", right: "copy" },
        { "x.domain": "ROOT/bank", "x.holder": uidOfAccount("ROOT/bank") },
      ],
      [{ kind: "all", right: "copy" }, { "x.domain": "ROOT" }],
    ] as const) {
      const answer = await share(body, "operator");
      assert.equal(answer.status, 200, said(answer));
      const [only = {}] = answer.json.shares as JsonObject[];
      const name = `v1-${body.right === "copy" ? "copy" : "connect"}-${only.id}`;
      assert.deepEqual(group(world, uid)[name], {
        "x.type": "VolumeGrant",
        "x.volume": "<ref:../v1>",
        ...grants,
        "x.grant": body.right === "copy" ? "copy" : "connect",
      });
      assert.deepEqual(await rights(), [body.right]);
      assert.equal((await world.ask("eve", `GET /volumes/${uid}`)).status, body.kind === "all" ? 200 : 404, body.kind);
      const his = await world.ask("bob", `GET /volumes/${uid}`);
      assert.equal(his.json.shares, null, "with whom else it is shared is for who manages it");
      const listed = (await world.ask("bob", "GET /volumes")).list.map((each) => each.uid);
      assert.ok(listed.includes(uid), JSON.stringify(listed));
      assert.match(
        said(await world.ask("bob", `PATCH /volumes/${uid}`, { name: "x" })),
        /^403 data is shared with you/,
      );
      assert.match(said(await share({ kind: "all", right: "manage" }, "bob")), /^403/);
      const clone = await world.ask("bob", "POST /volumes", { name: `of-${only.id}`, from: { volume: uid } });
      assert.match(said(clone), body.right === "copy" ? /^201/ : /^403 data is shared with you, and not to be copied/);
      assert.deepEqual((await share(body, "operator")).json.shares, answer.json.shares, "twice is once");
      assert.equal((await world.ask("ann", `DELETE /volumes/${uid}/shares/${only.id}`)).status, 200);
      assert.equal(group(world, uid)[name], undefined);
      assert.equal((await world.ask("bob", `GET /volumes/${uid}`)).status, 404);
    }
    assert.equal((await share({ kind: "account", path: "ROOT/bank/core", right: "manage" })).status, 200);
    assert.deepEqual(await rights(), ["copy", "write", "manage"]);
    assert.equal((await world.ask("bob", `PATCH /volumes/${uid}`, { name: "x" })).json.name, "x");
    for (const [body, why] of [
      [{ kind: "cell", right: "copy" }, /^400 a cell has its name as path/],
      [{ kind: "cell", path: "a/../b", right: "copy" }, /^400 a cell/],
      [{ kind: "all", path: "ROOT", right: "copy" }, /^400 all have no path/],
      [{ kind: "domain", path: "acme", right: "copy" }, /^400 domain: the path begins with ROOT/],
      [{ kind: "all", right: "read" }, /^409 x is written by whoever connects it/],
    ] as const)
      assert.match(said(await share(body)), why);
    const ro = uidOf(await world.ask("ann", "POST /volumes", { name: "ro", sizeMiB: 8, access: "ro" }));
    const write = await world.ask("ann", `POST /volumes/${ro}/shares`, { kind: "all", right: "write" });
    assert.match(said(write), /^409 ro is only read, by any number of VMs/);
    assert.equal((await world.ask("ann", `POST /volumes/${ro}/shares`, { kind: "all", right: "read" })).status, 200);
  }));

test("a right to copy that is taken back while who copies waits for his turn is none any more", async () => {
  for (const copies of ["volume", "version"])
    await withWorld(async (world) => {
      const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 }));
      const his = uidOf(await world.ask("bob", "POST /volumes", { name: "his", sizeMiB: 1 }));
      const share = { kind: "account", path: "ROOT/bank/core", right: "copy" };
      const { json } = await world.ask("ann", `POST /volumes/${uid}/shares`, share);
      const [{ id } = {}] = json.shares as JsonObject[];
      const { promise, resolve } = Promise.withResolvers<void>();
      let [isBack, looked] = [false, 0];
      world.before = (what) => {
        if (what === "GET primary" && isBack) looked += 1;
        if (what !== "PATCH primary" || isBack) return;
        isBack = true;
        return promise;
      };
      const back = world.ask("ann", `DELETE /volumes/${uid}/shares/${id}`);
      while (!isBack) await sleep(1);
      const from = { from: { volume: uid } };
      const copy =
        copies === "volume"
          ? world.ask("bob", "POST /volumes", { name: "mine", ...from })
          : world.ask("bob", `POST /volumes/${his}/versions`, from);
      while (looked < (copies === "volume" ? 1 : 2)) await sleep(1);
      await sleep(20);
      resolve();
      assert.equal((await back).status, 200);
      assert.match(said(await copy), /^404 there is no persistent volume/, copies);
    });
});

test("it gets another name, tags, text, a larger size, and versions for one of which its name stands", () =>
  withWorld(async (world) => {
    const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 }));
    await world.ask("ann", `POST /volumes/${uid}/shares`, { kind: "account", path: "ROOT/bank/core", right: "copy" });
    const change = (body: object) => world.ask("ann", `PATCH /volumes/${uid}`, body);
    const now = await change({ name: "golden", tags: ["web"], text: "for all", sizeMiB: 128 });
    assert.deepEqual(
      [now.json.name, now.json.tags, now.json.text, now.json.sizeMiB],
      ["golden", ["web"], "for all", 128],
    );
    assert.match(said(await change({ sizeMiB: 64 })), /^409 golden has 128 MiB, and a volume only grows/);
    assert.match(said(await change({ version: 2 })), /^404 golden has no version 2/);
    const second = await world.ask("ann", `POST /volumes/${uid}/versions`, { from: { volume: uid } });
    assert.deepEqual(
      [second.status, second.json.version, (second.json.versions as JsonObject[]).length],
      [200, 2, 2],
      said(second),
    );
    assert.match(String(second.json.reference), /\/v2>$/);
    assert.deepEqual(group(world, uid).v2, {
      "x.type": "VolumeCopy",
      "x.public": true,
      "x.image": `<ref:/primary/volumes/${uid}/v1>`,
    });
    const [share = {}] = second.json.shares as JsonObject[];
    assert.ok(group(world, uid)[`v2-copy-${share.id}`] !== undefined, "who may copy it may copy the new one");
    assert.equal((await change({ version: 1 })).json.version, 1);
    assert.equal(
      (await world.ask("bob", "POST /volumes", { name: "c", from: { volume: uid, version: 2 } })).status,
      201,
    );
    const third = await world.ask("ann", `POST /volumes/${uid}/versions`, { sizeMiB: 1 });
    assert.equal(third.json.version, 3, "a number is given once");
    await world.ask("bob", "POST /volumes", { name: "taken", sizeMiB: 1 });
    await world.ask("ann", "POST /volumes", { name: "taken", sizeMiB: 1 });
    assert.match(said(await change({ name: "taken" })), /^409 the account has a persistent volume taken already/);
  }));

test("it is deleted by who names it, and who uses it is said before", () =>
  withWorld(async (world) => {
    const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 }));
    const image = `<ref://primary.cells.internal/primary/volumes/${uid}/v1>`;
    world.cell("shop").put({
      shop: { "x.type": "Cell", "x.name": "shop", db: { disk: { "x.type": "VolumeCopy", "x.image": image } } },
    });
    const dry = await world.ask("ann", `DELETE /volumes/${uid}?dryRun=true`);
    assert.deepEqual([dry.json.users, dry.json.versions, dry.json.dryRun], [["shop: shop/db/disk"], [1], true]);
    assert.match(
      said(await world.ask("ann", `DELETE /volumes/${uid}`)),
      /^409 the data of data, which is used by shop: shop\/db\/disk would/,
    );
    assert.match(said(await world.ask("ann", `DELETE /volumes/${uid}?allowDestroy=other`)), /^409/);
    assert.ok(world.volumes()[uid] !== undefined);
    assert.equal((await world.ask("ann", `DELETE /volumes/${uid}?allowDestroy=data`)).status, 200);
    assert.equal(world.volumes()[uid], undefined);
    assert.equal((await world.ask("ann", `GET /volumes/${uid}`)).status, 404);
    assert.deepEqual((await world.ask("ann", "GET /volumes")).list, []);
  }));

test("asked for again under one key it is made once, also by another process with an empty store", () =>
  withWorld(async (world) => {
    const key = { "idempotency-key": "k-1" };
    const add = (who = "ann") => world.ask(who, "POST /volumes", { name: "data", sizeMiB: 64 }, key);
    const first = await add();
    await world.restart();
    const second = await add();
    assert.deepEqual([second.status, second.json], [201, first.json]);
    assert.equal(Object.keys(world.volumes()).length, 1);
    assert.notEqual(uidOf(await add("bob")), uidOf(first), "somebody else's key is another one");
    const turned = await world.ask("ann", "POST /volumes", { sizeMiB: 64, name: "data" }, key);
    assert.deepEqual([turned.status, turned.json], [201, first.json], "the order of fields says nothing");
    for (const other of [
      { name: "data", sizeMiB: 65 },
      { name: "other", sizeMiB: 64 },
    ])
      assert.match(
        said(await world.ask("ann", "POST /volumes", other, key)),
        /^422 this Idempotency-Key was used for another request/,
      );
    let broken = true;
    world.behind = (what) => {
      if (what !== "PATCH primary" || !broken) return;
      broken = false;
      throw new Error("the connection broke");
    };
    const lost = await world.ask("ann", "POST /volumes", { name: "more", sizeMiB: 1 }, { "idempotency-key": "k-2" });
    assert.equal(lost.status, 502);
    assert.equal(
      (await world.ask("ann", "POST /volumes", { name: "more", sizeMiB: 1 }, { "idempotency-key": "k-2" })).status,
      201,
    );
    assert.equal(Object.keys(world.volumes()).length, 3);
  }));

test("what is found is of the primary cell as it was put back, also where that counts on to the version it had", () =>
  withWorld(async (world) => {
    const names = async () => (await world.ask("ann", "GET /volumes")).list.map(({ name }) => name);
    await world.ask("ann", "POST /volumes", { name: "kept", sizeMiB: 1 });
    const { body: backup } = world.cell("primary").ask({ method: "GET", path: "" });
    await world.ask("ann", "POST /volumes", { name: "lost", sizeMiB: 1 });
    assert.deepEqual((await names()).sort(), ["kept", "lost"]);
    const { version } = world.cell("primary").ask({ method: "GET", path: "" });
    world.putBack("primary", backup);
    assert.equal(world.cell("primary").ask({ method: "GET", path: "" }).version, version, "the same to whom it is all");
    assert.deepEqual(await names(), ["kept"]);
    assert.equal(
      (await world.ask("ann", "POST /volumes", { name: "lost", sizeMiB: 1 })).status,
      201,
      "its name is free",
    );
  }));

test("many writers at once lose nothing, and a change that others make in between is looked at anew", () =>
  withWorld(async (world) => {
    const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "data", sizeMiB: 64 }));
    const shares = Array.from({ length: 16 }, (_, at) => ({
      kind: "account",
      path: `ROOT/bank/a${at}`,
      right: "copy",
    }));
    const all = await Promise.all(shares.map((share) => world.ask("ann", `POST /volumes/${uid}/shares`, share)));
    assert.deepEqual(
      all.map(({ status }) => status),
      shares.map(() => 200),
    );
    assert.equal(Object.keys(group(world, uid).shares as JsonObject).length, 16);
    let once = true;
    world.before = (what) => {
      if (what !== "PATCH primary" || !once) return;
      once = false;
      const patch = [{ op: "add", path: `/primary/volumes/${uid}/versions`, value: 7 }];
      world.cell("primary").ask({ method: "PATCH", path: "", patch });
    };
    const version = await world.ask("ann", `POST /volumes/${uid}/versions`, { sizeMiB: 1 });
    assert.deepEqual([version.status, version.json.version], [200, 8], said(version));
  }));

test("without its credential, or with a primary cell that is away, it says so, and passes all else on", () =>
  withWorld(async (world) => {
    world.before = (what) => {
      if (what.endsWith("primary")) throw new Error("away");
    };
    assert.match(
      said(await world.ask("ann", "GET /volumes")),
      /^502 the primary cell, which has the persistent volumes/,
    );
    const answer = await world.app.inject({ url: "/status", headers: { authorization: "Bearer ann" } });
    assert.equal(answer.statusCode, 418);
    assert.deepEqual(world.logged, []);
  }));

test("no account fills the part of the primary cell that all have: each volume and each account has its bound", () =>
  withWorld(async (world) => {
    const text = "x".repeat(4096);
    const uid = uidOf(await world.ask("ann", "POST /volumes", { name: "many", sizeMiB: 1 }));
    const long = `ROOT${`/${"d".repeat(60)}`.repeat(14)}`;
    let refusedAt = 0;
    for (let at = 0; at < 60 && refusedAt === 0; at += 1) {
      const answer = await world.ask("ann", `POST /volumes/${uid}/shares`, {
        kind: "domain",
        path: `${long}/d${at}`,
        right: "manage",
      });
      if (answer.status === 200) continue;
      assert.match(said(answer), /^409 many would have more than a persistent volume may: 128 KiB of names, tags/);
      refusedAt = at;
    }
    assert.ok(refusedAt > 20 && refusedAt < 50, String(refusedAt));
    const [first = {}] = (await world.ask("ann", `GET /volumes/${uid}`)).json.shares as JsonObject[];
    assert.equal((await world.ask("ann", `DELETE /volumes/${uid}/shares/${first.id}`)).status, 200, "less is well");
    // All of an account's.
    const filler = {
      name: "filler",
      account: "ROOT/acme/dev",
      owner: uidOfAccount("ROOT/acme/dev"),
      text: "x".repeat(120_000),
    };
    const patch = Array.from({ length: 17 }, (_each, at) => ({
      op: "add",
      path: `/primary/volumes/pv-00000000-0000-4000-8000-0000000000${at + 10}`,
      value: filler,
    }));
    const primary = world.cell("primary");
    for (const each of patch) primary.ask({ method: "PATCH", path: "", patch: [each] as unknown as JsonObject[] });
    assert.match(
      said(await world.ask("ann", "POST /volumes", { name: "more", sizeMiB: 1, text })),
      /^409 the persistent volumes of the account would have more than an account's may together: 2048 KiB/,
    );
    assert.match(said(await world.ask("ann", `PATCH /volumes/${uid}`, { text })), /^409 the persistent volumes of/);
    assert.equal((await world.ask("ann", `PATCH /volumes/${uid}`, { name: "few" })).status, 200, "and no more is well");
    assert.equal(
      (await world.ask("bob", "POST /volumes", { name: "more", sizeMiB: 1, text })).status,
      201,
      "another's",
    );
  }));

test("what persistent volumes have counts in their account's limit of storage, beside what its cells were granted", () =>
  withWorld(async (world) => {
    const add = (who: string, body: object) => world.ask(who, "POST /volumes", body);
    const uid = uidOf(await add("ann", { name: "data", sizeMiB: 40 }));
    const quota = (path: string, storageMiB: number) => ({
      ...({ uid: path, path, kind: "account", etag: "e" } as const),
      limits: { storageMiB },
      granted: { storageMiB: 20 },
    });
    world.quotas = [quota("ROOT/acme/dev", 100), quota("ROOT/acme", 1)];
    const beyond = /^409 ROOT\/acme\/dev may have 100 MiB of storage, of which its cells have 20 MiB and its other /;
    assert.match(said(await add("ann", { name: "more", sizeMiB: 41 })), beyond);
    assert.match(said(await add("operator", { name: "more", sizeMiB: 41, account: "ROOT/acme/dev" })), beyond);
    assert.equal((await add("bob", { name: "more", sizeMiB: 41 })).status, 201, "another account's");
    assert.equal((await add("operator", { name: "more", sizeMiB: 41 })).status, 201, "nobody's account");
    const copy = await add("ann", { name: "copy", from: { volume: uid } });
    assert.equal(copy.status, 201, "40 + 40 of 80");
    // What a copy will have counts before it is made.
    assert.match(said(await add("ann", { name: "copy-2", from: { volume: uid } })), beyond);
    assert.match(said(await add("ann", { name: "copy-2", from: { volume: uidOf(copy) } })), beyond);
    assert.match(said(await world.ask("ann", `POST /volumes/${uid}/versions`, { sizeMiB: 1 })), beyond);
    assert.match(said(await world.ask("ann", `PATCH /volumes/${uid}`, { sizeMiB: 41 })), beyond);
    assert.equal((await world.ask("ann", `PATCH /volumes/${uid}`, { sizeMiB: 40, name: "same" })).status, 200);
    const disk = { "x.type": "Volume", "x.size": 64 };
    world.cell("shop").put({ shop: { "x.type": "Cell", "x.name": "shop", db: { disk } } });
    const harvest = { name: "harvested", from: { cell: "shop", path: "shop/db/disk" } };
    assert.match(said(await add("ann", harvest)), beyond);
    assert.equal((await world.ask("ann", `DELETE /volumes/${uidOf(copy)}?allowDestroy=copy`)).status, 200);
    assert.equal((await add("ann", { name: "more", sizeMiB: 40 })).status, 201, "what is gone counts no more");
    // Who manages it for another account is not told what its own may have.
    const share = { kind: "account", path: "ROOT/bank/core", right: "manage" };
    assert.equal((await world.ask("ann", `POST /volumes/${uid}/shares`, share)).status, 200);
    for (const [line, body] of [
      [`POST /volumes/${uid}/versions`, { sizeMiB: 1000 }],
      [`PATCH /volumes/${uid}`, { sizeMiB: 1000 }],
    ] as const)
      assert.match(said(await world.ask("bob", line, body)), /^403 what it has counts in the limit of an account/);
    assert.equal((await world.ask("bob", `PATCH /volumes/${uid}`, { text: "his" })).status, 200, "nothing grows");
    world.quotas = [quota("ROOT/acme/dev", 10)];
    assert.equal(
      (await world.ask("ann", `PATCH /volumes/${uid}`, { text: "less" })).status,
      200,
      "what is there stays",
    );
    world.quotas = [];
    assert.equal((await add("ann", harvest)).status, 201, "nothing limits it");
  }));

test("nothing of a body is read for whom the gateway does not know", () =>
  withWorld(async (world) => {
    const url = new URL(await world.app.listen({ host: "127.0.0.1", port: 0 }));
    const answerTo = async (who: string, body: string): Promise<string> => {
      const socket = connect(Number(url.port), url.hostname).setEncoding("utf8");
      const head = ["POST /volumes HTTP/1.1", "host: x", `authorization: Bearer ${who}`, "content-length: 1000000"];
      socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
      const first = await Promise.race([once(socket, "data"), sleep(3000, ["nothing"], { ref: false })]);
      socket.destroy();
      return String(first[0]).split("\r\n")[0] ?? "";
    };
    assert.equal(await answerTo("nobody", ""), "HTTP/1.1 401 Unauthorized");
    const body = JSON.stringify({ name: "data", sizeMiB: 1 }).padEnd(1_000_000);
    assert.equal(await answerTo("ann", body), "HTTP/1.1 201 Created");
  }));
