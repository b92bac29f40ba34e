import { Option } from "commander";
import { type Context, cellOfPath } from "../context/context.ts";
import type { Register } from "../context/register-type.ts";
import { usage } from "../terminal/failure.ts";

const observing = () => import("../commands/observe.ts");

/** What the installation is, and what happens in it. */
export const observeCommands: Register = (program, context, withHelp) => {
  const json = (): Option => new Option("--json", "short for --output json");
  const contextFor = (options: { readonly json?: boolean }): Context => {
    if (options.json === true) program.setOptionValue("output", "json");
    return context();
  };
  withHelp(
    program
      .command("status")
      .description("a picture of hosts, storage servers, services and cells, and their load")
      .option("-w, --watch", "draw it again whenever something happens, until Ctrl-C")
      .addOption(json())
      .addOption(new Option("-d, --directory <dir>", "where the testbed keeps its data").env("CELLS_HOME"))
      .action(async (options, command) =>
        (await observing()).status(contextFor(options), {
          ...options,
          named: command.getOptionValueSource("directory") === "cli",
          watch: options.watch === true,
        }),
      ),
    ["cells status", "cells status --watch", "cells status --json"],
  );
  withHelp(
    program
      .command("top")
      .description("hosts, cells and VMs by what they use, as it changes, until Ctrl-C")
      .addOption(
        new Option("--by <measure>", "what uses most of it comes first")
          .choices(["cpu", "memory", "disk", "network"])
          .default("cpu"),
      )
      .option("--once", "show it once and end, as where the output is no terminal")
      .action(async (options) =>
        (await import("../commands/hosts/top.ts")).top(contextFor({}), { by: options.by, once: options.once === true }),
      ),
    ["cells top", "cells top --by network", "cells top --by memory --once", "cells top --output json"],
    `CPU is counted in whole ones, disks in what they read and wrote, the network in what interfaces sent and received, as hosts have
measured it since somebody asked before. With --output json each change is a line.`,
  );
  withHelp(
    program
      .command("events")
      .description("what happened: one time line over all services, or a cell's own")
      .argument("[cell]", "only this cell's own events, as its controller keeps them")
      .option("-f, --follow", "what happens from now on, until Ctrl-C; with --since what happened since then, too")
      .option("--cell <cell>", "of all services, what concerns this cell")
      .option("--service <service>", "of one service: placer, h1, controller.shop, supervisor, …")
      .option("--since <time>", "20s, 10m, 2h, 1d ago, or a time as 2026-01-31T12:00:00Z")
      .addOption(json())
      .action(async (cell, { follow, cell: about, service, since, ...options }) => {
        const own = cell === undefined ? undefined : cellOfPath(cell).cell;
        if (own !== undefined && (about !== undefined || service !== undefined))
          throw usage(`a cell's own events are not cut by --cell or --service: write --cell ${own} instead of ${own}`);
        return (await observing()).events(contextFor(options), {
          follow: follow === true,
          own,
          cell: about,
          service,
          since,
        });
      }),
    ["cells events --since 10m", "cells events --follow --cell shop", "cells events shop --since 20s --follow"],
  );
  withHelp(
    program
      .command("metrics")
      .description("every service's numbers, in Prometheus' text format")
      .option("--service <service>", "of one service alone: placer, h1, controller.shop, …")
      .addOption(json())
      .action(async (options) => (await observing()).metrics(contextFor(options), options.service)),
    ["cells metrics", "cells metrics --service h1"],
  );
  numberCommands(program, context, withHelp);
};

const numberCommands: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("counters")
      .description("what the rules and interfaces of a cell let pass and dropped, over all hosts")
      .argument("<cell>", "name of the cell")
      .action(async (cell) => (await import("../commands/hosts/numbers.ts")).showCounters(context(), cell)),
    ["cells counters shop", "cells counters shop --output json"],
    `A rule counts where a packet leaves and where it arrives. What is counted begins anew when a machine goes to another host.`,
  );
  withHelp(
    program
      .command("history")
      .description("the last hour, each 10 s: of hosts and cells, or of one VM")
      .argument("[vm]", "path of a VM; absent: load and memory of hosts, and running VMs of cells, for the operator")
      .action(async (vm) => {
        const { showHistory, showMachineHistory } = await import("../commands/hosts/numbers.ts");
        return vm === undefined ? showHistory(context()) : showMachineHistory(context(), vm);
      }),
    ["cells history", "cells history shop/web", "cells history --output json"],
    `It is what the gateway has seen since it began; for more, \`cells metrics\` is what Prometheus reads.`,
  );
};
