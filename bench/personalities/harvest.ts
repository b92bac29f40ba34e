import { randomUUID } from "node:crypto";
import type { Client } from "../../cli/connection/client.ts";
import type { BenchOptions, Figure } from "../bench.ts";
import { withCloud } from "../cloud/cloud.ts";
import { figureOf, interleave, median, rangeOf, ratios } from "../measure.ts";

/* Harvests in a cloud of processes, through CaaS: from the request to a persistent volume that is ready, then it is deleted. */
const sizesGiB = { small: 1, large: 1024 } as const;
const cell = "bench";

async function harvested(client: Client, volume: keyof typeof sizesGiB): Promise<number> {
  const name = `h-${randomUUID().slice(0, 8)}`;
  const from = { cell, path: `${cell}/${volume}` };
  const began = performance.now();
  const { uid } = await client.changed("addVolume", { parameters: {}, body: { name, from } });
  const path = `primary/volumes/${uid}/v1`;
  const parameters = { cell: "primary", path };
  // Held back until it is so.
  const element = (await client.ask("readElement", { parameters, query: { state: true, until: "ready" } })) as {
    readonly $state?: { readonly phase?: string; readonly reason?: string | null };
  };
  const tookMs = performance.now() - began;
  if (element.$state?.phase !== "ready")
    throw new Error(`${volume} was not harvested: ${element.$state?.phase}, ${element.$state?.reason}`);
  await client.ask("readVolume", { parameters: { uid } });
  await client.ask("deleteVolume", { parameters: { uid }, query: { allowDestroy: name } });
  return tookMs;
}

export async function measureHarvest({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  say("harvests: a cloud of processes");
  return withCloud({ hosts: 1, servers: 1, personalities: ["caas"] }, async ({ client }) => {
    const volumes = Object.entries(sizesGiB)
      .map(([name, gib]) => `${name} extends VolumeCopy { x.image "<ref:/${cell}/origin>"; x.size ${gib * 1024}; }`)
      .join(" ");
    // Copies, since a whole volume is no larger than its server.
    const text = `${cell} extends Cell { origin extends Volume { x.size 1024; x.access "ro"; } ${volumes} }`;
    await client.apply(cell, { main: "bench.sf", files: { "bench.sf": text } }, false);
    for (const name of Object.keys(sizesGiB))
      await client.ask("readElement", {
        parameters: { cell, path: `${cell}/${name}` },
        query: { state: true, until: "ready" },
      });
    const variants = { small: () => harvested(client, "small"), large: () => harvested(client, "large") };
    await interleave(1, variants);
    const { small, large } = await interleave(quick ? 2 : 15, variants);
    const each = ratios(large, small);
    return [
      figureOf("harvest of 1 GiB", "ms", median(small), null, "15 in turns, wall time"),
      figureOf("harvest of 1 TiB (sparse)", "ms", median(large), null, "the same"),
      {
        what: "1 TiB against 1 GiB",
        unit: "×",
        value: median(large) / median(small),
        range: rangeOf(each),
        atMost: 1.25,
        note: "equal within noise",
      },
    ];
  });
}
