import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import type { Ended } from "../command.ts";
import type { Testbed } from "../harness.ts";
import { cells, cutPowerOf, inventory, stateOf, until, untilReady, untilSaid } from "../lab.testing.ts";
import { execIn } from "../tenants/questions.testing.ts";

/**
 * A host whose power is off for certain (decision 36): nobody concludes that from its silence, its operator says it.
 * `one` and `two` ping each other elsewhere all the while; `three` ran on the host that died, with a volume of data.
 */
const specification = `
Machine extends {
  bootvol extends VolumeCopy { x.image "<ref:/move/golden>"; }
  vm extends VM { x.memory 128; x.restartOnFailure true; }
  disk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../bootvol>"; x.bootOrder 0; }
  subnet extends Subnet { x.size 16; }
  interface extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../subnet>"; }
}
Ping extends NetworkRule { x.address1 "<ref:/move/one/interface>"; x.protocol "icmp"; x.direction "1to2"; }
move extends Cell {
  golden extends Volume { x.size 64; x.access "ro"; x.import "tiny"; }
  one extends Machine { vm:x.placement.host "h1"; }
  two extends Machine { vm:x.placement.host "h2"; }
  three extends Machine {
    vm:x.placement.apartFrom ["one/vm", "two/vm"];
    data extends Volume { x.size 8; }
    dataDisk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../data>"; x.bootOrder 1; }
  }
  toTwo extends Ping { x.address2 "<ref:/move/two/interface>"; }
  toThree extends Ping { x.address2 "<ref:/move/three/interface>"; }
}
`;
const [one, two, three] = ["move/one/vm", "move/two/vm", "move/three/vm"] as const;

const inGuest = async (t: Testbed, vm: string, script: string, wanted: RegExp): Promise<string> => {
  const { stdout } = await until(
    `${vm}: \`${script}\` says ${wanted}`,
    () => execIn(t, vm, ["sh", "-c", script]),
    (ended: Ended) => ended.code === 0 && wanted.test(ended.stdout),
  );
  return stdout;
};
const apply = async (t: Testbed, name: string, text: string): Promise<void> => {
  const file = join(dirname(t.configFile), `${name}.sf`);
  writeFileSync(file, text);
  await cells(t, "apply", file, "--yes");
};
const addressOf = async (t: Testbed, vm: string): Promise<string> =>
  (await stateOf(t, `${dirname(vm)}/interface`))?.address ?? assert.fail(`${vm} has no address`);
const dead = (t: Testbed, host: string, ...more: string[]): Promise<Ended> => t.cells(["host", "dead", host, ...more]);

/** Pings once a second until `stop`, which says how many were sent and how many of them were not answered. */
const ping = async (
  t: Testbed,
  from: string,
  to: string,
): Promise<() => Promise<readonly [sent: number, lost: number]>> => {
  const address = await addressOf(t, to);
  await inGuest(t, from, `ping -c 1 -W 2 ${address} >/dev/null && echo open`, /open/);
  const started = `setsid ping -i 1 ${address} >/tmp/ping 2>&1 </dev/null & echo started`;
  await inGuest(t, from, `test -e /tmp/ping && echo started || { ${started}; }`, /started/);
  return async () => {
    const text = await inGuest(t, from, "killall -INT ping; sleep 1; grep transmitted /tmp/ping", /transmitted/);
    const [sent = 0, received = 0] =
      /(\d+) packets transmitted, (\d+) packets received/.exec(text)?.slice(1).map(Number) ?? [];
    return [sent, sent - received];
  };
};

export const certainDeath = async (t: Testbed, context: TestContext): Promise<void> => {
  // What the operator says goes by way of the root cell, which a testbed of processes has only for this.
  await t.supervisor("POST", "/cells/root");
  // The other two have their hosts before the third chooses one apart from them.
  await apply(t, "move", specification.replace("three extends Machine {", '$& vm:x.desiredState "off";'));
  await apply(t, "move", specification);
  for (const vm of [one, two, three]) await untilReady(t, vm);
  const host = (await stateOf(t, three))?.host ?? "";
  assert.ok(["h3", "h4"].includes(host), host);
  const mark = `data of incarnation 1, ${process.pid}`;
  await inGuest(t, three, `echo "${mark}" | dd of=/dev/vdb conv=fsync 2>/dev/null && echo written`, /written/);
  const stop = await ping(t, one, two);
  const toThree = `ping -c 1 -W 2 ${await addressOf(t, three)} >/dev/null && echo answered`;
  await inGuest(t, one, toThree, /answered/);

  const early = await dead(t, host, "--power-is-off");
  assert.notEqual(early.code, 0);
  assert.match(early.stderr, new RegExp(`host ${host} is being heard: it runs`));
  const { uid = "" } = (await stateOf(t, three)) ?? {};
  await cutPowerOf(t, host);
  const said = await untilSaid(t, three, new RegExp(`host ${host} was declared dead.*cells host dead ${host}`));
  assert.equal(said?.phase, "waiting");
  assert.match((await t.cells(["why", three])).stdout, new RegExp(`cells host dead ${host} --power-is-off`));
  const unsure = await dead(t, host);
  assert.notEqual(unsure.code, 0);
  assert.match(unsure.stderr, /its VMs run twice/);
  await new Promise((resolve) => setTimeout(resolve, 2000));
  assert.deepEqual(
    [(await stateOf(t, three))?.incarnation, (await stateOf(t, three))?.host],
    [1, host],
    "silence is no end",
  );

  const from = performance.now();
  assert.match(await cells(t, "host", "dead", host, "--power-is-off"), /have ended/);
  const again = await untilReady(t, three, 2);
  const ms = Math.round(performance.now() - from);
  assert.notEqual(again?.host, host);
  assert.equal(again?.incarnation, 2);
  assert.deepEqual([again?.uid, again?.lastEnd?.how], [uid, "host died"]);
  await inGuest(t, three, "head -n 1 /dev/vdb", new RegExp(`^${mark}\n$`));
  await inGuest(t, one, toThree, /answered/);
  context.diagnostic(`its machine runs at ${again?.host} ${ms} ms after the word, with its data and its address`);

  await t.start(host);
  await until(
    `${host} is heard again`,
    () => dead(t, host, "--power-is-off"),
    ({ code, stderr }) => code !== 0 && stderr.includes("is being heard"),
  );
  await until(
    `nothing is desired of ${host}, and nothing runs there`,
    () => inventory(t, [host], []),
    (found) => Object.values(found).every((each) => each.length === 0),
  );
  assert.equal((await stateOf(t, three))?.incarnation, 2, "the host that is back changes nothing");
  await inGuest(t, three, "head -n 1 /dev/vdb", new RegExp(`^${mark}\n$`));
  const [sent, lost] = await stop();
  context.diagnostic(`${sent} pings between the others meanwhile, ${lost} without an answer`);
  // One may be under way when the counting ends.
  assert.ok(sent > 5 && lost <= 1, `${lost} of ${sent} were lost`);
};
