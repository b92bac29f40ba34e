import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/*
 * Every command of `docs/tenants.md` is carried out as its readers would, in the order of the page: the operator's with the operator's
 * credential, a user's with his session. Passwords that people would be asked for come from files.
 */
const page = join(import.meta.dirname, "../../docs/tenants.md");
const program = join(import.meta.dirname, "../../cli/main.ts");
const run = promisify(execFile);

interface Command {
  readonly line: string;
  readonly words: readonly string[];
  /** Name of the file with the session; null: the operator's. */
  readonly by: string | null;
}
const commandsIn = (text: string): readonly Command[] =>
  [...text.matchAll(/^```sh\n(.*?)^```$/gms)]
    .flatMap(([, block = ""]) => block.split("\n"))
    .flatMap((line) => {
      const [, by, rest] = /^(?:CELLS_CONFIG=(\S+) )?cells (.*?)(?:\s+#.*)?$/.exec(line) ?? [];
      if (rest === undefined) return [];
      const words = [...rest.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
      return [{ line, words, by: by ?? null }];
    });

/** What must be printed, by what a command begins with. */
const printed: readonly (readonly [string, RegExp])[] = [
  ["account list", /^ROOT\/acme\/dev +no cells$/m],
  ["account give", /the cell shop is of the account ROOT\/acme\/dev/],
  ["can bob@acme", /^no: rule 1: deny vm\.console of the role operators/],
  ["quota list", /ROOT\/acme +domain +vms \d+ of 50\nROOT\/acme\/dev +account .*cells 1 of 2/],
  [
    "audit list --service",
    / operator +127\.0\.0\.1 +addUser +ROOT\/acme\/dev ann +password set, account ROOT\/acme\/dev, role account-admin/,
  ],
  ["audit export", /^\d+ records are in /],
  ["audit verify", /^tenancy +\d+ records +whole\n[\s\S]*controller\.shop +\d+ records +whole$/],
  ["whoami", /ann@ROOT\/acme, of the account ROOT\/acme\/dev\nrole account-admin/],
  ["get", /^shop\b/m],
  ["password", /ann@ROOT\/acme has another password/],
  ["logout", /the session has ended/],
  ["user disable", /ann@ROOT\/acme.* disabled/],
];

/** The cell `shop` is there, and no domain `acme`. */
export async function tenantsPageRuns(directory: string, url: string, credential: string): Promise<void> {
  const file = (name: string): string => join(directory, name);
  const write = (name: string, text: string): Promise<void> => writeFile(file(name), text, { mode: 0o600 });
  await write("operator.json", JSON.stringify({ url, credential }));
  await write("password", "a horse of another colour\n");
  await write("next", "and another one after that\n");
  const commands = commandsIn(await readFile(page, "utf8"));
  assert.ok(commands.length >= 20, `${commands.length} commands were found`);
  for (const { line, words, by } of commands) {
    const asked = words[0] === "login" || (words[0] === "user" && ["add", "password"].includes(words[1] ?? ""));
    const more = [
      ...(asked || words[0] === "password" ? ["--password-file", file("password")] : []),
      ...(words[0] === "password" ? ["--new-password-file", file("next")] : []),
    ];
    const given = words.map((word) =>
      word.startsWith("https://") ? url : word.endsWith(".json") || word.endsWith(".jsonl") ? file(word) : word,
    );
    const env = { ...process.env, CELLS_CONFIG: file(by ?? "operator.json"), NODE_TEST_CONTEXT: undefined };
    const { stdout } = await run(process.execPath, [program, ...given, ...more], { env, cwd: directory }).catch(
      ({ message }: Error) => assert.fail(`${line}\n${message}`),
    );
    const right = printed.find(([begin]) => words.join(" ").startsWith(begin))?.[1];
    if (right !== undefined) assert.match(stdout, right, line);
  }
}
