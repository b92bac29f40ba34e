import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { escaped, readXml, type XmlElement, xmlLimits } from "./read-xml.ts";

const read = (text: string): XmlElement => {
  const found = readXml(text);
  assert.ok(found.ok, found.ok ? "" : found.error.message);
  return found.value;
};
const refused = (text: string): string => {
  const found = readXml(text);
  return found.ok ? "" : `${found.error.line}:${found.error.column}: ${found.error.message}`;
};

test("elements, attributes, text, comments, CDATA, entities", () => {
  const root = read(
    `\ufeff<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<!-- a --><a x='1' y = "2&#x41;&quot;">\r\n <b/>t&lt;<![CDATA[<&]]>\n<b z="ü\t1">u</b ></a>\n<?end?>\n`,
  );
  assert.deepEqual(
    [...root.attributes],
    [
      ["x", "1"],
      ["y", '2A"'],
    ],
  );
  assert.equal(root.text, "t<<&");
  assert.deepEqual(
    root.children.map(({ name, text, line }) => [name, text, line]),
    [
      ["b", "", 3],
      ["b", "u", 4],
    ],
  );
  assert.equal(root.children[1]?.attributes.get("z"), "ü 1");
});

const wrong: readonly (readonly [string, RegExp])[] = [
  ["", /^1:1: there is no element/],
  ["  \n", /no element/],
  ["text", /^1:1: text outside/],
  ["<a>", /^1:1: the element a is never closed/],
  ["<a>\n<b>\n</a>", /^3:1: a is closed here, and b is open/],
  ["</a>", /nothing is open/],
  ["<a/><b/>", /^1:5: a second root element/],
  ["<a/>x", /text outside/],
  ["<a", /breaks off within the element a/],
  ["<a b", /attribute b has no value/],
  ["<a b=", /not in quotes/],
  ["<a b=c/>", /not in quotes/],
  ['<a b="c/>', /not in quotes/],
  ['<a b="<"/>', /`<` stands in an attribute/],
  ['<a b="1" b="2"/>', /attribute b is there twice/],
  ['<a b="1"c="2"/>', /written wrongly/],
  ["<a/ >", /an attribute has no name|written wrongly/],
  ["<1/>", /an element has no name/],
  ["< a/>", /an element has no name/],
  ["<a>&nbsp;</a>", /an entity that XML itself does not have/],
  ["<a>&lol</a>", /begins no entity/],
  ["<a>fish & chips</a>", /begins no entity/],
  ["<a>&#0;</a>", /is no character/],
  ["<a>&#xd800;</a>", /is no character/],
  ["<a>&#x110000;</a>", /is no character/],
  ["<a>\u0001</a>", /control character/],
  ["<a>\ud800</a>", /control character, or none/],
  ["<a>]]></a>", /stands in text/],
  ["<a><!-- -- --></a>", /stands in a comment/],
  ["<a><!-- </a>", /comment has no end/],
  ["<a><![CDATA[</a>", /CDATA section has no end/],
  ["<![CDATA[x]]><a/>", /outside of the root/],
  ["<a><?x </a>", /processing instruction has no end/],
  ['<a/><?xml version="1.0"?>', /not at the beginning/],
  ['<?xml version="1.0" encoding="ISO-8859-1"?><a/>', /not UTF-8/],
  ["<?xml encoding='UTF-8'?><a/>", /no version/],
  ['<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', /^1:1: a document type/],
  ['<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', /a document type/],
  ["<a><!ELEMENT b ANY></a>", /a document type or a declaration/],
];
test("what is wrong is told with its place", () => {
  for (const [text, words] of wrong) assert.match(refused(text), words, text);
});

test("what is written is read again, whatever it is", () => {
  const text = fc
    .string({ unit: "grapheme", maxLength: 30 })
    .map((each) => each.replace(/\p{Cc}|\p{Cs}|[\ufffe\uffff]/gu, ""));
  fc.assert(
    fc.property(text, (value) => {
      const root = read(`<a b="${escaped(value)}">x${escaped(value)}x</a>`);
      assert.equal(root.attributes.get("b"), value);
      assert.equal(root.text, `x${value}x`);
    }),
  );
});

test("a document that is cut anywhere, or has a byte changed, is refused or read, and nothing is thrown", () => {
  const whole = '<?xml version="1.0"?><a b="1"><c>&amp;x</c><!-- y --><d/></a>';
  for (let end = 0; end < whole.length; end += 1)
    assert.notEqual(refused(whole.slice(0, end)), "", whole.slice(0, end));
  fc.assert(
    fc.property(
      fc.nat(whole.length - 1),
      fc.constantFrom("<", ">", "&", '"', "/", "!", "?", "-", "]", "\u0000", ";", " "),
      (at, sign) => {
        readXml(whole.slice(0, at) + sign + whole.slice(at + 1));
      },
    ),
    { numRuns: 2000 },
  );
});

/** Run in a process of its own with little memory: whoever needs more ends it. */
test("what is too large or too deep is refused in under a second and 100 MiB", () => {
  const program = `
    import { readXml } from ${JSON.stringify(new URL("./read-xml.ts", import.meta.url).href)};
    const texts = {
      deep: () => "<a>".repeat(10_000),
      large: () => "<a>" + "x".repeat(10 * 1024 * 1024) + "</a>",
      many: () => "<a>" + "<b/>".repeat(2_000_000) + "</a>",
      entities: () => "<a>" + "&amp;".repeat(1_600_000),
      comments: () => "<a>" + "<!---->".repeat(1_000_000),
      attributes: () => "<a " + Array.from({ length: 500_000 }, (_, at) => "b" + at + '="1"').join(" ") + "/>",
      members: () => "<a>" + "<instance><privateIp>10.0.0.1</privateIp></instance>".repeat(99_000) + "</a>",
    };
    for (const [name, made] of Object.entries(texts)) {
      const text = made();
      const before = process.cpuUsage();
      const found = readXml(text);
      const { user } = process.cpuUsage(before);
      console.log(JSON.stringify({ name, ok: found.ok, ms: user / 1000, message: found.ok ? "" : found.error.message }));
    }`;
  const done = spawnSync(process.execPath, ["--max-old-space-size=100", "--input-type=module", "-e", program], {
    encoding: "utf8",
  });
  assert.equal(done.status, 0, done.stderr.slice(-2000));
  const told = done.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { name: string; ok: boolean; ms: number; message: string });
  assert.deepEqual(
    told.filter(({ ok }) => ok).map(({ name }) => name),
    ["members"],
  );
  for (const { name, ms, ok, message } of told)
    assert.ok(ms < 1000 && (ok || message.length > 10), `${name}: ${ms} ms`);
  assert.ok(xmlLimits.length < 10 * 1024 * 1024);
});
