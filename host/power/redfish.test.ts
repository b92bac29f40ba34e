import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { redfishDriver } from "./redfish.ts";
import { type RedfishSim, startRedfishSim } from "./redfish-sim.testing.ts";

let sim: RedfishSim;
const soon = (ms = 5000): AbortSignal => AbortSignal.timeout(ms);
const read = (controller = sim.controller, signal = soon()) => redfishDriver.read(controller, signal);

before(async () => {
  sim = await startRedfishSim();
});
beforeEach(() => {
  sim.power = "On";
  sim.lies = false;
  sim.instead = null;
  sim.asked.length = 0;
});
after(() => sim.stop());

test("the power is read with the machine's UUID, cut, and read as off", async () => {
  assert.deepEqual(await read(), { power: "on", uuid: sim.uuid, reason: null });
  await redfishDriver.off(sim.controller, soon());
  assert.equal(sim.power, "Off");
  assert.equal((await read()).power, "off");
});

test("a controller that says yes and does nothing is read as on", async () => {
  sim.lies = true;
  await redfishDriver.off(sim.controller, soon());
  assert.ok(
    sim.asked.some((line) => line.startsWith("POST ")),
    "it was asked to",
  );
  assert.equal((await read()).power, "on");
});

test("another certificate than the registered one is asked nothing, and hears no password", async () => {
  for (const fingerprint of ["ab".repeat(32), "", sim.controller.fingerprint?.slice(2) ?? ""]) {
    const { power, reason } = await read({ ...sim.controller, fingerprint });
    assert.equal(power, null);
    assert.match(reason ?? "", /another certificate/);
    await redfishDriver.off({ ...sim.controller, fingerprint }, soon());
  }
  assert.deepEqual(sim.asked, []);
  assert.equal(sim.power, "On");
});

test("a redirect, a wrong password, what is too long and what makes no sense are not off, and the reason has no secret", async () => {
  const answers: readonly (readonly [RegExp, NonNullable<RedfishSim["instead"]>])[] = [
    [/answers 302/, (_request, response) => response.writeHead(302, { location: "https://127.0.0.1:1/" }).end()],
    [/more than anybody would read/, (_request, response) => response.end(JSON.stringify({ x: "x".repeat(70_000) }))],
    [/makes no sense/, (_request, response) => response.end("<html>")],
    [/makes no sense/, (_request, response) => response.end('["PowerState","Off"]')],
    [/no computer system, or several/, (_request, response) => response.end('{"Members":[{},{}]}')],
    [
      /not understood/,
      (_request, response) => response.end('{"Members":[{"@odata.id":"/redfish/v1/Systems/../../x"}]}'),
    ],
    [/answers 500/, (_request, response) => response.writeHead(500).end("{}")],
    [/does not answer/, (request) => request.socket.destroy()],
    [/in time/, () => undefined],
  ];
  for (const [why, instead] of answers) {
    sim.instead = instead;
    const { power, reason } = await read(sim.controller, soon(1000));
    assert.equal(power, null, String(why));
    assert.match(reason ?? "", why);
    assert.ok(!reason?.includes(sim.controller.password));
  }
  sim.instead = null;
  const wrong = await read({ ...sim.controller, password: "other" });
  assert.deepEqual([wrong.power, wrong.reason], [null, "the controller does not take this user and password"]);
});

test("an order goes nowhere but below the system that was read", async () => {
  const system = "/redfish/v1/Systems/1";
  sim.instead = (request, response) => {
    if (request.url === "/redfish/v1/Systems") response.end(JSON.stringify({ Members: [{ "@odata.id": system }] }));
    else if (request.method === "GET") {
      const Actions = { "#ComputerSystem.Reset": { target: "/redfish/v1/Systems/2/Actions/ComputerSystem.Reset" } };
      response.end(JSON.stringify({ PowerState: "On", Actions }));
    } else response.end("{}");
  };
  await redfishDriver.off(sim.controller, soon());
  assert.deepEqual(
    sim.asked.filter((line) => line.startsWith("POST")),
    [`POST ${system}/Actions/ComputerSystem.Reset with a password`],
  );
});
