import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readSealKey, seal, sealFile, unseal } from "../identity/own/seal.ts";
import { cloudStackSignature, isSignature, sigV4Signature } from "./signatures.ts";

let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), `cells-seal-${process.pid}-`));
});
after(() => rm(directory, { recursive: true }));

test("the key of the seal is made once, for its owner alone; a file that holds none is refused", async () => {
  const made = await readSealKey(directory);
  assert.equal(made.length, 32);
  assert.deepEqual(await readSealKey(directory), made);
  assert.equal((await stat(join(directory, sealFile))).mode & 0o077, 0);
  await writeFile(join(directory, sealFile), "abc\n");
  await assert.rejects(readSealKey(directory), /holds no key of 32 bytes .* put it back from a backup/);
  assert.equal(await readFile(join(directory, sealFile), "utf8"), "abc\n", "and is left as it is");
});

test("what is sealed is opened by that key, for that id, and unaltered; else by nobody", () => {
  const [key, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const sealed = seal(key, "CELLA", "secret");
  assert.equal(unseal(key, "CELLA", sealed), "secret");
  assert.ok(!Buffer.from(sealed, "base64url").includes("secret"));
  assert.notEqual(seal(key, "CELLA", "secret"), sealed, "each time another");
  assert.equal(unseal(other, "CELLA", sealed), null);
  assert.equal(unseal(key, "CELLB", sealed), null, "a store in which two were exchanged opens neither");
  const bytes = Buffer.from(sealed, "base64url");
  for (let at = 0; at < bytes.length; at += 1) {
    const altered = Buffer.from(bytes);
    altered[at] = (altered[at] ?? 0) ^ 1;
    assert.equal(unseal(key, "CELLA", altered.toString("base64url")), null);
  }
  for (const short of ["", "abc", sealed.slice(0, 20)]) assert.equal(unseal(key, "CELLA", short), null);
});

/** AWS's get-vanilla, and the example of CloudStack's documentation: `model/contract/signatures/` has them whole. */
const vectors = [
  {
    scheme: "sigv4",
    secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    stringToSign:
      "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/service/aws4_request\nbb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
    signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  },
  {
    scheme: "cloudstack",
    secret: "VDaACYb0LV9eNjTetIOElcVQkvJck_J_QljX_FcHRj87ZKiy0z0ty0ZsYBkoXkY9b7eq1EhwJaw7FF3akA3KBQ",
    stringToSign:
      "apikey=plgwjfzk4gys3momtvmjuvg-x-jlwlnfauj9gabbbf9edm-kaymmailqzzq1elzlyq_u38zcm0bewzgudp66mg&command=listusers&response=json",
    signature: "TTpdDq/7j/J58XCRHomKoQXEQds=",
  },
] as const;

test("published signatures are found right, any other wrong, and of an unknown key none is right", () => {
  for (const { secret, ...vector } of vectors) {
    const signed = { key: "K", ...vector };
    assert.ok(isSignature(secret, signed));
    assert.ok(!isSignature(`${secret}x`, signed));
    assert.ok(!isSignature(secret, { ...signed, stringToSign: `${signed.stringToSign}x` }));
    assert.ok(!isSignature(secret, { ...signed, signature: signed.signature.replace(/./, "0") }));
    for (const signature of ["", signed.signature.slice(1), `${signed.signature}0`])
      assert.ok(!isSignature(secret, { ...signed, signature }));
    const sign = vector.scheme === "sigv4" ? sigV4Signature : cloudStackSignature;
    assert.ok(!isSignature(null, { ...signed, signature: sign("", signed.stringToSign) }));
  }
});
