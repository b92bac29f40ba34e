import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ProcessConfiguration } from "../../runtime/installation.ts";

interface Known {
  readonly text: Buffer;
  readonly certificate: Pick<X509Certificate, "checkHost">;
}

/**
 * Names that this process' certificate is for, as it is now: the file is parsed once, and again when it has changed.
 * @param other another certificate beside it
 */
export function ownNames(
  { certificate: { certFile } }: ProcessConfiguration,
  other?: { readonly isFor: (name: string) => boolean },
  parse: (text: Buffer) => Known["certificate"] = (text) => new X509Certificate(text),
): (name: string) => boolean {
  let known: Known | null = null;
  return (name) => {
    try {
      const text = readFileSync(certFile);
      if (known === null || !known.text.equals(text)) known = { text, certificate: parse(text) };
      return known.certificate.checkHost(name) !== undefined || other?.isFor(name) === true;
    } catch {
      return false;
    }
  };
}
