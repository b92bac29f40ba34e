import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { unpackDebian } from "../../image/debian-packages.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { killed } from "../measure.ts";
import { patienceMs, serve, untilAnswers } from "./served-by-uwsgi.ts";

/*
 * Debian's Keystone, as its packages have it: Fernet tokens, SQLite, one worker of uWSGI, on loopback. It lies in a directory of its own with the
 * Debian that it needs, whose programs are started in it alone: nothing is installed on the machine, and no service of the package ever starts.
 *
 * The package `keystone` itself is left out: its scripts ask for a database and begin a service, and all that it adds is their configuration.
 * Each request makes a connection of its own, as a client of it does.
 */
const run = promisify(execFile);
const packages = ["python3-keystone", "uwsgi-core", "uwsgi-plugin-python3"];
const password = "a password of the bench";

const configuration = `[DEFAULT]
log_file = /var/lib/keystone/keystone.log
[database]
connection = sqlite:////var/lib/keystone/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = /etc/keystone/fernet-keys
[fernet_receipts]
key_repository = /etc/keystone/fernet-keys
`;

export interface Keystone {
  readonly version: string;
  /** A token for a password; gives it. */
  tokenForPassword(): Promise<string>;
  /** A token for a token, as for another project. */
  tokenForToken(token: string): Promise<void>;
  validate(token: string): Promise<void>;
}

/**
 * Some minutes: packages that take 530 MB are fetched and unpacked.
 *
 * @param directory that is not there yet; whoever calls removes it
 * @param ends gets what ends it
 */
export async function startKeystone(directory: string, ends: (() => Promise<void>)[]): Promise<Keystone> {
  await unpackDebian(directory, packages);
  const within = (command: readonly string[]) => run("chroot", [directory, ...command], { maxBuffer: 2 ** 24 });
  const { stdout } = await within(["dpkg-query", "-W", "python3-keystone"]);
  const port = await freePort();
  for (const each of ["etc/keystone", "var/lib/keystone"]) await mkdir(join(directory, each), { recursive: true });
  await writeFile(join(directory, "etc/keystone/keystone.conf"), configuration, { mode: 0o600 });
  await within(["keystone-manage", "db_sync"]);
  await within(["keystone-manage", "fernet_setup", "--keystone-user", "root", "--keystone-group", "root"]);
  const url = `http://127.0.0.1:${port}/v3/`;
  const urls = ["admin", "public", "internal"].flatMap((kind) => [`--bootstrap-${kind}-url`, url]);
  await within(["keystone-manage", "bootstrap", "--bootstrap-password", password, ...urls]);
  const child = serve(directory, "/usr/bin/keystone-wsgi-public", port);
  ends.push(() => killed(child));
  const asked = asker(port);
  await untilAnswers("Keystone", child, () => asked("GET", null), 401);
  return {
    version: stdout.trim().split("\t")[1] ?? "",
    tokenForPassword: async () => {
      const user = { name: "admin", domain: { id: "default" }, password };
      return tokenOf(await asked("POST", { methods: ["password"], password: { user } }));
    },
    tokenForToken: async (token) => {
      tokenOf(await asked("POST", { methods: ["token"], token: { id: token } }));
    },
    validate: async (token) => {
      const { status } = await asked("GET", null, { "x-auth-token": token, "x-subject-token": token });
      if (status !== 200) throw new Error(`Keystone answered ${status} of a token that it had issued`);
    },
  };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}
type Ask = (method: "GET" | "POST", identity: object | null, headers?: Record<string, string>) => Promise<Answer>;

const asker = (port: number): Ask => {
  const agent = new Agent({ keepAlive: false });
  return (method, identity, headers = {}) =>
    new Promise((resolve, reject) => {
      const to = { agent, host: "127.0.0.1", port, path: "/v3/auth/tokens", method, timeout: patienceMs };
      const asked = request({ ...to, headers: { "content-type": "application/json", ...headers } }, (answer) => {
        answer.resume();
        answer.once("error", reject);
        answer.once("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers }));
      });
      asked.once("error", reject);
      asked.once("timeout", () => asked.destroy(new Error("Keystone does not answer")));
      const scope = { project: { name: "admin", domain: { id: "default" } } };
      asked.end(identity === null ? undefined : JSON.stringify({ auth: { identity, scope } }));
    });
};
function tokenOf({ status, headers }: Answer): string {
  const token = headers["x-subject-token"];
  if (status !== 201 || typeof token !== "string") throw new Error(`Keystone issued no token: ${status}`);
  return token;
}
