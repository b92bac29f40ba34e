import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type OutputFile } from "esbuild";

/**
 * Bundles the page into a directory of files that the gateway serves (`gateway/page/`): names with a hash of their content, each with a
 * compressed copy, and `index.html`, which names them.
 */
export interface BuiltPage {
  /** Octets of each file as it is sent, compressed. */
  readonly sizes: ReadonlyMap<string, number>;
}
const here = import.meta.dirname;

export async function buildPage(directory: string): Promise<BuiltPage> {
  const [worker] = await bundle(["data/follow-worker.ts"], {});
  if (worker === undefined) throw new Error("the page's worker was not built");
  const files = await bundle(["main.tsx"], { WORKER_FILE: JSON.stringify(basename(worker.path)) });
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const sizes = new Map<string, number>();
  const add = async (name: string, content: Uint8Array): Promise<void> => {
    const gzip = gzipSync(content, { level: 9 });
    sizes.set(name, gzip.length);
    await writeFile(join(directory, name), content);
    if (gzip.length < content.length) await writeFile(join(directory, `${name}.gz`), gzip);
  };
  for (const { path, contents } of [worker, ...files]) await add(basename(path), contents);
  const named = (extension: string): string => {
    const found = files.find(({ path }) => /^main-/.test(basename(path)) && path.endsWith(extension));
    if (found === undefined) throw new Error(`the page has no file main-….${extension}`);
    return basename(found.path);
  };
  const icon = await readFile(join(here, "style/icon.svg"));
  const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
  await add(iconName, icon);
  const html = (await readFile(join(here, "index.html"), "utf8"))
    .replace("STYLE", named(".css"))
    .replace("SCRIPT", named(".js"))
    .replace("ICON", iconName);
  await writeFile(join(directory, "index.html"), html);
  return { sizes };
}

async function bundle(
  entries: readonly string[],
  define: Readonly<Record<string, string>>,
): Promise<readonly OutputFile[]> {
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: [...entries],
    outdir: join(here, "out"),
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    target: "es2023",
    write: false,
    entryNames: "[name]-[hash]",
    chunkNames: "part-[hash]",
    assetNames: "[name]-[hash]",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"production"', ...define },
    legalComments: "none",
    logLevel: "silent",
  });
  return outputFiles;
}
