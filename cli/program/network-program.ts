import { type Command, Option } from "commander";
import type { Register } from "../context/register-type.ts";
import { several } from "./options.ts";

const configurations = () => import("../network/configuration.ts");
const views = () => import("../network/view.ts");

/** `cells network`: networks by the rules of Eucalyptus. Only `set` and `get` ask a gateway. */
export const networkCommands: Register = (program, context, withHelp) => {
  const network = program
    .command("network")
    .description("Eucalyptus networks: configurations, and what hosts make of a view");
  const configuration = network
    .command("configuration")
    .description("the network configuration of Eucalyptus, a JSON document");
  withHelp(
    configuration
      .command("check")
      .description("say all that is wrong with a network configuration, each fault with its place")
      .argument("<file>", "the JSON document")
      .action(async (file) => (await configurations()).checkConfigurationFile(context(), file)),
    ["cells network configuration check network.json", "cells network configuration check network.json --output json"],
  );
  withHelp(
    configuration
      .command("import")
      .description("make the document from the values of Eucalyptus before 4.2: `VNET_…` and the limits of tags")
      .argument("<files...>", "eucalyptus.conf of a cluster controller, and what euca-describe-properties printed")
      .option("--cluster <name>", "a cluster that no property names; several times for several", several)
      .action(async (files, { cluster }) =>
        (await configurations()).importConfiguration(context(), files, cluster ?? []),
      ),
    ["cells network configuration import eucalyptus.conf properties.txt > network.json"],
  );
  withHelp(
    configuration
      .command("set")
      .description("put a network configuration in force; one that would move what is in use is refused")
      .argument("<file>", "the JSON document")
      .action(async (file) => (await configurations()).setConfiguration(context(), file)),
    ["cells network configuration set network.json"],
  );
  withHelp(
    configuration
      .command("get")
      .description("print the network configuration in force")
      .action(async () => (await configurations()).getConfiguration(context())),
    ["cells network configuration get > network.json"],
  );
  const view = network
    .command("view")
    .description("what a machine makes of a global network view (GNI), an XML file; nothing is touched");
  const remark = "A view that is refused as a whole ends with 3.";
  const ofMachine = (command: Command) =>
    command
      .argument("<file>", "the view")
      .requiredOption("--self <address>", "the machine, as the view names it")
      .addOption(
        new Option("--peer <kind>", "what it is: a node, or the network host of its cluster")
          .choices(["node", "network"] as const)
          .default("node" as const),
      )
      .option("--metadata-private", "instances reach the metadata service from their private address")
      .option("--bridge-mac <mac>", "MAC address of the machine's bridge, which answers for the gateway");
  withHelp(
    ofMachine(view.command("plan"))
      .description("print what that machine would have: rules, sets, DHCP")
      .option("-d, --out <dir>", "write files there, in place of printing them")
      .action(async (file, { metadataPrivate, ...options }) =>
        (await views()).planView(context(), file, { ...options, metadataPrivate: metadataPrivate === true }),
      ),
    [
      "cells network view plan gni.xml --self 10.111.5.43",
      "cells network view plan gni.xml --self 10.111.1.54 --peer network --out plan",
    ],
    remark,
  );
  withHelp(
    ofMachine(view.command("check"))
      .description("say whether a view is accepted, and what of it would be left out on that machine")
      .action(async (file, { metadataPrivate, ...options }) =>
        (await views()).checkView(context(), file, { ...options, metadataPrivate: metadataPrivate === true }),
      ),
    ["cells network view check gni.xml --self 10.111.5.43"],
    remark,
  );
};
