import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName, uid } from "../../../../model/cell/identifiers.ts";
import type { AgentVolume } from "../../../documents/vocabulary.ts";
import { connection, copyOf, StorageWorld, type TestAgent, volume } from "../manager.testing.ts";
import type { VolumeRecord } from "../state.ts";

/** The server of an origin is lost for good, and with it all that the Storage Manager knew; its copies are on another. */
const tiny = { kind: "image", image: "tiny" } as const;
const [golden, copy] = ["a-2", "a-3"];

/** An origin on one server and its copy on the other. @param writes a VM had written to the origin before */
const world = (writes = false) => {
  const one = new StorageWorld({
    s1: { freeMiB: 9000, images: { tiny: 20 } },
    s2: { freeMiB: 8999, images: { tiny: 20 } },
  });
  one.want(`volume/${golden}`, volume(golden, tiny, 20));
  one.settle();
  if (writes) {
    one.want("connection/a-8", connection("a-8", golden, "a-9", 1));
    one.settle();
    one.want("connection/a-8", null);
    one.settle();
  }
  one.want(`volume/${copy}`, volume(copy, copyOf(golden)));
  one.want("connection/a-7", connection("a-7", copy, "a-6", 5));
  one.settle();
  const at = (id: string): TestAgent => {
    const { agent } = (one.records.get(`volume/${id}`) as { readonly agent: string } | undefined) ?? assert.fail(id);
    return one.agents.get(peerName(agent)) ?? assert.fail(agent);
  };
  const [lost, kept] = [at(golden), at(copy)];
  assert.ok(lost !== kept);
  return { one, lost, kept };
};
const placed = (one: StorageWorld) =>
  (one.records.get(`volume/${golden}`) ?? assert.fail("it has no place")) as unknown as VolumeRecord;
const lose = ({ one, lost }: ReturnType<typeof world>): void => {
  one.records.clear();
  for (const documents of one.desiredAt.values()) documents.clear();
  for (const known of [lost.actual, lost.desired])
    for (const key of [...known.keys()]) if (key.endsWith(`/${golden}`)) known.delete(key);
  lost.leases.delete(golden);
  one.restart();
  one.settle();
};

test("an origin that was an image, unwritten, is made anew of that image under its copies", () => {
  const all = world();
  const before = all.one.connection("a-7")?.attachment;
  lose(all);
  const { one } = all;
  assert.equal(one.volume(golden)?.phase, "ready");
  const record = placed(one);
  const asked = one.agents.get(record.agent)?.desired.get(`volume/${golden}`) as unknown as AgentVolume;
  assert.deepEqual(asked.source, { kind: "image", image: "tiny", digest: "d-tiny" });
  assert.equal(record.frozen, true, "nobody may write below a copy");
  assert.equal(one.connection("a-7")?.attachment?.layers.length, before?.layers.length);
  // And once more: what its copies say of it was not lost with it.
  lose(all);
  assert.equal(one.volume(golden)?.phase, "ready");
});

test("it is made of no other image of that name", () => {
  const all = world();
  const { one } = all;
  for (const agent of one.agents.values()) one.say(agent, "image/tiny", { name: "tiny", digest: "later", sizeMiB: 20 });
  lose(all);
  assert.match(
    one.volume(golden)?.reason ?? "",
    /^its file is on no storage server, .* with the digest d-tiny alone, and no server has that as "tiny": add that image again, or /,
  );
  one.say(all.kept, "image/tiny", { name: "tiny", digest: "d-tiny", sizeMiB: 20 });
  one.settle();
  assert.equal(one.volume(golden)?.phase, "ready");
  assert.equal(one.volume(golden)?.server, "s2");
});

test("one that somebody wrote is not made anew, nor one of whose copies one says nothing", () => {
  const written = world(true);
  lose(written);
  assert.match(written.one.volume(golden)?.reason ?? "", /which would read something else/);

  const about = { cell: "shop", path: "shop/older", origin: uid(golden) };
  const file = { phase: "ready", reason: null, sizeMiB: 20, usedMiB: 1, boot: null, about };
  const all = world();
  all.one.say(all.kept, "volume/a-5", file);
  lose(all);
  assert.match(all.one.volume(golden)?.reason ?? "", /which would read something else/);
});
