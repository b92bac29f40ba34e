import { gives, must, route } from "../../route.ts";
import { text } from "../../schema.ts";
import { cellCounters } from "./counters.ts";
import { history, machineHistory } from "./history.ts";

/** What is counted and measured, in numbers. */
export const observationRoutes = {
  readCounters: route("GET /cells/{cell}/counters", "cell", "gateway", {
    doc: "What rules and interfaces of the cell let pass and dropped, and what its machines' disks have read and written, over all hosts.",
    more: "Of elements that whoever asks may read. Hosts are asked at most each 2 s, however many ask. `missing`: so many hosts did not say, which the operator is told by name. As a topic: `counters:NAME`.",
    answer: gives(cellCounters),
  }),
  readHistory: route("GET /history", "operator", "gateway", {
    doc: "The last hour: load and memory of hosts, running VMs of cells, each 10 s.",
    more: "It is kept in the gateway's memory alone, at most 16 MiB of it, and begins anew with the gateway. `null`: nothing was heard then.",
    answer: gives(history),
  }),
  readMachineHistory: route("GET /cells/{cell}/history", "cell", "gateway", {
    doc: "The last hour of one machine: processors, memory, network and disks, each 10 s.",
    more: "For whoever may read it in the model; others are told 404, as of one that is not there. It is kept in the gateway's memory alone, at most 16 MiB for all machines (some 2,900), and goes on where the machine moves. `null`: nothing was heard then.",
    query: { vm: must(text(), "Its path, as `shop/web/vm`.") },
    answer: gives(machineHistory),
  }),
};
