import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { readSpecification } from "../../model/specification/specification.ts";
import { shownByApp } from "../../runtime/tenancy/totp/totp.testing.ts";
import type { TestIssuer } from "../tenancy/issuer.testing.ts";

/*
 * Every command of `docs/tenants.md` is carried out as its readers would, in the order of the page: the operator's with the operator's
 * credential, a user's with his session. Passwords that people would be asked for come from files.
 */
const page = join(import.meta.dirname, "../../docs/tenants.md");
/** What whoever names one is told. */
const withoutHosts =
  /^Error: (?:there is no zone, pod, cluster or host \S+; none has joined|\S+ is dedicated to nobody)/;
/** At a list, until it is as it shall be. */
const mostLooks = 50;
/** In this process: some thirty times a program that starts would be most of the time that this takes. */
const programOf = async (name: string): Promise<unknown> =>
  import(pathToFileURL(join(import.meta.dirname, "../../cli", name)).href);
interface CommandLine {
  createProgram(context: (output: string) => object): {
    parseAsync(words: readonly string[], from: { readonly from: "user" }): Promise<unknown>;
  };
}
type Contexts = { createContext(output: string, client: () => unknown): { readonly terminal: object } };
type Clients = { clientFromConfiguration(): unknown };

/** What it prints. */
async function run(
  words: readonly string[],
  configuration: string,
  heard: (text: string) => void = () => undefined,
): Promise<string> {
  const { createProgram } = (await programOf("program/program.ts")) as CommandLine;
  const { createContext } = (await programOf("context/context.ts")) as Contexts;
  const { clientFromConfiguration } = (await programOf("connection/client.ts")) as Clients;
  const printed: string[] = [];
  const print = (text: string): void => {
    printed.push(`${text}\n`);
    heard(text);
  };
  process.env.CELLS_CONFIG = configuration;
  const { XDG_CONFIG_HOME: home, SUDO_UID: invoker } = process.env;
  // What a user keeps by name is kept beside it, and not with whoever runs this.
  process.env.XDG_CONFIG_HOME = dirname(configuration);
  delete process.env.SUDO_UID;
  try {
    const program = createProgram((output) => {
      const context = createContext(output, clientFromConfiguration);
      return {
        ...context,
        terminal: { ...context.terminal, live: false, canAsk: false, print, warn: () => undefined },
      };
    });
    await program.parseAsync(words, { from: "user" });
  } finally {
    delete process.env.CELLS_CONFIG;
    if (home === undefined) delete process.env.XDG_CONFIG_HOME;
    else process.env.XDG_CONFIG_HOME = home;
    if (invoker !== undefined) process.env.SUDO_UID = invoker;
  }
  return printed.join("");
}

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
  ["plan root.json", /^\+ root\/tenants\/research +Domain +is declared: made, or taken over as it is there$/m],
  ["domain list", /^ROOT\/research\/labs +declared at root\/tenants\/research\/labs$/m],
  ["why root/tenants/research/physics", /root\/tenants\/research\/physics is as declared/],
  ["domain delete research", /the domain ROOT\/research is (?:being )?deleted/],
  ["user add lou", /^first\.\S+\nIt opens once, until /],
  ["user recover", /^first\.\S+\nIt opens once, until .*: root@ROOT gives himself a password/],
  ["account list", /^ROOT\/acme\/dev +no cells$/m],
  ["account give", /the cell shop is of the account ROOT\/acme\/dev/],
  ["can bob@acme", /^no: rule 1: deny vm\.console of the role operators/],
  ["provider list", /^acme +https:\/\/127\S+ +cells\n +groups cells-users +ROOT\/acme\/dev user\n$/],
  ["login --oidc", /mia@ROOT\/acme is in until/],
  [
    "delegation add acme/dev --to acme/ops",
    /^[0-9a-f-]{36}\nROOT\/acme\/ops has the role reader on shop of ROOT\/acme\/dev$/m,
  ],
  ["can kim@acme", /^yes: rule \d+: allow vm\.\* of the delegation of ROOT\/acme\/dev$/m],
  ["invitation add", /^invite\.\S+\nIt opens once, until /],
  ["registration open", /^[0-9a-f-]{36}\nROOT\/acme takes applications of who has such an address/],
  ["registration approve", /the account ROOT\/acme\/pam is there, and pam@ROOT\/acme is its user/],
  [
    "registration",
    /ROOT\/acme +open to addresses at acme\.example +user\n\S+ +ROOT\/acme +pam waits, with pam@acme\.example/,
  ],
  ["register pam", /^tell an administrator of ROOT\/acme that you are\n[0-9a-f-]{36}\n/],
  ["register", /the account ROOT\/acme\/pat is there/],
  [
    "quota list",
    /ROOT\/acme +domain +vms \d+ of 50, publicAddresses \d+ of 16\nROOT\/acme\/dev +account .*cells 1 of 2/,
  ],
  ["usage", /^day +account +hours of +of that in use\n(?:.*\n)*\d{4}-\d\d-\d\d +ROOT\/acme\/dev +\S/],
  [
    "audit list --service",
    / operator +127\.0\.0\.1 +addUser +ROOT\/acme\/dev ann +account ROOT\/acme\/dev, role account-admin, password set/,
  ],
  ["audit export", /^\d+ records are in /],
  [
    "audit verify",
    /^tenancy +\d+ changes +whole\ntenancy +\d+ refusals +whole\n[\s\S]*controller\.shop +\d+ refusals +whole$/m,
  ],
  ["whoami", /(?:ann|mia)@ROOT\/acme, of the account ROOT\/acme\/dev\nrole (?:account-admin|user), /],
  ["get", /^shop\b/m],
  ["context", /^(?:\* +work +http:\S+ +session|work is in use|no context is in use)$/m],
  ["totp on", /^[A-Z2-7]{32}\notpauth:\/\/totp\//],
  ["totp confirm", /^(?:[A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4}\n){10}From now on/],
  ["totp off", /ann@ROOT\/acme logs in by his password alone/],
  ["key add", /the key CELL\w{16} of ann@ROOT\/acme is in /],
  ["key list", /^CELL\w{16} +ann@ROOT\/acme +used \d.* backups$/m],
  ["password", /ann@ROOT\/acme has another password/],
  ["logout", /the session has ended/],
  [
    "account delete acme/dev --plan",
    /^1\. 1 key\n2\. the cell shop\n3\. 3 delegations\n4\. the user ann\n5\. the user bob\n6\. the user lou\n7\. the user mia\n8\. the account ROOT\/acme\/dev$/m,
  ],
  ["account delete acme/old", /the account ROOT\/acme\/old is being deleted/],
  ["domain delete", /the domain ROOT\/acme\/sub is being deleted/],
  ["user disable", /ann@ROOT\/acme.* disabled/],
];

/** The root cell's model, with the tenants of a specification. */
async function rootWith(text: string, url: string, credential: string): Promise<object> {
  const read = readSpecification({ main: "root.sf", files: { "root.sf": text } });
  if (!read.ok) assert.fail(JSON.stringify(read.error));
  const answer = await fetch(`${url}/cells/root/model`, { headers: { authorization: `Bearer ${credential}` } });
  const { root } = (await answer.json()) as { readonly root: object };
  const { tenants } = read.value.document.root as { readonly tenants: object };
  return { root: { ...root, tenants } };
}

/** The cell `shop` is there, and no domain `acme`. @param issuer a person `mia` of the group `cells-users` is in it */
export async function tenantsPageRuns(
  directory: string,
  url: string,
  credential: string,
  issuer: TestIssuer,
): Promise<void> {
  const file = (name: string): string => join(directory, name);
  const write = (name: string, text: string): Promise<void> => writeFile(file(name), text, { mode: 0o600 });
  await write("operator.json", JSON.stringify({ url, credential }));
  await write("password", "a horse of another colour\n");
  for (const name of ["next", "next.password"]) await write(name, "and another one after that\n");
  const text = await readFile(page, "utf8");
  const document = JSON.parse(/^```text\n(\{.*?)^```$/ms.exec(text)?.[1] ?? "") as object;
  await write("acme.json", JSON.stringify({ ...document, issuer: issuer.url, authority: issuer.authority }));
  await write("acme.secret", `${issuer.secret}\n`);
  const sayYes = (said: string): void => {
    const [, where, code] = /^Open (\S+)\n.* shows the code (\S+);/.exec(said) ?? [];
    if (where !== undefined && code !== undefined) void issuer.sayYes(where, code, "mia");
  };
  const specification = /^```sf\n(root extends Cell \{.*?)^```$/ms.exec(text)?.[1] ?? "";
  await write("root.json", JSON.stringify(await rootWith(specification, url, credential)));
  const commands = commandsIn(text);
  let application = "";
  assert.ok(commands.length >= 20, `${commands.length} commands were found`);
  for (const { line, words, by } of commands) {
    const isLogin =
      words[0] === "login" &&
      !words.includes("--key-file") &&
      !words.includes("--oidc") &&
      !words.includes("--password-file");
    const isTotp = words[0] === "totp" && words[1] !== "confirm";
    const asked =
      isLogin ||
      isTotp ||
      (words[0] === "user" && ["add", "password"].includes(words[1] ?? "") && !words.includes("--link"));
    const more = [
      ...(asked || words[0] === "password" || words[0] === "register" ? ["--password-file", file("password")] : []),
      ...(words[0] === "password" ? ["--new-password-file", file("next")] : []),
      ...(words[0] === "totp" && words[1] !== "on" ? ["--code-file", file("code")] : []),
    ];
    const given = words.map((word) =>
      word.startsWith("https://")
        ? url
        : /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(word)
          ? application
          : /\.(json|jsonl|key|password|secret|link)$/.test(word)
            ? file(word)
            : word,
    );
    const ask = (): Promise<string> =>
      run([...given, ...more], file(by ?? "operator.json"), sayYes).catch(({ message }: Error) =>
        assert.fail(`${line}\n${message}`),
      );
    // There are no hosts here: whose one is, is tried where there are (`core/controller/services/`, simulator).
    if (words[0] === "dedicate" || words[0] === "release") {
      await assert.rejects(run([...given, ...more], file("operator.json")), withoutHosts, line);
      continue;
    }
    // Neither is one for a pool: `pools.test.ts` carries these out.
    if (words[0] === "pool") continue;
    const right = printed.find(([begin]) => words.join(" ").startsWith(begin))?.[1];
    const isAwaited = words[1] === "list" || words[0] === "why";
    let stdout = await ask();
    // What a list counts is the root controller's, who may have yet to say it.
    for (let again = 0; again < mostLooks && isAwaited && right?.test(stdout) === false; again += 1) {
      await pause(200);
      stdout = await ask();
    }
    // As an app does; the code of now is spent by confirming it.
    if (line.includes("invitation add")) await write("invite.link", stdout.split("\n")[0] ?? "");
    if (line.includes("--email pam@")) application = stdout.split("\n")[1] ?? "";
    if (line.includes("totp on")) await write("code", shownByApp(stdout.split("\n")[0] ?? ""));
    if (line.includes("totp confirm")) await write("code", stdout.split("\n")[0] ?? "");
    if (right !== undefined) assert.match(stdout, right, line);
  }
}
