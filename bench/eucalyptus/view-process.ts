import { writeFileSync } from "node:fs";
import { createPlanDriver } from "../../host/drivers/network/eucalyptus/driver.ts";
import { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import { residentMiBOf } from "../measure.ts";
import { large, planOfFirst, type Size, viewOf } from "./views.ts";

/*
 * A process that knows nothing yet builds one large view, plans a node's part of it, and compares that with what is in place there: once, as a
 * host does that has just been told, and then so often as its first argument says.
 */

export interface ViewReport {
  /** Each time, in milliseconds. */
  readonly built: readonly number[];
  readonly planned: readonly number[];
  readonly compared: readonly number[];
  /** Above what the process had before, at most, in MiB: after view and plan, and after all was put in place, read back and compared, too. */
  readonly planMiB: number;
  readonly allMiB: number;
  /** What is held of view and plan, without garbage. */
  readonly heldMiB: number;
}

const mib = 1024 ** 2;
const collect = (): void => (globalThis as { gc?: () => void }).gc?.();
/** The most that is resident counts from now on (proc(5), clear_refs). */
function resident(): number {
  collect();
  writeFileSync("/proc/self/clear_refs", "5");
  return residentMiBOf(process.pid).now;
}
const most = (): number => residentMiBOf(process.pid).most;
function timed<T>(times: number[], work: () => T): T {
  const began = performance.now();
  const made = work();
  times.push(performance.now() - began);
  return made;
}

async function measure(rounds: number): Promise<ViewReport> {
  const small: Size = { ...large, instances: 100, groups: 10 };
  const world = new World();
  let leave = async (): Promise<void> => {};
  try {
    const node = await world.machine();
    node.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
    node.run("ip", "link", "add", "br0", "type", "bridge");
    const driver = createPlanDriver({ run: world.run(node), dhcpDirectory: `${world.directory}/dhcp` });
    leave = () => driver.cleanup();
    // Code is loaded, and nothing large is known.
    driver.scrub(planOfFirst(viewOf(small, 22)), await driver.read());
    const [built, planned, compared]: [number[], number[], number[]] = [[], [], []];
    const before = resident();
    collect();
    const heap = process.memoryUsage().heapUsed;
    const view = timed(built, () => viewOf(large, 22));
    const plan = timed(planned, () => planOfFirst(view));
    const planMiB = most() - before;
    collect();
    const heldMiB = (process.memoryUsage().heapUsed - heap) / mib;
    for (const call of ["network", "securityGroup", "addressing"] as const)
      await driver[call](plan, await driver.read(), () => undefined);
    const found = await driver.read();
    const due = timed(compared, () => driver.scrub(plan, found));
    const allMiB = most() - before;
    if (due !== 0) throw new Error(`what was put in place counts as due: ${due}`);
    for (let round = 0; round < rounds; round += 1) {
      const next = timed(built, () => viewOf(large, 22));
      const again = timed(planned, () => planOfFirst(next));
      if (timed(compared, () => driver.scrub(again, found)) !== 0)
        throw new Error("the same view counts as another one");
    }
    // Another rule is seen.
    if (driver.scrub(planOfFirst(viewOf(large, 23)), found) === 0) throw new Error("another rule is not seen");
    return { built, planned, compared, planMiB, allMiB, heldMiB };
  } finally {
    // A server that runs there does not end with its namespace.
    await leave();
    await world.end();
  }
}

process.stdout.write(JSON.stringify(await measure(Number(process.argv[2]))));
