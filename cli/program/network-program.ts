import type { Register } from "../context/register-type.ts";

const configurations = () => import("../network/configuration.ts");
const several = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

/** `cells network`: networks by the rules of Eucalyptus. None of these asks a gateway. */
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
};
