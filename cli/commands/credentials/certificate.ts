import { readFile, writeFile } from "node:fs/promises";
import type { PageCertificate } from "../../../model/contract/operator/page-certificate.ts";
import { printable, printableLines } from "../../../model/diagnostics/render-diagnostic.ts";
import { type Context, printJson } from "../../context/context.ts";
import { usage } from "../../terminal/failure.ts";

/** `cells gateway`: the certificate by which browsers know the page. */

/** `cells gateway request NAMES`: what an authority is to sign. The key stays at the gateway. */
export const requestCertificate = async (
  context: Context,
  names: readonly string[],
  { out }: { readonly out?: string },
): Promise<void> => {
  const answer = await context.client().ask("requestPageCertificate", {
    parameters: {},
    body: { names: names.map((name) => name.toLowerCase()) },
  });
  if (out !== undefined) await writeFile(out, answer.request);
  if (context.json) return printJson(context, out === undefined ? answer : { names: answer.names, file: out });
  if (out === undefined) return context.terminal.print(printableLines(answer.request.trimEnd()));
  context.terminal.print(
    `${out} is for ${printable(answer.names.join(", "))}: once your authority has signed it, \`cells gateway certificate FILE\` puts the answer in force`,
  );
};

/** `cells gateway certificate [FILE]`: puts an answer in force, or says what is. */
export const gatewayCertificate = async (
  context: Context,
  file: string | undefined,
  { remove }: { readonly remove?: boolean },
): Promise<void> => {
  if (file !== undefined && remove === true)
    throw usage("either a file with a certificate to put in force, or --remove: not both");
  const client = context.client();
  const answer =
    remove === true
      ? await client.ask("forgetPageCertificate", { parameters: {} })
      : file === undefined
        ? await client.ask("readPageCertificate", { parameters: {} })
        : await client.ask("setPageCertificate", { parameters: {}, body: { chain: await chainIn(file) } });
  if (context.json) return printJson(context, answer);
  for (const line of linesOf(answer)) context.terminal.print(printable(line));
};

async function chainIn(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw usage(`${file} cannot be read: ${(error as Error).message}`);
  }
}

function linesOf({ certificate, asked, fault }: PageCertificate): readonly string[] {
  const pending =
    asked === null ? [] : [`asked for ${asked.join(", ")}: no answer was put in yet (cells gateway certificate FILE)`];
  if (certificate === null)
    return [
      fault ??
        "browsers are shown the installation's own certificate, which they do not know (cells gateway request NAME)",
      ...pending,
    ];
  const { names, issuer, until, chain } = certificate;
  return [
    `browsers that ask for ${names.join(", ")} are shown a certificate of ${issuer} until ${until}, ${chain === 1 ? "which nobody else vouches for" : `in a chain of ${chain}`}`,
    ...pending,
  ];
}
