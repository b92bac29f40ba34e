import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { namesOf, type Owner, ownerText } from "../../../model/cell/tenants/dedication/dedication.ts";
import { whyNot } from "../../../model/contract/actions/actions.ts";
import type { HostJoin, JoinsAs } from "../../../model/contract/operator/host-join.ts";
import type { Context } from "../../context/context.ts";
import { printJson } from "../../context/context.ts";
import { writeSecret } from "../../secrets/secret-file.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";

/** `cells host`: machines that join an installation and leave it, and the tokens with which they do. */

/** What a machine's owner reads of a failure here: one sentence. */
export const failing = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw error instanceof CommandFailure
      ? error
      : new CommandFailure(exitCodes.refused, error instanceof Error ? error.message : String(error));
  }
};

export interface TokenArguments {
  readonly name: string;
  readonly address: string;
  readonly agent: boolean;
  readonly out: string | undefined;
  readonly cluster: string | undefined;
  /** With commas in between. */
  readonly tags: string | undefined;
  readonly flavor: string | undefined;
  /** Path of a domain or an account. */
  readonly owner: string | undefined;
}

/** Absent: nothing is asked. */
async function joinsAs(
  context: Context,
  { cluster, tags: written, flavor, owner: path }: TokenArguments,
): Promise<{ readonly as?: JoinsAs; readonly owner?: Owner }> {
  const tags = written?.split(",").map((tag) => tag.trim());
  if (tags?.includes("") === true)
    throw usage(`--tags ${JSON.stringify(written)} has an empty tag: write them as \`ssd,gpu\``);
  const owner = path === undefined ? undefined : await (await import("./dedicate.ts")).ownerAt(context.client(), path);
  const as: JoinsAs = {
    ...(cluster === undefined ? {} : { cluster }),
    ...(tags === undefined ? {} : { tags }),
    ...(flavor === undefined ? {} : { flavor }),
    ...(owner === undefined ? {} : namesOf(owner)),
  };
  return { ...(Object.keys(as).length === 0 ? {} : { as }), ...(owner === undefined ? {} : { owner }) };
}

/** Makes the tokens here, has their hashes enrolled, and prints all that the machine needs as one line. */
export const hostToken = async (context: Context, asked: TokenArguments): Promise<void> => {
  const { name, address, agent, out } = asked;
  const { newToken } = await import("../../../runtime/identity/own/keys.ts");
  const { isMachineName, writeJoinToken } = await import("../../../runtime/identity/join-token.ts");
  if (!isMachineName(name))
    throw usage(`\`${name}\` cannot name a machine: use lower-case letters, digits and \`-\`, at most 53`);
  const [host, storage] = [newToken(), agent ? newToken() : null];
  const { as, owner } = await joinsAs(context, asked);
  const body: HostJoin = {
    address,
    host: host.hash,
    ...(storage === null ? {} : { agent: storage.hash }),
    ...(as === undefined ? {} : { as }),
  };
  const { ends, replaces, authority, fingerprint, peers, as: written } = await context.client().admitHost(name, body);
  // It would join as a host of everybody's.
  if (as !== undefined && written === undefined)
    throw new CommandFailure(
      exitCodes.refused,
      `the root controller is of a version that does not read --cluster, --tags, --flavor and --owner, and has written nothing of ${name}: no token is given out. Upgrade it, or leave them out`,
    );
  const token = writeJoinToken({
    name,
    address,
    authority,
    fingerprint,
    peers,
    host: host.token,
    ...(storage === null ? {} : { agent: storage.token }),
    endsAtMs: Date.parse(ends),
  });
  const { terminal, json } = context;
  if (out !== undefined) writeSecret(out, `${token}\n`);
  if (json) {
    const more = {
      ...(written === undefined ? {} : { as: written }),
      ...(out === undefined ? { token } : { file: out }),
    };
    printJson(context, { name, address, ends, replaces, ...more });
    return;
  }
  for (const peer of replaces) terminal.warn(`${peer} is there already: whoever joins with this token takes its place`);
  if (written !== undefined) {
    const [whose, released] =
      owner === undefined ? ["", ""] : [`, dedicated to ${ownerText(owner)}`, `\`cells release ${name}\` and `];
    terminal.warn(
      `root/hosts/${name} stands in the root cell's model${whose}: ${released}\`cells delete root/hosts/${name}\` take it back.`,
    );
  }
  const storing = agent ? " --storage /var/lib/cells/storage" : "";
  if (out === undefined) terminal.print(token);
  else terminal.print(`${out} holds the token; carry it over to ${name}.`);
  terminal.warn(
    `On ${name} (${address}), as root, by ${ends}: \`cells host join${storing} < FILE\`, with this line in FILE. It works once, and is a secret until then.`,
  );
};

const readToken = async (file: string | undefined, context: Context): Promise<string> => {
  if (file !== undefined)
    return readFile(file, "utf8").catch((error: Error) => {
      throw usage(`the token's file cannot be read: ${error.message}`);
    });
  if (process.stdin.isTTY) context.terminal.warn("Paste the token, then press Enter and Ctrl-D:");
  return text(process.stdin);
};

export interface MachineArguments {
  readonly interface: string;
  readonly storage: string | undefined;
  readonly images: string | undefined;
  readonly timeoutMs: number;
}
/** Progress goes to standard error where standard output is for JSON. */
export const sayTo =
  ({ terminal, json }: Context): ((line: string) => void) =>
  (line) =>
    json ? terminal.warn(line) : terminal.print(line);

export const joinHost = async (
  context: Context,
  options: MachineArguments & { readonly tokenFile: string | undefined },
): Promise<void> => {
  const { readJoinToken } = await import("../../../runtime/identity/join-token.ts");
  const token = readJoinToken(await readToken(options.tokenFile, context));
  if (!token.ok) throw usage(token.error);
  const { joinMachine } = await import("../../../host/machine/join.ts");
  const { imagesFor } = await import("../../machine-images.ts");
  const say = sayTo(context);
  const { interface: device, storage = null, timeoutMs } = options;
  const images = storage === null ? "" : await failing(() => imagesFor(options.images, say));
  await failing(() => joinMachine(token.value, { interface: device, storage, images, say, timeoutMs }));
  const { name, address } = token.value;
  if (context.json) printJson(context, { name, address });
  else context.terminal.print(`${name} has joined; \`cells status\` shows it`);
};

export const leaveHost = async (context: Context, options: { force: boolean; purge: boolean }): Promise<void> => {
  const { leaveMachine } = await import("../../../host/machine/leave.ts");
  const name = await failing(() => leaveMachine({ ...options, say: sayTo(context) }));
  if (context.json) printJson(context, { left: name });
  else
    context.terminal.print(`this machine is no host any more; \`cells host remove ${name}\` lets the cloud forget it`);
};

/**
 * The operator's word that a machine's power is off. It is about the life of the machine that is known now: one that it
 * begins later is another. Refused for a machine that is being heard.
 */
export const hostDead = async (context: Context, name: string, powerIsOff: boolean): Promise<void> => {
  const client = context.client();
  const { generation, boot, against, ended } = await client.hostEnd(name);
  if (against !== null) throw new CommandFailure(exitCodes.refused, against);
  if (generation === null || boot === null) throw new CommandFailure(exitCodes.refused, `nothing is known of ${name}`);
  const started = new Date(boot).toISOString().slice(0, 19);
  if (!powerIsOff)
    throw usage(
      `${name}, which started at ${started}Z, is not heard. Every VM of it with x.restartOnFailure will be started on another ` +
        "host, with its volumes and addresses; if it runs on, its VMs run twice. Make sure that its power is off, and say so: " +
        `\`cells host dead ${name} --power-is-off\``,
    );
  const isNews = ended === null || ended < boot;
  const said = whyNot("dead", null, { host: name, administration: "enabled", presence: isNews ? "dead" : "off" });
  if (isNews) await client.endHost(name, { powerIsOff: true, generation, boot });
  if (context.json) printJson(context, { host: name, generation, boot, news: isNews });
  else if (said !== null) context.terminal.print(said.why);
  else
    context.terminal.print(
      `the VMs of ${name} have ended; those with x.restartOnFailure start elsewhere. When the machine comes back, it is a host as before`,
    );
};

/** Refuses while machines run there or volumes lie there, as far as the installation knows. */
export const removeHost = async (context: Context, name: string, force: boolean): Promise<void> => {
  const client = context.client();
  if (!force) {
    const { hosts, servers } = await client.status();
    const vms = hosts.find(({ host }) => host === name)?.vms ?? 0;
    const volumes = servers.find(({ server }) => server === name)?.volumes ?? 0;
    if (vms + volumes > 0)
      throw new CommandFailure(
        exitCodes.refused,
        `${vms} machines run on ${name} and ${volumes} volumes lie there: delete them first. With --force their cells lose them`,
      );
  }
  await client.removeHost(name);
  if (context.json) printJson(context, { removed: name });
  else context.terminal.print(`${name} is renewed no more: its certificates end within a day, and nobody looks for it`);
};
