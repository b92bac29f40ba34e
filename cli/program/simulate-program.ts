import { faultKinds, namedFaultKinds } from "../../simulator/histories/fault-kinds.ts";
import type { Given } from "../commands/simulate.ts";
import type { Register } from "../context/register-type.ts";

/** `cells simulate`: the real services over virtual machines, disks, networks and time. */
export const simulateCommand: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("simulate")
      .description("run the real services in virtual time, with faults from a seed, and check the invariants")
      .option("--hosts <count>", "hosts of the installation", "10")
      .option("--cells <count>", "cells, each changing at random", "3")
      .option("--services <count>", "Placers, and Storage Managers (default: two with some seeds, one with the others)")
      .option("--ha", "an HA Manager (default: with every third seed)")
      .option("--no-ha", "none")
      .option("--seed <number>", "the same seed and commit give the same log to the byte", "1")
      .option("--minutes <count>", "virtual time with faults, before everything is healed", "1")
      .option("--faults <kinds>", `of ${[...faultKinds, ...namedFaultKinds].join(", ")}; or none`, faultKinds.join(","))
      .option("--history <file>", "play what a failing run printed, or a scenario's steps.txt, instead of a seed")
      .option("--log", "print the whole log")
      .option("--many", "seed after seed, until interrupted or one fails; prints the rate")
      .option("--until <count>", "with --many: so many seeds")
      .option("--serve", "the page over a simulated cloud in real time, until Ctrl-C: hosts fail by key and by seed")
      .option("--machines <count>", "with --serve: VMs to begin with", "30")
      .option("--port <number>", "with --serve: of the page; 0: any that is free", "0")
      .action(async (given: Given) => (await import("../commands/simulate.ts")).simulate(context(), given)),
    [
      "cells simulate --seed 7 --faults partition,crash",
      "cells simulate --many --until 100",
      "cells simulate --serve --hosts 20 --machines 1000",
    ],
  );
};
