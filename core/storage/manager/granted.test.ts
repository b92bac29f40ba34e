import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { copyOf, StorageWorld, volume } from "./manager.testing.ts";

const image = (name: string) => ({ kind: "image", image: name }) as const;
const oneServer = () => new StorageWorld({ s1: { freeMiB: 10_000, images: { tiny: 100 } } });

test("cells of an account and of a domain use a volume that is granted to these, as long as they are theirs", () => {
  const world = oneServer();
  const [root, team, bank] = ["root", "team.other", "bank"].map((cell) => peerName(`controller.${cell}`)) as [
    never,
    never,
    never,
  ];
  const copy = (id: string, cell: string) => volume(id, copyOf("a-1"), null, cell);
  world.want("owner/other", { cell: "other", account: "ROOT/acme/dev" }, root);
  world.want("owner/bank", { cell: "bank", account: "ROOT/acmeplus/dev" }, root);
  world.want("volume/a-1", volume("a-1", image("tiny")));
  const grants = (to: JsonObject | null) =>
    world.want("grant/a-2", to === null ? null : { uid: "a-2", volume: "a-1", to, grant: "copy" });
  const seen = (id: string, by: ReturnType<typeof peerName>): boolean => {
    world.want(`volume/${id}`, copy(id, by.slice("controller.".length)), by);
    world.settle();
    return world.volume(id, by)?.phase === "ready";
  };
  assert.equal(seen("b-1", team), false);
  grants({ account: "ROOT/acme/other" });
  assert.equal(seen("b-1", team), false);
  grants({ account: "ROOT/acme/dev" });
  assert.deepEqual([seen("b-1", team), seen("d-1", bank)], [true, false], "and cells within its cells");
  world.restart();
  world.settle();
  assert.deepEqual([seen("b-2", team), seen("d-2", bank)], [true, false]);
  grants({ tenants: "ROOT/acme" });
  assert.deepEqual(
    [seen("b-3", team), seen("d-3", bank)],
    [true, false],
    "no domain that begins with the same letters",
  );
  world.want("owner/other", { cell: "other", account: "ROOT/elsewhere/dev" }, root);
  assert.equal(seen("b-4", team), false, "it is another account's now");
  world.want("owner/bank", { cell: "bank", account: "ROOT/acme/dev" }, root);
  assert.equal(seen("d-3", bank), true, "what waited has it");
  world.want("owner/bank", null, root);
  assert.equal(seen("d-4", bank), false);
  grants({ tenants: "ROOT" });
  assert.deepEqual([seen("b-4", team), seen("d-4", bank)], [true, true], "everybody");
});

test("what is granted to one by his UID is nothing to whoever has his name later, nor to one whose UID is not known", () => {
  const world = oneServer();
  const [root, other] = [peerName("controller.root"), peerName("controller.other")];
  const owns = (...uids: readonly string[]) =>
    world.want(
      "owner/other",
      { cell: "other", account: "ROOT/acme/dev", ...(uids.length === 0 ? {} : { uids: [...uids] }) },
      root,
    );
  world.want("volume/a-1", volume("a-1", image("tiny")));
  let [grants, copies] = [0, 0];
  const isLet = (to: JsonObject, holder?: string): boolean => {
    world.want(`grant/g-${grants}`, null);
    grants += 1;
    const meant = holder === undefined ? {} : { holder };
    world.want(`grant/g-${grants}`, { uid: `g-${grants}`, volume: "a-1", to, grant: "copy", ...meant });
    copies += 1;
    world.want(`volume/c-${copies}`, volume(`c-${copies}`, copyOf("a-1"), null, "other"), other);
    world.settle();
    return world.volume(`c-${copies}`, other)?.phase === "ready";
  };
  for (const [to, holder] of [
    [{ account: "ROOT/acme/dev" }, "u-dev"],
    [{ tenants: "ROOT/acme" }, "u-acme"],
    [{ tenants: "ROOT" }, "u-root"],
    [{ domain: "other.cells.internal" }, "u-dev"],
  ] as const) {
    owns();
    assert.equal(isLet(to, holder), false, `nobody knows yet whose it is: ${holder}`);
    owns("u-dev", "u-acme", "u-root");
    world.settle();
    assert.equal(world.volume(`c-${copies}`, other)?.phase, "ready", `what waited has it: ${holder}`);
    assert.equal(isLet(to, holder), true, holder);
    world.restart();
    world.settle();
    assert.equal(isLet(to, holder), true, `after a restart: ${holder}`);
    assert.equal(isLet(to, "u-later"), false, "he has gone");
    owns("u-later", "u-new", "u-other-root");
    assert.equal(isLet(to, holder), false, `somebody came later: ${holder}`);
    assert.equal(isLet(to), true, "a grant of a version before goes by the path");
  }
  // The UID of one is not that of the other, wherever both stand.
  owns("u-dev", "u-acme", "u-root");
  assert.equal(isLet({ account: "ROOT/acme/dev" }, "u-acme"), false);
  assert.equal(isLet({ tenants: "ROOT/acme" }, "u-dev"), false);
  assert.equal(isLet({ account: "ROOT/acme/else" }, "u-dev"), false, "both have to fit");
});

test("whose a cell is costs no look at every volume that is granted to others", () => {
  const world = oneServer();
  const [root, bank] = [peerName("controller.root"), peerName("controller.bank")];
  const [many, cells] = [600, 100];
  world.want("volume/a-1", volume("a-1", image("tiny")));
  for (let at = 0; at < many; at += 1) {
    world.want(`volume/v-${at}`, volume(`v-${at}`, copyOf("a-1")));
    world.want(`volume/w-${at}`, volume(`w-${at}`, copyOf(`v-${at}`), null, "bank"), bank);
    const to = { account: `ROOT/acme/a${at}` };
    world.want(`grant/g-${at}`, { uid: `g-${at}`, volume: `v-${at}`, to, grant: "copy", holder: `u-${at}` });
  }
  const before = process.cpuUsage();
  for (let at = 0; at < cells; at += 1)
    world.want(`owner/c${at}`, { cell: `c${at}`, account: "ROOT/acme/dev", uids: ["u-dev", "u-acme"] }, root);
  const ms = process.cpuUsage(before).user / 1000;
  assert.ok(ms < cells * 3, `${cells} cells took ${Math.round(ms)} ms of the processor`);
  world.want("owner/bank", { cell: "bank", account: "ROOT/acme/a7", uids: ["u-7", "u-acme"] }, root);
  world.settle();
  assert.deepEqual([world.volume("w-7", bank)?.phase, world.volume("w-8", bank)?.phase], ["ready", "waiting"]);
});
