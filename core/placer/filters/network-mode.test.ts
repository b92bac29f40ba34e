import assert from "node:assert/strict";
import { test } from "node:test";
import { host, world } from "../placer.testing.ts";

test("a VM of a cell on a mode of Eucalyptus stands at hosts that offer it, and one of Diverter anywhere", () => {
  const placer = world(["h1", "h2", "h3"]);
  placer.say("h1", host("h1", 9000));
  placer.say("h2", host("h2", 4000, { networkMode: "EDGE" }));
  placer.say("h3", host("h3", 8000, { networkMode: "MANAGED" }));
  placer.want("edge", 100, 1, { networkMode: "EDGE" });
  assert.equal(placer.get("edge")?.host, "h2");
  placer.want("any", 100, 1, {});
  assert.equal(placer.get("any")?.host, "h1");
  placer.want("static", 100, 1, { networkMode: "STATIC" });
  const { host: at, refusals } = placer.get("static") ?? assert.fail();
  assert.deepEqual(
    [at, ...refusals.map(({ host: by, why }) => `${by}: ${why}`)],
    [
      null,
      "h1: x.networkMode asks for a host of the mode STATIC, and it offers Diverter alone",
      "h2: x.networkMode asks for a host of the mode STATIC, and it offers the mode EDGE beside Diverter",
      "h3: x.networkMode asks for a host of the mode STATIC, and it offers the mode MANAGED beside Diverter",
    ],
  );
  placer.say("h1", host("h1", 9000, { networkMode: "STATIC" }));
  assert.equal(placer.get("static")?.host, "h1");
});
