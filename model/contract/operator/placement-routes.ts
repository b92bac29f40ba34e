import { gives, may, must, route } from "../route.ts";
import { integer, oneOf, text } from "../schema.ts";
import { capacityAnswer, mostFailures, rebalanceAnswer, rebalanceGoals, trialAnswer } from "./placement.ts";

/** What the operator asks of where VMs stand, and might. */
export const placementRoutes = {
  readCapacity: route("GET /placement/capacity", "operator", "gateway", {
    doc: "How many more of a VM there is room for by all rules, what runs out first, and how many after the loss of any `failures` hosts, whose VMs start again on the others before.",
    more: "Nothing is changed. A machine that is asked for by its room asks for nothing else, and is nobody's. With several Placers each knows VMs of its own cells; of several answers the least counts. Refused with 404 for a VM that is not to run, 503 where no Placer answers.",
    query: {
      like: may(text(), "Path of a VM that is to run, its cell's whole name first: one like it, of the same account."),
      memoryMiB: may(integer(16), "In place of `like`: main memory in MiB."),
      cpus: may(integer(1), "With `memoryMiB`: virtual processors. Absent: 1."),
      failures: may(
        integer(0, mostFailures),
        "So many hosts are lost. Absent: as many as `x.ha.spareHosts` of the root cell keeps room for.",
      ),
    },
    answer: gives(capacityAnswer),
  }),
  readRebalance: route("GET /placement/rebalance", "operator", "gateway", {
    doc: "A plan of moves, each lawful once those before it are made, and what it gains. Nothing is moved: `cells move` has one VM go.",
    more: "`even`: hosts are used alike; `pack`: few are used; `empty`: nothing is at `host`. Each Placer plans for VMs of its own cells, as if the others' stayed. Every plan is looked at anew by rules of its own before it is shown. 503: a Placer does not answer.",
    query: {
      goal: must(oneOf(...rebalanceGoals), "What the plan is for."),
      host: may(text(), "With `goal=empty`: which host."),
    },
    answer: gives(rebalanceAnswer),
  }),
  tryPlacement: route("GET /placement/try", "operator", "gateway", {
    doc: "Whether a host takes a VM that runs elsewhere, by all rules, else why not, and which alerts the move would raise.",
    more: "Nothing is moved or kept: `POST /cells/{cell}/moves` has it go, and is not refused for an alert. 404: no Placer knows such a VM, which is there only while it is to run; 503: no Placer answers, or one of a version that cannot say.",
    query: {
      vm: must(text(), "Path of the VM, its cell's whole name first."),
      host: may(text(), "Of this host alone. Absent: of each but its own."),
    },
    answer: gives(trialAnswer),
  }),
};
