import { cellPage, type DiagnosticPage } from "../diagnostic-page.ts";

/** What the cell's own limits or the installation can never give. */
export const supplyPages: Readonly<Record<string, DiagnosticPage>> = {
  "cell/limits": cellPage(
    "more than the limits of the cell permit",
    "`x.limits.*` of a cell bounds what it and its child cells ask for together. Ask for less, or raise the limit; that of a child cell cannot be above what its parent has left.",
    "x.limits.vms 1;\na extends VM { x.memory 128; }\nb extends VM { x.memory 128; }",
    "x.limits.vms 2;\na extends VM { x.memory 128; }\nb extends VM { x.memory 128; }",
  ),
  "cell/no-storage": cellPage(
    "more storage than there could ever be",
    'Even empty, no storage server could hold this volume; or, with `x.policy.deploy "all-or-none"`, all of them together could not promise what the cell asks for. It would wait for ever. `cells spec check` knows no servers; `cells plan` asks the installation.',
    "disk extends Volume { x.size 1048576; }",
    "disk extends Volume { x.size 1024; }",
  ),
  "cell/no-addresses": cellPage(
    "more addresses than there could ever be",
    "The installation has pools of internal and external addresses, of which a subnet gets a range. This one could not be given even if nobody else had any. `cells spec check` knows no pools; `cells plan` asks the installation.",
    "net extends Subnet { x.size 1048576; }",
    "net extends Subnet { x.size 64; }",
  ),
};
