import type { Command } from "commander";
import type { PoolUse } from "../../model/contract/tenancy/pools.ts";
import type { Register } from "../context/register-type.ts";
import { usage } from "../terminal/failure.ts";

const pools = () => import("./pools.ts");
interface Written {
  readonly cpuRatio?: string;
  readonly memoryPercent?: string;
  readonly fill?: string;
  readonly offerings?: readonly string[];
  readonly images?: readonly string[];
}
const useOf = ({ cpuRatio, memoryPercent, fill, offerings, images }: Written): PoolUse => {
  if (cpuRatio !== undefined && !/^(?:[1-9]|1[0-6])$/.test(cpuRatio))
    throw usage(`\`${cpuRatio}\` is no ratio: write a whole number from 1 to 16`);
  if (memoryPercent !== undefined && !/^(?:[1-9]\d?|100)$/.test(memoryPercent))
    throw usage(`\`${memoryPercent}\` is no share of memory: write a whole number from 1 to 100`);
  if (fill !== undefined && fill !== "spread" && fill !== "pack")
    throw usage(`\`${fill}\` is no way to fill hosts: write spread or pack`);
  return {
    ...(cpuRatio === undefined ? {} : { cpuRatio: Number(cpuRatio) }),
    ...(memoryPercent === undefined ? {} : { memoryPercent: Number(memoryPercent) }),
    ...(fill === undefined ? {} : { fill }),
    ...(offerings === undefined ? {} : { offerings }),
    ...(images === undefined ? {} : { images }),
  };
};
const withUse = (command: Command): Command =>
  command
    .option("--cpu-ratio <number>", "virtual processors that are promised for each processor (default: 16)")
    .option("--memory-percent <number>", "how much of its hosts' memory is promised (default: 100)")
    .option("--fill <way>", "spread: VMs go to the emptiest host; pack: to the fullest (default: spread)")
    .option("--offerings <names...>", "of which offerings VMs there have to be (default: of any)")
    .option("--images <names...>", "what VMs there have to boot from (default: whatever they like)");

const named = "its path (shop/racks), its name or its UID";
/** `cells pool`: whole hosts of an account. */
export const poolCommands: Register = (program, context, withHelp) => {
  const pool = program
    .command("pool")
    .description("whole hosts that an account has for itself, and for whom it authorises");
  withHelp(
    pool
      .command("list")
      .description("show your pools")
      .action(async () => (await pools()).listPools(context())),
    ["cells pool list"],
  );
  withHelp(
    pool
      .command("flavors")
      .description("show which whole hosts can be had, what they cost and how many are free")
      .action(async () => (await pools()).listFlavors(context())),
    ["cells pool flavors"],
  );
  withHelp(
    pool
      .command("show")
      .description("show a pool with its hosts and the UIDs of all VMs there")
      .argument("<pool>", named)
      .action(async (name) => (await pools()).showPool(context(), name)),
    ["cells pool show shop/racks"],
  );
  withHelp(
    withUse(
      pool.command("create").description("make a pool in a cell").argument("<pool>", "cell and name: shop/racks"),
    ).action(async (name, options: Written) => (await pools()).makePool(context(), name, useOf(options))),
    ["cells pool create shop/racks --fill pack"],
  );
  withHelp(
    withUse(
      pool
        .command("set")
        .description("say how its hosts are used; what is left out is as elsewhere")
        .argument("<pool>", named),
    ).action(async (name, options: Written) => (await pools()).changePool(context(), name, useOf(options))),
    ["cells pool set shop/racks --cpu-ratio 2", "cells pool set shop/racks --offerings small large"],
  );
  withHelp(
    pool
      .command("delete")
      .description("delete a pool that has no hosts")
      .argument("<pool>", named)
      .action(async (name) => (await pools()).deletePool(context(), name)),
    ["cells pool delete shop/racks"],
  );
  hostCommands(pool, context, withHelp);
};

const hostCommands: Register = (pool, context, withHelp) => {
  withHelp(
    pool
      .command("add")
      .description("take a free host of a flavour into a pool; it is refused where there is none")
      .argument("<pool>", named)
      .argument("<host>", "what you call it")
      .requiredOption("--flavor <name>", "as `cells pool flavors` shows it")
      .option("--zone <name>", "where it is to stand")
      .action(async (name, host, options) => (await pools()).addPoolHost(context(), [name, host], options)),
    ["cells pool add shop/racks rack1 --flavor large"],
  );
  for (const [command, enabled, description] of [
    ["enable", true, "have VMs come to a host of a pool"],
    ["disable", false, "let no new VM come to a host of a pool; what runs goes on"],
  ] as const)
    withHelp(
      pool
        .command(command)
        .description(description)
        .argument("<pool>", named)
        .argument("<host>", "as you call it")
        .action(async (name, host) => (await pools()).enablePoolHost(context(), [name, host], enabled)),
      [`cells pool ${command} shop/racks rack1`],
    );
  withHelp(
    pool
      .command("remove")
      .description("give a host back that is disabled and has no VMs")
      .argument("<pool>", named)
      .argument("<host>", "as you call it")
      .action(async (name, host) => (await pools()).removePoolHost(context(), [name, host])),
    ["cells pool remove shop/racks rack1"],
  );
  withHelp(
    pool
      .command("authorise")
      .description("say which accounts may have VMs in a pool, in place of those before")
      .argument("<pool>", named)
      .argument("<accounts...>", "their paths; or own: the account of its cell; or none")
      .action(async (name, accounts) => (await pools()).authorise(context(), name, accounts)),
    ["cells pool authorise shop/racks acme/dev acme/ops", "cells pool authorise shop/racks own"],
  );
};
