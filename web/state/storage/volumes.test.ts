import assert from "node:assert/strict";
import { test } from "node:test";
import { read } from "../../../model/contract/schema.ts";
import { newVolume } from "../../../model/contract/tenancy/volumes/volumes.ts";
import { Fault } from "../../../model/json/reader.ts";
import {
  changeOf,
  commandOfNew,
  commandOfShare,
  emptyForm,
  formatOf,
  imageNameOf,
  isBecoming,
  nameOfHarvested,
  newShareOf,
  newVolumeOf,
  origins,
  sentText,
  shareText,
  sizeText,
  type VolumeForm,
} from "./volumes.ts";

const form: VolumeForm = { ...emptyForm, name: " golden ", size: "64", text: "it's first", tags: " db  web " };

test("a form becomes what the contract takes, whatever it comes from, and the command that does the same", () => {
  const uid = "pv-0b59a88c-7cab-50b8-b616-f46c769c4f6f";
  const of = { empty: "", file: "my disk.img", image: "debian-12", volume: uid, cell: "shop/db/disk" } as const;
  const says = {
    empty: "",
    file: " --upload 'my disk.img' --format raw",
    image: " --image debian-12",
    volume: ` --of ${uid}`,
    cell: " --from shop/db/disk",
  } as const;
  for (const origin of origins) {
    const made = newVolumeOf({ ...form, origin, of: of[origin] }, "0123456789abcdef0123456789abcdef");
    assert.ok(!(read(newVolume, JSON.parse(JSON.stringify(made))) instanceof Fault), origin);
    assert.equal(made.upload !== undefined, origin === "file", "an upload is of a file alone");
    assert.deepEqual([made.name, made.sizeMiB, made.tags], ["golden", 64, ["db", "web"]]);
    assert.equal(
      commandOfNew({ ...form, origin, of: of[origin], format: "raw" }),
      `cells volume create golden${says[origin]} --size 64 --text 'it'\\''s first' --tag db --tag web`,
    );
  }
  assert.deepEqual(newVolumeOf({ ...emptyForm, name: "a", origin: "cell", of: "shop/db/disk" }), {
    name: "a",
    from: { cell: "shop", path: "shop/db/disk" },
  });
  assert.equal(commandOfNew({ ...form, name: "" }), null);
  assert.equal(commandOfNew({ ...form, origin: "image" }), null, "not before it says which");
  assert.equal(commandOfNew({ ...form, text: "-x" }), null);
});

test("with whom it is shared is said in words, and as a command", () => {
  const share = newShareOf("account", " ROOT/acme/gold ", "copy");
  assert.deepEqual(share, { kind: "account", path: "ROOT/acme/gold", right: "copy" });
  assert.equal(shareText(share), "copy for the account ROOT/acme/gold");
  assert.equal(commandOfShare("golden", "share", share), "cells volume share golden copy --account ROOT/acme/gold");
  const all = newShareOf("all", "left over", "read");
  assert.deepEqual(all, { kind: "all", right: "read" });
  assert.equal(shareText(all), "read for everybody");
  assert.equal(commandOfShare("golden", "unshare", all), "cells volume unshare golden read --all");
  assert.equal(commandOfShare("-x", "share", all), null);
  assert.equal(commandOfShare("golden", "share", { ...share, path: "--all" }), null);
});

test("what is harvested has a name that the contract takes", () => {
  assert.equal(nameOfHarvested("shop/db/disk"), "shop-db-disk");
  for (const path of ["shop/_a/b_", `a/${"x".repeat(80)}`, "shop/ü/disk"])
    assert.ok(!(read(newVolume, { name: nameOfHarvested(path), sizeMiB: 1 }) instanceof Fault), nameOfHarvested(path));
});

test("an upload's name and form are guessed of its file, and what is sent is said", () => {
  assert.deepEqual([formatOf("Debian 12.QCOW2"), formatOf("disk.img")], ["qcow2", "raw"]);
  assert.deepEqual([imageNameOf("Debian 12.QCOW2"), imageNameOf("__x.img")], ["debian-12", "x"]);
  assert.equal(sentText(3.5 * 1024 * 1024, 64 * 1024 * 1024), "3 of 64 MiB sent");
  assert.equal(sizeText(24.26 * 1024 * 1024), "24.3 MiB");
  assert.match(sentText(64, 64), /look at it/);
});

test("what is still to become so is asked for again", () => {
  const version = { number: 1, sizeMiB: 64, access: "rw", reference: "", reason: null } as const;
  const of = (...phases: readonly string[]) => ({ versions: phases.map((phase) => ({ ...version, phase })) });
  assert.ok(isBecoming(of("ready", "waiting")) && isBecoming(of("working")));
  assert.ok(!isBecoming(of("ready", "failed", "deleting")));
});

test("of a volume that is changed only what was written is asked for: others may have changed the rest meanwhile", () => {
  const before = { name: "golden", text: "first", tags: "db web", size: "" };
  assert.deepEqual(changeOf(before, { ...before, size: "128" }), { sizeMiB: 128 });
  assert.deepEqual(changeOf(before, { ...before, name: " silver " }), { name: "silver" });
  assert.deepEqual(changeOf(before, { ...before, text: "", tags: " db " }), { text: "", tags: ["db"] });
  assert.deepEqual(changeOf(before, before), {});
});
