import assert from "node:assert/strict";
import { test } from "node:test";
import type { CellNews } from "../../../model/contract/tenancy/subscriptions.ts";
import type { PersistentVolume, VolumeDetails } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { eventually } from "../../../runtime/installation.testing.ts";
import { createTurns } from "../../../runtime/process/one-at-a-time.ts";
import { CaasWorld } from "../../caas/volumes/caas.testing.ts";
import { refused } from "../../requests/refused.ts";
import { watchVolumes } from "./volumes.ts";

/* What is told of persistent volumes: CaaS is the real one, before real controllers' steps. */
const people = {
  ann: { account: "ROOT/acme/dev", cells: ["shop"] },
  bob: { account: "ROOT/bank/core", cells: ["bank"] },
} as const;
class Watched {
  readonly news: CellNews[] = [];
  looks = 0;
  sessions = 0;
  takes = true;
  readonly end: () => void;
  constructor(world: CaasWorld, who: string, inTurn = createTurns()) {
    const ask = async <T>(path: string): Promise<T> => {
      const { status, json, list } = await world.ask(who, `GET ${path}`);
      if (status !== 200) throw refused(status, "refused", "it is not said");
      return (path === "/volumes" ? list : json) as T;
    };
    this.end = watchVolumes(
      {
        session: async () => {
          this.sessions += 1;
          return who;
        },
        ended: () => undefined,
        tell: async (news) => {
          if (!this.takes) throw new Error("it was not taken");
          this.news.push(news);
        },
        all: async () => {
          this.looks += 1;
          return ask<readonly PersistentVolume[]>("/volumes");
        },
        one: (_bearer, uid) => ask<VolumeDetails>(`/volumes/${uid}`),
      },
      { everyMs: 5, inTurn },
    );
  }
  /** What stands there has been looked at. */
  async looked(): Promise<void> {
    const before = this.looks;
    await eventually("it was looked again", () => this.looks > before + 1);
  }
  told(): readonly string[] {
    return this.news.flatMap(({ kind, cell, events }) =>
      events.length === 0
        ? [`${kind} ${cell}`]
        : events.map(({ event, path, phase, before }) => `${event} ${path} ${before} ${phase}`),
    );
  }
}
const withWorld = async (work: (world: CaasWorld) => Promise<void>): Promise<void> => {
  const world = new CaasWorld(people, "shop", "bank");
  try {
    await work(world);
  } finally {
    await world.end();
  }
};
const made = async (world: CaasWorld, who: string, name: string): Promise<string> => {
  const { status, json } = await world.ask(who, "POST /volumes", { name, sizeMiB: 64 });
  assert.equal(status, 201);
  return String(json.uid);
};

test("what becomes of the volumes that somebody may see is told him, each once, and of others' nothing", () =>
  withWorld(async (world) => {
    const old = await made(world, "ann", "old");
    const [hers, his] = [new Watched(world, "ann"), new Watched(world, "bob")];
    try {
      await Promise.all([hers.looked(), his.looked()]);
      assert.deepEqual([hers.told(), his.told()], [["began primary"], ["began primary"]]);
      const uid = await made(world, "ann", "data");
      const first = `primary/volumes/${uid}/v1`;
      await eventually("it is told", () => hers.told().some((each) => each.startsWith(`volume ${first} null`)));
      await Promise.all([hers.looked(), his.looked()]);
      assert.equal(hers.told().filter((each) => each.startsWith(`volume ${first} null`)).length, 1);
      assert.ok(!hers.told().some((each) => each.includes(old)), "what stays is no news");
      assert.deepEqual(his.told(), ["began primary"]);
      const share = { kind: "account", path: "ROOT/bank/core", right: "copy" };
      assert.equal((await world.ask("ann", `POST /volumes/${uid}/shares`, share)).status, 200);
      await eventually("what is shared with him is", () => his.told().some((each) => each.includes(`${first} null`)));
      assert.equal((await world.ask("ann", `POST /volumes/${uid}/versions`, { sizeMiB: 64 })).status, 200);
      await eventually("its name stands for another version", () =>
        hers.told().some((each) => each.startsWith(`volume primary/volumes/${uid}/v2 null`)),
      );
      assert.ok(hers.told().some((each) => each.startsWith(`volume ${first} `) && each.endsWith(" null")));
      assert.equal((await world.ask("ann", `DELETE /volumes/${uid}?allowDestroy=${uid}`)).status, 200);
      const gone = (each: string): boolean =>
        each.startsWith(`volume primary/volumes/${uid}/v2 `) && each.endsWith(" null");
      await eventually("that it is gone is told both", () => hers.told().some(gone) && his.told().some(gone));
    } finally {
      hers.end();
      his.end();
    }
  }));

test("of many volumes what stays is no news, and each has its turn to be looked into, whatever others have", async () => {
  const uids = Array.from({ length: 40 }, (_, at) => `pv-${String(at).padStart(2, "0")}`);
  // So many that they alone would be looked into for ever.
  const phases = new Map(uids.map((uid, at) => [uid, at < 20 ? "failed" : "ready"]));
  const news: CellNews[] = [];
  const looked = new Set<string>();
  let looks = 0;
  const end = watchVolumes(
    {
      session: async () => "",
      ended: () => undefined,
      tell: async (each) => void news.push(each),
      all: async () => {
        looks += 1;
        return uids.map((uid) => ({ uid, version: 1, sizeMiB: 64 }) as PersistentVolume);
      },
      one: async (_bearer, uid) => {
        looked.add(uid);
        return { versions: [{ number: 1, phase: phases.get(uid) ?? "", reason: null }] } as unknown as VolumeDetails;
      },
    },
    { everyMs: 1, inTurn: createTurns() },
  );
  try {
    await eventually("each was looked into", () => looked.size === uids.length);
    const before = looks;
    await eventually("it was looked again", () => looks > before + 3);
    assert.deepEqual(
      news.map(({ kind }) => kind),
      ["began"],
    );
    phases.set("pv-00", "ready");
    await eventually("what becomes of one is told", () => news.length === 2);
    assert.deepEqual(news[1]?.events, [
      { event: "volume", path: "primary/volumes/pv-00/v1", phase: "ready", before: "failed", sizeMiB: 64 },
    ]);
  } finally {
    end();
  }
});

test("what was not taken is told at the next look, and nothing after the end", () =>
  withWorld(async (world) => {
    const watched = new Watched(world, "ann");
    try {
      await watched.looked();
      watched.takes = false;
      const uid = await made(world, "ann", "data");
      await watched.looked();
      assert.deepEqual(watched.told(), ["began primary"]);
      watched.takes = true;
      await eventually("it is told", () => watched.told().some((each) => each.includes(uid)));
    } finally {
      watched.end();
    }
    await made(world, "ann", "more");
    const { looks, news } = watched;
    const told = news.length;
    await new Promise((next) => setTimeout(next, 50));
    assert.ok(watched.looks <= looks + 1);
    assert.equal(news.length, told);
  }));

test("subscriptions are looked at one after the other, and one that CaaS refuses holds up no other", () =>
  withWorld(async (world) => {
    const inTurn = createTurns();
    let atOnce = 0;
    let most = 0;
    world.before = async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((next) => setImmediate(next));
      atOnce -= 1;
    };
    const all = ["nobody", "ann", "bob"].map((who) => new Watched(world, who, inTurn));
    try {
      await Promise.all(all.map((each) => each.looked()));
      assert.deepEqual(
        all.map((each) => each.told()),
        [[], ["began primary"], ["began primary"]],
      );
      assert.equal(most, 1);
    } finally {
      for (const { end } of all) end();
    }
  }));
