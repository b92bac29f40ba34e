import { ask, Refused } from "./api.ts";

/** A text as it was sent, with the version of the model that it is compared with. */
export interface Text {
  readonly text: string;
  readonly main: string;
  /** Of the model; 0: the cell is new. */
  readonly version: number;
  /** What one should know of it, a sentence. */
  readonly note: string | null;
}
const emptyCell = (cell: string): string => `${cell} extends Cell {\n}\n`;

/** The newest text of a cell; where none is kept its model as JSON, and of one that is new an empty cell. */
export async function loadText(cell: string): Promise<Text> {
  const path = `/cells/${encodeURIComponent(cell)}`;
  const model = await ask("readModel", "GET", `${path}/model`).catch((error: unknown) => {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  });
  if (model === null)
    return { text: emptyCell(cell), main: `${cell}.sf`, version: 0, note: "This cell has no model yet." };
  const version = model.version ?? 0;
  try {
    const { value } = await ask("readSource", "GET", `${path}/source`);
    const others = Object.keys(value.files).length - 1;
    if (others > 0) throw new Refused(404, { code: "several", message: `It was sent as ${others + 1} files.` });
    const since = value.since.length + value.unknown;
    const note =
      since === 0
        ? null
        : `${since === 1 ? "One change" : `${since} changes`} since then came in other ways and would be taken back by this text; the plan says which.`;
    return { text: value.files[value.main] ?? "", main: value.main, version, note };
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    const note = `The text that this was made from is not kept here, so the model is shown as JSON. ${error.message}`;
    return { text: `${JSON.stringify(model.value, null, 2)}\n`, main: `${cell}.json`, version, note };
  }
}
