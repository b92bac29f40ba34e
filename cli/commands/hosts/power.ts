import type { PowerControllerWord } from "../../../model/contract/ha.ts";
import { type Context, printJson } from "../../context/context.ts";
import { readSecret } from "../../secrets/read-secret.ts";
import { usage } from "../../terminal/failure.ts";

export interface PowerOptions {
  readonly ipmi?: string;
  readonly redfish?: string;
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
  terminal.print(`${registered.address} reads ${host} as on, with its UUID ${registered.uuid}; nothing was switched`);
};

const wordOf = (options: PowerOptions): Omit<PowerControllerWord, "password"> => {
  const { ipmi, redfish, user, cipherSuite } = options;
  const address = ipmi ?? redfish;
  if (address === undefined || (ipmi !== undefined && redfish !== undefined))
    throw usage("say one of --ipmi ADDRESS and --redfish ADDRESS, or --remove");
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
