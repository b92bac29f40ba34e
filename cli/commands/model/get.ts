import { elementsOf } from "../../../model/contract/follow/rows.ts";
import type { Client } from "../../connection/client.ts";
import { type Context, cellOfPath, printJson } from "../../context/context.ts";
import { renderElements, renderSummary } from "../../output/render.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";

/** Where a command's cell may be left out: there is just one. */
export const onlyCell = async (client: Client): Promise<string> => {
  const cells = await client.cells();
  const [first, ...more] = cells;
  if (first === undefined)
    throw new CommandFailure(exitCodes.refused, "there is no cell yet: `cells apply FILE` makes one");
  if (more.length > 0) throw usage(`name one of the cells: ${cells.map(({ cell }) => cell).join(", ")}`);
  return first.cell;
};

const putYaml = async ({ terminal }: Context, value: unknown): Promise<void> => {
  const { printYaml } = await import("../../../runtime/specification/yaml-print.ts");
  terminal.print(printYaml(JSON.parse(JSON.stringify(value))).replace(/\n$/, ""));
};

/** Without a path: the cells. With one: the document there, as JSON or YAML; with `state` a table of its elements. */
export const get = async (context: Context, pathText: string | undefined, state: boolean): Promise<void> => {
  const client = context.client();
  const { terminal } = context;
  if (pathText === undefined) {
    const cells = await client.cells();
    if (context.json) printJson(context, cells);
    else if (context.yaml) await putYaml(context, cells);
    else if (cells.length === 0) terminal.print("there is no cell yet: `cells apply FILE` makes one");
    else
      for (const { cell, version, elements, phases } of cells)
        terminal.print(
          "unreachable" in phases
            ? `${cell}  its controller does not answer now`
            : `${cell}  version ${version}  ${elements} elements`,
        );
    return;
  }
  const { cell, path, whole } = cellOfPath(pathText);
  const document = await client.model(cell, whole ? "" : path, state);
  if (context.yaml) {
    await putYaml(context, document);
    return;
  }
  if (context.json || !state) {
    printJson(context, document);
    return;
  }
  const elements = elementsOf(document, whole ? "" : path);
  for (const line of renderElements(elements, terminal.paint)) terminal.print(line);
  terminal.print(renderSummary(elements, terminal.paint));
};
