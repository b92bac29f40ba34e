import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleOf } from "./example-value.ts";
import { commonAttributes, elementSchemas } from "./schema.ts";
import { checkDocument, readSpecification } from "./specification.ts";

/** What hints say: names, units and places, so that whoever follows one is done. */
const told = (text: string): readonly string[] => {
  const read = readSpecification({ main: "a.sf", files: { "a.sf": text } });
  return read.ok ? [] : read.error.map(({ code, message, hint }) => `${code}: ${message}. ${hint ?? ""}`);
};
const cell = (inside: string): string => `shop extends Cell { ${inside} }`;
const sound = (text: string): void => assert.deepEqual(told(text), []);

test("TBD: which attribute of which template, and where it is to be given", () => {
  const tier = "Tier extends { port TBD; vm extends VM { x.memory size; size TBD; } }\n";
  assert.deepEqual(told(`${tier}${cell("web extends Tier;")}`), [
    "link/tbd: `port` of the template `Tier` is `TBD`, and `shop/web` gives it no value. " +
      "Give it where the template is used: write `port …;` in `web extends Tier { … }`.",
    "link/tbd: `size` in `vm` of the template `Tier` is `TBD`, and `shop/web` gives it no value. " +
      "Give it where the template is used: write `vm:size …;` in `web extends Tier { … }`.",
  ]);
  sound(`${tier}${cell("web extends Tier { port 80; vm:size 128; }")}`);
  const pair = `${tier}Pair extends { left extends Tier { port 1; } }\n`;
  assert.match(told(`${pair}${cell("p extends Pair;")}`).join(), /`shop\/p\/left`.*`vm:size …;` in `left extends Tier/);
  assert.deepEqual(told(cell("a TBD;")), [
    "link/tbd: `a` is `TBD`: it has no value. Write its value instead of `TBD`.",
  ]);
  assert.match(told(cell("a [1, (2 + TBD)];")).join(), /syntax|`a` is `TBD`/);
  assert.match(told(`Two extends { b TBD; }\n${cell("t extends { a 1; }, Two;")}`).join(), /`b` of the template `Two`/);
});

test("a nested component that is written again is replaced: what the hint says works", () => {
  const tier = "Tier extends { vm extends VM { x.memory 128; } }\n";
  const hint = /is replaced, not merged: what `Tier` gives `vm` is gone\..*`vm extends Tier:vm \{ x\.cpus 2; \}`/;
  const [untyped = "", required = ""] = told(
    `${tier}${cell("a extends Tier { vm extends { x.cpus 2; } } b extends Tier { vm extends VM { x.cpus 2; } }")}`,
  );
  assert.match(untyped, /^schema\/no-type: /);
  assert.match(untyped, hint);
  assert.match(required, /^schema\/required: /);
  assert.match(required, hint);
  sound(`${tier}${cell("web extends Tier { vm extends Tier:vm { x.cpus 2; } }")}`);
  assert.match(told(cell("vm extends VM { x.cpus 2; }")).join(), /Main memory in MiB, as in `x\.memory 1024;`\.$/);
  const other = `Tier extends { vm extends VM { x.cpus 1; } }\n${cell("a extends Tier { vm extends VM { x.cpus 2; } }")}`;
  assert.doesNotMatch(told(other).join(), /replaced/);
});

test("what is missing is shown with unit and example", () => {
  const volume = told(cell('v extends Volume { x.import "tiny"; }')).join();
  assert.match(volume, /Size of the volume in MiB, as in `x\.size 1024;`\. .*image `tiny`: `cells image list`/);
  assert.doesNotMatch(told(cell("v extends Volume;")).join(), /image/);
  assert.match(
    told(cell("c extends VolumeConnection;")).join(),
    /has no `x\.vm` and no `x\.volume`, .* as in `x\.volume "<ref:\.\.\/data>";`\./,
  );
});

test("examples are values that their attributes take", () => {
  for (const [type, schema] of Object.entries(elementSchemas))
    for (const [name, attribute] of Object.entries({ ...schema, ...commonAttributes })) {
      const { kind } = attribute;
      if (["data", "text"].includes(kind.kind) || name.includes("*") || name === "x.movedFrom") continue;
      const json = /^\S+ (.*);$/.exec(exampleOf(name, attribute))?.[1] ?? "";
      const names = ["vm", "data", "bootvol", "net"].map((each) => `<ref:../${each}>`);
      assert.ok(kind.kind !== "link" || names.includes(JSON.parse(json)), `${type} ${name}`);
      const parts = {
        vm: { "x.type": "VM", "x.memory": 64 },
        data: { "x.type": "Volume", "x.size": 1 },
        net: { "x.type": "Subnet", "x.cidr": "10.64.0.0/24" },
      };
      const it = { "x.type": type, [name]: JSON.parse(json) };
      const checked = checkDocument({ shop: { "x.type": "Cell", ...parts, it } });
      const faults = checked.ok ? [] : checked.error.filter(({ code }) => !/^(schema\/required|cell\/)/.test(code));
      assert.deepEqual(faults, [], `${type} ${name}`);
    }
});

test("templates of standard files name the file to include", () => {
  const [sum = "", schema = ""] = told(cell("n extends sum { a 1; } s extends Schema;"));
  assert.match(sum, /^type\/unknown: .*`#include "\/org\/smartfrog\/functions\.sf"`/);
  assert.match(schema, /`#include "\/org\/smartfrog\/predicates\.sf"`/);
  sound(`#include "/org/smartfrog/functions.sf"\n${cell("n extends sum { a 1; }")}`);
  assert.match(told(cell("n extends smu { a 1; }")).join(), /Define it here|Did you mean/);
});

test("a lazy value where one is needed", () => {
  const [memory = "", computed = ""] = told(
    `m 128;\n${cell("vm extends VM { x.memory LAZY ROOT:m; x.cpus (1 + LAZY ROOT:m); }")}`,
  );
  assert.match(memory, /`x\.memory` must be known .*`LAZY` leaves `ROOT:m`.*Leave out `LAZY`, or write `"<ref:\/m>"`/);
  assert.match(computed, /`x\.cpus` must be known .*`LAZY` leaves it .*Leave out `LAZY`:/);
  sound(`m 128;\n${cell('vm extends VM { x.memory "<ref:/m>"; x.data extends { a LAZY ROOT:m; } }')}`);
  assert.match(told(cell("v extends Volume { x.size 1; x.import LAZY ROOT:m; }")).join(), /`x\.import` must be known/);
});

test("a component without extends: its three forms", () => {
  assert.match(
    told(cell("vm { x.memory 128; }")).join(),
    /`vm extends VM \{ … \}`, a group `vm extends \{ … \}`.*`vm extends Template:vm \{ … \}`/,
  );
});
