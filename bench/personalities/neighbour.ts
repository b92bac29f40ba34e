import { processCpuMs } from "../measure.ts";
import { beside, sourceOf } from "./connections.ts";
import { withDoors } from "./standing.ts";

/*
 * What one client waits for its answers, alone and while another one, of another cell, does its worst at the same door. Gateway, CaaS and both
 * clients are processes of their own.
 */
const path = "/cells/CELL/elements?type=VM&limit=10";

/** @param how `DOOR OTHER ROUNDS`: at which door, what the other one does, and in how many turns @param count requests in each */
export const neighbour = (count: number, how: string): Promise<Readonly<Record<string, readonly number[]>>> =>
  withDoors(25, async ({ caas, gateway, credentialOf }) => {
    const [door = "", other = "", rounds = "1"] = how.split(" ");
    const { port } = door === "gateway" ? gateway : caas;
    const asked = (cell: string, source: string): string[] => [
      String(port),
      path.replace("CELL", cell),
      credentialOf(cell),
      source,
    ];
    const ask = async (): Promise<number> => {
      const asker = beside(["steadily", ...asked("c0", sourceOf(1)), String(count)]);
      try {
        return (await asker.said).p99Ms ?? Number.NaN;
      } finally {
        await asker.end();
      }
    };
    const cpuMs = (): number => processCpuMs(caas.pid) + processCpuMs(gateway.pid);
    const whileOther = async (): Promise<number> => {
      const flooding = beside([other, ...asked("c1", sourceOf(2)), "16"]);
      try {
        // What he may have at once is over by then.
        await new Promise((resolve) => setTimeout(resolve, 3000));
        const [before, began] = [cpuMs(), performance.now()];
        const waited = await ask();
        busy.push((cpuMs() - before) / (performance.now() - began));
        return waited;
      } finally {
        await flooding.end();
      }
    };
    const [alone, besides, busy]: [number[], number[], number[]] = [[], [], []];
    // Whatever is made at first is made.
    await ask();
    for (let round = 0; round < Number(rounds); round += 1)
      for (const first of round % 2 === 0 ? [true, false] : [false, true])
        if (first) alone.push(await ask());
        else besides.push(await whileOther());
    return { alone, besides, busy };
  });
