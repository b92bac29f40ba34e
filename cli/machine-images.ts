import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The images that come with an installation, for a storage agent of a real machine. */
const names = ["service", "tiny"] as const;
const builder = fileURLToPath(new URL("../image/main.ts", import.meta.url));

/**
 * Directory with all of them: the given one, or built on this machine from Debian's packages, unless they were before.
 * Every storage server has its own, made from the same inputs. Rejects with a sentence.
 */
export const imagesFor = async (given: string | undefined, say: (line: string) => void): Promise<string> => {
  if (given !== undefined) {
    const missing = names.find((name) => !existsSync(join(given, name, "manifest.json")));
    if (missing === undefined) return given;
    throw new Error(`${given} holds no image \`${missing}\`: leave out --images, and it is built`);
  }
  let directory = "";
  for (const name of names) directory = dirname(await build(name, say));
  return directory;
};

/** Where the image is. The builder is on top of everything, so that it is started and not imported. */
const build = (name: string, say: (line: string) => void): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", builder, name], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let answer = "";
    let last = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
    });
    createInterface({ input: child.stderr }).on("line", (line) => {
      last = line;
      say(line);
    });
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(answer.trim());
      else reject(new Error(`the image \`${name}\` could not be built: ${last}`));
    });
  });
