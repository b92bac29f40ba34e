import type { PowerControllerWord } from "../../../model/contract/operator/ha.ts";
import { type Context, printJson } from "../../context/context.ts";
import { readSecret } from "../../secrets/read-secret.ts";
import { usage } from "../../terminal/failure.ts";

export interface PowerOptions {
  readonly ipmi?: string;
  readonly redfish?: string;
  readonly agent?: string;
  readonly address?: string;
  readonly plug?: string;
  readonly option?: readonly string[];
  readonly user?: string;
  readonly passwordFile?: string;
  readonly fingerprint?: string;
  readonly cipherSuite?: string;
  readonly remove?: boolean;
}

/** `cells host power`: registers what switches a machine's power, once another machine could read it there. */
export const hostPower = async (context: Context, host: string, options: PowerOptions): Promise<void> => {
  const { terminal, json } = context;
  const client = context.client();
  if (options.remove === true) {
    const removed = await client.forgetPower(host);
    if (json) return printJson(context, removed);
    return terminal.print(removed.wasThere ? `nobody switches the power of ${host} any more` : `nobody did`);
  }
  const word = wordOf(options);
  const password = await readSecret(options.passwordFile, "--password-file");
  const registered = await client.registerPower(host, { ...word, password });
  if (json) return printJson(context, registered);
  if (word.kind === "agent") {
    const what = `${word.agent} at ${registered.address}${word.plug === undefined ? "" : `, plug ${word.plug},`}`;
    return terminal.print(
      `${what} reads on, twice, while ${host} is up; nothing was switched. That it is the power of ${host}, and all of it, nobody could check: it counts by your word`,
    );
  }
  terminal.print(`${registered.address} reads ${host} as on, with its UUID ${registered.uuid}; nothing was switched`);
};

const wordOf = (options: PowerOptions): Omit<PowerControllerWord, "password"> => {
  const { ipmi, redfish, agent, user, cipherSuite } = options;
  if ([ipmi, redfish, agent].filter((each) => each !== undefined).length !== 1)
    throw usage("say one of --ipmi ADDRESS, --redfish ADDRESS and --agent PROGRAM, or --remove");
  if (agent !== undefined) return wordOfAgent(agent, options);
  for (const name of ["address", "plug", "option"] as const)
    if (options[name] !== undefined) throw usage(`--${name} is said of an --agent alone`);
  const address = ipmi ?? redfish ?? "";
  if (user === undefined) throw usage("say who may switch it: --user NAME");
  if (ipmi !== undefined) {
    if (cipherSuite !== undefined && cipherSuite !== "3" && cipherSuite !== "17")
      throw usage(`--cipher-suite is 17 or 3, and not ${cipherSuite}`);
    return { kind: "ipmi", address, user, ...(cipherSuite === "3" ? { suite: 3 as const } : {}) };
  }
  const fingerprint = (options.fingerprint ?? "").replaceAll(":", "").toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(fingerprint))
    throw usage(
      `--fingerprint is the SHA-256 of the controller's certificate, 64 hexadecimal digits: openssl s_client -connect ${address} </dev/null | openssl x509 -noout -fingerprint -sha256`,
    );
  return { kind: "redfish", address, user, fingerprint };
};

const wordOfAgent = (agent: string, options: PowerOptions): Omit<PowerControllerWord, "password"> => {
  const { address, plug, user, option = [], fingerprint, cipherSuite } = options;
  if (address === undefined) throw usage("say where its device is: --address ADDRESS");
  if (user === undefined) throw usage("say who may switch it: --user NAME");
  if (fingerprint !== undefined || cipherSuite !== undefined)
    throw usage("--fingerprint and --cipher-suite are not said of an --agent: see its --option");
  const said = option.map((each) => /^([a-z0-9_]+)=(.+)$/.exec(each)?.slice(1) ?? each);
  const wrong = said.find((each) => typeof each === "string");
  if (wrong !== undefined) throw usage(`--option is NAME=VALUE, and not ${String(wrong)}`);
  return {
    kind: "agent",
    agent,
    address,
    user,
    ...(plug === undefined ? {} : { plug }),
    ...(said.length === 0 ? {} : { options: Object.fromEntries(said as string[][]) as Record<string, string> }),
  };
};
