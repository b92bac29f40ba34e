import type { FastifyInstance } from "fastify";
import { capacityAnswer } from "../../model/contract/operator/placement.ts";
import { refused } from "../requests/refused.ts";
import { serveRoute } from "../requests/serve.ts";
import { type Asking, aboutVm, askPlacers } from "./ask-placers.ts";

const withinMs = 10_000;

/** `GET /placement/capacity`: asked of all Placers, each of which knows all hosts, and the VMs of its own cells. */
export function registerCapacity(app: FastifyInstance, asking: Asking): void {
  serveRoute(app, "readCapacity", async ({ query, request }, reply) => {
    const { like = null, memoryMiB = null, cpus = null, failures = null } = query;
    if ((like === null) === (memoryMiB === null) || (like !== null && cpus !== null))
      throw refused(400, "bad-request", "say the path of a VM as `like`, or else `memoryMiB` and `cpus`");
    const words = Object.entries({ like, memoryMiB, cpus, failures }).flatMap(([name, value]): [string, string][] =>
      value === null ? [] : [[name, `${value}`]],
    );
    const path = `/capacity?${new URLSearchParams(words)}`;
    const said = await askPlacers(asking, { request, reply, path, withinMs }, aboutVm(capacityAnswer));
    const answers = said.filter((each) => each !== null && each !== "unknown");
    // Who has promised more than the others have heard of knows best.
    const [least] = answers.sort((one, other) => one.more - other.more);
    if (least !== undefined) return least;
    if (said.includes("unknown"))
      throw refused(
        404,
        "not-found",
        `no Placer knows a VM ${like}: it is there only while it is to run. Ask by memoryMiB and cpus.`,
      );
    throw refused(503, "busy", "no Placer answers");
  });
}
