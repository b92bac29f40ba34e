import { createPublicKey, type KeyObject, sign } from "node:crypto";

/** DER (X.690): tag, length of the contents, contents. */
const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const contents = Buffer.concat(parts);
  const { length } = contents;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), contents]);
};
const sequence = 0x30;
const set = 0x31;
const identifier = (hexadecimal: string): Buffer => der(0x06, Buffer.from(hexadecimal, "hex"));
/** ecdsa-with-SHA256, 1.2.840.10045.4.3.2 (RFC 5758, section 3.2). */
const ecdsaWithSha256 = der(sequence, identifier("2a8648ce3d040302"));
/** Common name, 2.5.4.3: at most 64 characters (RFC 5280, A.1). */
const commonName = identifier("550403");
const longestCommonName = 64;
/** extensionRequest, 1.2.840.113549.1.9.14 (RFC 2985, 5.4.2), and subjectAltName, 2.5.29.17. */
const [extensionRequest, alternativeName] = [identifier("2a864886f70d01090e"), identifier("551d11")];
const dnsName = 0x82;

/**
 * A request for a certificate over this key (EC, P-256) for these names, PEM (RFC 2986, section 4). Without names the token or the old
 * certificate says who it is for.
 * @param names of hosts, ASCII
 */
export function requestFor(privateKey: KeyObject, names: readonly string[] = []): string {
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const info = der(sequence, der(0x02, Buffer.of(0)), subjectOf(names), spki, attributesOf(names));
  const signature = der(0x03, Buffer.of(0), sign("sha256", info, privateKey));
  const request = der(sequence, info, ecdsaWithSha256, signature);
  const lines = request.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE REQUEST-----", ...lines, "-----END CERTIFICATE REQUEST-----", ""].join("\n");
}

function subjectOf([first]: readonly string[]): Buffer {
  if (first === undefined || first.length > longestCommonName) return der(sequence);
  return der(sequence, der(set, der(sequence, commonName, der(0x0c, Buffer.from(first)))));
}
function attributesOf(names: readonly string[]): Buffer {
  if (names.length === 0) return der(0xa0);
  const all = der(sequence, ...names.map((name) => der(dnsName, Buffer.from(name, "ascii"))));
  const extensions = der(sequence, der(sequence, alternativeName, der(0x04, all)));
  return der(0xa0, der(sequence, extensionRequest, der(set, extensions)));
}
