import type { MissingServer } from "../../../model/api.ts";
import { imageNameRule, isImageName } from "../../../model/cell/image-name.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { formatOf, type ImageFormat, readHead } from "../../connection/image-format.ts";
import { type Context, printJson } from "../../context/context.ts";
import { bytesOf, formatIn, showingSent } from "../../output/sending.ts";
import { usage } from "../../terminal/failure.ts";
import { table } from "../../terminal/terminal.ts";

/** `cells image add`, `list` and `delete`. */

const checkedName = (name: string): string => {
  if (isImageName(name)) return name;
  throw usage(`\`${name}\` cannot name an image: use ${imageNameRule}`);
};

const warnMissing = ({ terminal }: Context, what: string, missing: readonly MissingServer[]): void => {
  for (const { server, why } of missing) terminal.warn(printable(`${what} ${server}: ${why}`));
};

const foundFormat = async (file: string): Promise<ImageFormat> => {
  const head = await readHead(file).catch((error: Error) => {
    throw usage(`cannot read ${file}: ${error.message}`);
  });
  const format = formatOf(head);
  if (!format.ok) throw usage(`${file} ${format.error}`);
  return format.value;
};

export const addImage = async (
  context: Context,
  asked: {
    readonly name: string;
    readonly file: string;
    readonly format: string | undefined;
    readonly replace: boolean;
  },
): Promise<void> => {
  const { terminal } = context;
  const { file, replace } = asked;
  const name = checkedName(asked.name);
  const wanted = formatIn(asked.format);
  const bytes = await bytesOf(file, "an image is a file");
  const format = wanted ?? (await foundFormat(file));
  const added = await showingSent(context, bytes, (onProgress) =>
    context.client().addImage({ name, file, format, replace, bytes, onProgress }),
  );
  if (context.json) printJson(context, added);
  else
    terminal.print(
      `${terminal.paint("green", "added")} ${name} (${format}): ${added.sizeMiB} MiB, on ${added.servers.join(", ")}; \`x.import "${name}"\` starts a volume as it`,
    );
  warnMissing(context, "not on", added.missing);
};

export const listImages = async (context: Context): Promise<void> => {
  const { terminal } = context;
  const images = await context.client().images();
  if (context.json) return printJson(context, images);
  if (images.length === 0) return terminal.print("no images; `cells image add` brings one in");
  for (const line of table(
    images.map(({ name, sizeMiB, digest, provided, servers }) => [
      name,
      `${sizeMiB} MiB`,
      `on ${servers.join(", ")}`,
      terminal.paint("grey", provided ? "comes with the installation" : `sha256 ${digest.slice(0, 16)}`),
    ]),
  ))
    terminal.print(line);
};

export const deleteImage = async (context: Context, name: string): Promise<void> => {
  const removed = await context.client().deleteImage(checkedName(name));
  if (context.json) printJson(context, removed);
  else context.terminal.print(`deleted ${name}; volumes made from it stay as they are`);
  warnMissing(context, "still on", removed.missing);
};
