import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { isSameUuid, uuidOf } from "../../core/ha/power/controller.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { ipmiDriver } from "./ipmi.ts";
import { type IpmiSim, shownWhileAsked, startIpmiSim } from "./ipmi-sim.testing.ts";

/* Against OpenIPMI's simulator, a program of others, by RMCP+ over UDP. */
let sim: IpmiSim;
const soon = (ms = 8000): AbortSignal => AbortSignal.timeout(ms);

before(async () => {
  sim = await startIpmiSim(await freePort());
});
after(() => sim.stop());

test("the power is read with the machine's UUID, cut, and read as off", async () => {
  const on = await ipmiDriver.read(sim.controller, soon());
  assert.deepEqual([on.power, on.reason], ["on", null]);
  assert.ok(isSameUuid(on.uuid ?? "", uuidOf(sim.guid) ?? ""), String(on.uuid));
  await ipmiDriver.off(sim.controller, soon());
  assert.equal(await sim.power(), "off");
  assert.equal((await ipmiDriver.read(sim.controller, soon())).power, "off");
  await sim.switch("on");
  assert.equal((await ipmiDriver.read(sim.controller, soon())).power, "on");
});

test("a controller that says yes and does nothing is read as on; that it answered says nothing", async () => {
  const liar = await startIpmiSim(await freePort());
  try {
    await liar.lie();
    await ipmiDriver.off(liar.controller, soon());
    assert.equal((await ipmiDriver.read(liar.controller, soon())).power, "on");
  } finally {
    await liar.stop();
  }
});

test("a wrong password, and nobody at the address, are nothing that was read, and never off", async () => {
  const wrong = await ipmiDriver.read({ ...sim.controller, password: "other" }, soon());
  assert.deepEqual([wrong.power, wrong.uuid], [null, null]);
  assert.match(wrong.reason ?? "", /does not take this user and password/);
  const silent = createSocket("udp4");
  silent.bind(0, "127.0.0.1");
  await once(silent, "listening");
  const from = performance.now();
  const nobody = await ipmiDriver.read(
    { ...sim.controller, address: `127.0.0.1:${silent.address().port}` },
    soon(1500),
  );
  silent.close();
  assert.equal(nobody.power, null);
  assert.ok(performance.now() - from < 6000, "it is not waited for longer than was asked");
});

test("no argument list and no environment of any process has the password", async () => {
  const password = "s3cret-of-this-test";
  let port = "";
  const seen = await shownWhileAsked((address, stop) => {
    port = address.split(":")[1] ?? "";
    return ipmiDriver.read({ ...sim.controller, address, password }, stop);
  });
  assert.ok(
    seen.some((text) => text.includes("ipmitool") && text.includes(port)),
    "it was under way meanwhile",
  );
  assert.ok(!seen.some((text) => text.includes(password)));
});

test("three orders of bytes are one UUID, and what is none is nobody's", () => {
  const uuid = "00112233-4455-6677-8899-aabbccddeeff";
  for (const shown of [uuid, "33221100-5544-7766-8899-aabbccddeeff", "ffeeddcc-bbaa-9988-7766-554433221100"])
    assert.ok(isSameUuid(shown, uuid), shown);
  assert.ok(!isSameUuid("00112233-4455-6677-8899-aabbccddeefe", uuid));
  for (const none of ["", "x", "0".repeat(32), "f".repeat(32), "00112233"]) assert.equal(uuidOf(none), null, none);
});
