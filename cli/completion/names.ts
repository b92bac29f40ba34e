import { elementsOf } from "../../model/contract/follow/rows.ts";
import type { Client } from "../connection/client.ts";
import { describe } from "../connection/elements.ts";
import { pathIn } from "../context/context.ts";
import type { Candidate, Kind } from "./candidates.ts";

/** A person waits for it. */
const longestMs = 1500;
/** Where the word that is typed names no cell yet, the elements of so many are asked for. */
const mostCells = 8;

const elements = async (client: Client, typed: string, kind: "element" | "vm"): Promise<readonly Candidate[]> => {
  const cells = await client.cells();
  const named = typed.includes("/") ? cells.filter(({ cell }) => typed.startsWith(`${cell}/`)) : cells;
  if (named.length > mostCells) return cells.map(({ cell }) => ({ value: `${cell}/`, what: "cell" }));
  const found = await Promise.all(
    named.map(async ({ cell }) =>
      elementsOf(await client.model(cell, "", true), "").flatMap((element): readonly Candidate[] => {
        if (kind === "vm" && element.type !== "VM") return [];
        const value = pathIn(cell, element.path);
        return [{ value, what: [element.type, element.state.phase, describe(element)].filter(Boolean).join(", ") }];
      }),
    ),
  );
  return [...(kind === "element" ? named.map(({ cell }) => ({ value: cell, what: "cell" })) : []), ...found.flat()];
};

const namesOf = async (client: Client, kind: Kind, typed: string): Promise<readonly Candidate[]> => {
  if (kind === "cell") return (await client.cells()).map(({ cell }) => ({ value: cell, what: "cell" }));
  if (kind === "host") return (await client.status()).hosts.map(({ host }) => ({ value: host, what: "host" }));
  if (kind === "image") return (await client.images()).map(({ name }) => ({ value: name, what: "image" }));
  return kind === "file" ? [] : elements(client, typed, kind);
};

/** Names of the cloud that begin with what is typed. A cloud that does not answer soon, or refuses, has none to offer. */
export const namesInTime = async (
  client: () => Client,
  kind: Kind,
  typed: string,
  timeoutMs = longestMs,
): Promise<readonly Candidate[]> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly Candidate[]>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, []);
  });
  try {
    const found = await Promise.race([namesOf(client(), kind, typed), late]);
    return found.filter(({ value }) => value.startsWith(typed));
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
  }
};
