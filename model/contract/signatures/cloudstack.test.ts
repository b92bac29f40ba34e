import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { cloudStackString, type Parameters, readCloudStack } from "./cloudstack.ts";
import { outOfTime } from "./window.ts";

/** Of CloudStack's documentation, "Programmer Guide", How to sign an API call with Python. */
const documented = {
  secret: "VDaACYb0LV9eNjTetIOElcVQkvJck_J_QljX_FcHRj87ZKiy0z0ty0ZsYBkoXkY9b7eq1EhwJaw7FF3akA3KBQ",
  key: "plgWJfZK4gyS3mOMTVmjUVg-X-jlWlnfaUJ9GAbBbf9EdM-kAYMmAiLqzzq1ElZLYq_u38zCm0bewzGUdP66mg",
  signature: "TTpdDq/7j/J58XCRHomKoQXEQds=",
} as const;
const sign = (text: string): string => createHmac("sha1", documented.secret).update(text).digest("base64");
const listUsers: Parameters = [
  ["command", "listUsers"],
  ["response", "json"],
  ["apikey", documented.key],
];

test("the example of CloudStack's documentation", () => {
  assert.equal(sign(cloudStackString(listUsers)), documented.signature);
  const read = readCloudStack([...listUsers, ["signature", documented.signature]]);
  assert.deepEqual(read?.ok === true && [read.value.key, sign(read.value.stringToSign)], [
    documented.key,
    documented.signature,
  ]);
  assert.equal(readCloudStack(listUsers), null);
});

test("the command string of its developer's guide: sorted by name, in small letters", () => {
  const deploy: Parameters = [
    ["command", "deployVirtualMachine"],
    ["serviceOfferingId", "1"],
    ["diskOfferingId", "1"],
    ["templateId", "2"],
    ["zoneId", "4"],
    ["apiKey", "miVr6X7u6bN_sdahOBpjNejPgEsT35eXq-jB8CG20YI3yaxXcgpyuaIRmFI_EJTVwZ0nUkkJbPmY3y2bciKwFQ"],
  ];
  assert.equal(
    cloudStackString(deploy),
    "apikey=mivr6x7u6bn_sdahobpjnejpgest35exq-jb8cg20yi3yaxxcgpyuairmfi_ejtvwz0nukkjbpmy3y2bcikwfq&command=deployvirtualmachine&diskofferingid=1&serviceofferingid=1&templateid=2&zoneid=4",
  );
  assert.equal(cloudStackString([["displayName", "a b~c*d+é"]]), "displayname=a%20b%7ec*d%2b%c3%a9");
});

test("a parameter more, less, twice, or under a name that hides others is refused or has another signature", () => {
  const signed: Parameters = [...listUsers, ["signature", documented.signature]];
  const isRight = (parameters: Parameters): boolean => {
    const read = readCloudStack(parameters);
    return read?.ok === true && sign(read.value.stringToSign) === read.value.signature;
  };
  assert.ok(isRight(signed));
  assert.ok(!isRight([...signed, ["page", "2"]]));
  assert.ok(!isRight(signed.slice(1)));
  for (const [name, value] of [
    ["Command", "deleteUser"],
    ["signature", "other"],
  ] as const)
    assert.deepEqual(readCloudStack([...signed, [name, value]]), {
      ok: false,
      error: `the parameter ${name} is there twice`,
    });
  const hidden = readCloudStack([["command=listusers&x", "1"], ...signed.slice(2)]);
  assert.match(hidden?.ok === false ? hidden.error : "", /parameter's name/);
});

test("a signature counts for a while, and one that would count for ever is none", () => {
  const nowMs = Date.parse("2026-01-02T03:04:05Z");
  const late = (...more: Parameters): string =>
    outOfTime({ scheme: "cloudstack", stringToSign: cloudStackString([...listUsers, ...more]) }, nowMs) ?? "";
  const until = (text: string): string => late(["signatureVersion", "3"], ["expires", text]);
  assert.equal(until("2026-01-02T03:14:05+0000"), "");
  assert.equal(until("2026-01-02T05:05:05+0200"), "", "in whatever zone");
  assert.equal(until("2026-01-02T08:44:05+0530"), "", "of half an hour, too");
  assert.equal(until("2026-01-01T23:44:05-0330"), "", "to the west as well");
  assert.match(until("2026-01-02T03:04:04+0000"), /expired 1 s ago/);
  assert.match(until("2026-01-02T04:04:05+0000"), /more than 15 minutes/);
  assert.match(until("%zz&expires"), /signatureVersion=3/);
  assert.match(
    outOfTime({ scheme: "cloudstack", stringToSign: "expires=%zz&signatureversion=3" }, nowMs) ?? "",
    /signatureVersion=3/,
    "whatever is said to be signed is looked at, and nothing breaks",
  );
  assert.match(until("tomorrow"), /signatureVersion=3 and expires/);
  assert.match(late(), /counts for ever/);
  assert.match(late(["expires", "2026-01-02T03:14:05+0000"]), /counts for ever/);
});

test("a signature of AWS counts for five minutes before and after", () => {
  const signedMs = Date.parse("2015-08-30T12:36:00Z");
  const stringToSign = "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/service/aws4_request\nabc";
  const late = (ms: number): string => outOfTime({ scheme: "sigv4", stringToSign }, signedMs + ms) ?? "";
  for (const ms of [-300_000, 0, 300_000]) assert.equal(late(ms), "");
  assert.match(late(301_000), /signed 5 min ago/);
  assert.match(late(-301_000), /5 min in the future/);
  assert.match(outOfTime({ scheme: "sigv4", stringToSign: "x" }, signedMs) ?? "", /does not say when/);
});
