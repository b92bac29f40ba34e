import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openWatchdog } from "../../host/heartbeat/watchdog-device.ts";

/* Runs in a guest that has a watchdog: what the Host Manager does with one, and each of its ends. */
const [device = "", seconds = "0", end = "", after] = process.argv.slice(2);
// Emulated, Node takes longer to start than a watchdog waits: who comes next is there before.
while (after !== undefined && !existsSync(after)) await sleep(100);
try {
  const watchdog = await openWatchdog(device, (event) => console.log(event));
  for (let second = 0; second < Number(seconds); second += 1) {
    watchdog.tell("feed");
    console.log(`fed ${second + 1}`);
    await sleep(1000);
  }
  if (end === "closes") watchdog.close();
  else if (end !== "rests") process.kill(process.pid, end);
} catch (error) {
  console.log((error as Error).message);
}
