import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../../../model/specification/specification.ts";
import { addElement } from "./add-element.ts";
import { nextName, ruleBetween } from "./network.ts";

const rule = ruleBetween({ from: "shop/web1", to: "shop/app1", protocol: "tcp", port: 8080 });
const element = { name: "web1ToApp1", ...rule };
const added = (text: string, main = "shop.sf") => {
  const result = addElement(text, main, "shop", element);
  return result.ok ? result.value : assert.fail(result.error);
};
const elementsOf = (text: string, main = "shop.sf") => {
  const read = readSpecification({ main, files: { [main]: text } });
  assert.ok(read.ok, JSON.stringify(read));
  return read.value;
};

test("an element more, and everything else as it was written", () => {
  const vm = (name: string) => `${name} extends VM { x.memory 64; }`;
  const nets = `net extends Subnet { x.size 16; }`;
  const card = (name: string) =>
    `${name}Card extends VirtualInterface { x.vm "<ref:../${name}>"; x.subnet "<ref:../net>"; }`;
  const body = [vm("web1"), vm("app1"), nets, card("web1"), card("app1")];
  for (const text of [
    `// } of a comment\nshop extends Cell {\n  ${body.join("\n  ")} // the last\n}\n// behind it\n`,
    `shop extends Cell { ${body.join(" ")} }`,
    `/* shop extends Cell { } */\n\nshop extends Cell {\n  ${body.join("\n  ")}\n  note "a } and \\" {";\n  more ##\n} {\n#;\n  }\n`,
  ]) {
    const after = added(text);
    const lines = after.split("\n").filter((line) => !line.includes("web1ToApp1"));
    assert.equal(lines.join("").replaceAll(/\s+/g, ""), text.replaceAll(/\s+/g, ""), "nothing else is another");
    assert.match(JSON.stringify(elementsOf(after)), /web1ToApp1/);
    assert.doesNotMatch(JSON.stringify(elementsOf(text)), /web1ToApp1/);
  }
});

test("in JSON, too", () => {
  const text = '{"shop":{"x.type":"Cell"}}';
  const after = JSON.parse(added(text, "shop.json"));
  assert.equal(after.shop.web1ToApp1["x.port2"], 8080);
  assert.equal(addElement('{"bank":{}}', "shop.json", "shop", element).ok, false);
  assert.equal(addElement("{", "shop.json", "shop", element).ok, false);
});

test("where it cannot be written the text is left, and a sentence says why", () => {
  for (const [text, main] of [
    ["", "shop.sf"],
    ["shop extends Cell {", "shop.sf"],
    ["outer extends Cell { shop extends Group { } }", "shop.sf"],
    ["myshop extends Cell { }", "shop.sf"],
    ["shop: 1", "shop.yaml"],
  ] as const)
    assert.equal(addElement(text, main, "shop", element).ok, false, text);
});

test("a rule says from where to where, and has a name that nothing has", () => {
  assert.deepEqual(rule, {
    type: "NetworkRule",
    attributes: {
      "x.address1": "<ref:/shop/web1>",
      "x.address2": "<ref:/shop/app1>",
      "x.protocol": "tcp",
      "x.port2": 8080,
    },
  });
  assert.equal("x.port2" in ruleBetween({ from: "a/b", to: "a/c", protocol: "icmp", port: null }).attributes, false);
  const ends = { from: "shop/front/web1", to: "shop/app1", protocol: "tcp", port: 80 } as const;
  assert.equal(nextName(ends, "nothing"), "frontWeb1ToApp1At80");
  assert.equal(nextName(ends, "frontWeb1ToApp1At80 and frontWeb1ToApp1At80b"), "frontWeb1ToApp1At80c");
});
