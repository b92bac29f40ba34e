import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import { type Context, printJson } from "../context/context.ts";
import { readSecret } from "../secrets/read-secret.ts";
import { table } from "../terminal/terminal.ts";

/** `cells zone`: names for the outside, to whom they are handed, and by which key. */
export const showZone = async (context: Context): Promise<void> => {
  const report = await context.client().zone();
  if (context.json) return printJson(context, report);
  const { print, paint } = context.terminal;
  const { zones, serial, secondaries, key, keys } = report;
  if (serial === null) print("no zone is declared: the root cell has no `x.zone`");
  else {
    const [declared, ...reverse] = zones;
    print(`${printable(declared ?? "")}, number ${serial}, is handed to ${secondaries.join(", ")}`);
    if (reverse.length > 0) print(`with it ${reverse.join(", ")}`);
    const found = keys.find(({ name }) => name === key);
    if (key === null) print("transfers are not signed: addresses alone count");
    else if (found === undefined || found.lost === true)
      print(
        paint("red", `nobody can fetch it: the secret of "${key}" is not here; \`cells zone key ${key}\` takes it`),
      );
    else print(`transfers are signed by "${key}"`);
  }
  const rows = keys.map(({ name, lost }) => [name, lost === true ? "lost" : name === key ? "in use" : "not in use"]);
  if (rows.length > 0) for (const line of table([["key", ""].map((head) => paint("grey", head)), ...rows])) print(line);
};

export interface ZoneKeyOptions {
  readonly secretFile?: string;
  readonly remove?: boolean;
}
/** `cells zone key NAME`: gives or forgets a secret. It is read from a file or standard input, and never shown. */
export const zoneKey = async (context: Context, name: string, options: ZoneKeyOptions): Promise<void> => {
  const client = context.client();
  const { print } = context.terminal;
  if (options.remove === true) {
    const forgotten = await client.forgetZoneKey(name);
    if (context.json) return printJson(context, forgotten);
    const nobody = forgotten.declared ? "; the root cell names it, so nobody can fetch the zone" : "";
    return print(forgotten.wasThere ? `"${name}" is forgotten${nobody}` : `there was no "${name}"`);
  }
  const secret = await readSecret(options.secretFile, "--secret-file");
  const given = await client.giveZoneKey(name, { secret });
  if (context.json) return printJson(context, given);
  const then = given.declared
    ? "transfers are signed by it"
    : `it counts once the root cell has \`x.zone.key "${name}"\``;
  print(`the secret of "${name}" is ${given.wasThere ? "another one" : "sealed"}; ${then}`);
};
