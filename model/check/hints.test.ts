import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleOf } from "../cell/example-value.ts";
import { commonAttributes, elementSchemas } from "../cell/schema.ts";
import { checkDocument, readSpecification } from "../specification/specification.ts";

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
      const names = ["vm", "data", "bootvol", "net", "nic", "pool"].map((each) => `<ref:../${each}>`);
      assert.ok(kind.kind !== "link" || names.includes(JSON.parse(json)), `${type} ${name}`);
      const parts = {
        vm: { "x.type": "VM", "x.memory": 64 },
        data: { "x.type": "Volume", "x.size": 1 },
        net: { "x.type": "Subnet", "x.cidr": "10.64.0.0/24" },
        pool: { "x.type": "Pool" },
        nic: { "x.type": "VirtualInterface", "x.vm": "<ref:../vm>", "x.subnet": "<ref:../net>" },
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

test("a brace that is missing: the line that closes too much is named", () => {
  const text = "shop extends Cell {\n  a extends {\n    b extends {\n      c 1;\n  }\n}\n";
  assert.match(
    told(text).join(),
    /never closed\. Add the missing `\}`: that of line 5 would close it, and stands too far/,
  );
  assert.match(told("shop extends Cell {\n").join(), /Add the missing `\}`\.$/);
});

test("a link to the wrong type names elements of the right one", () => {
  const disk = (vm: string): string => `c extends VolumeConnection { x.vm "${vm}"; x.volume "<ref:../d>"; }`;
  const volume = "d extends Volume { x.size 1; }";
  const machine = (name: string): string => `${name} extends VM { x.memory 64; }`;
  const hint = (inside: string): string => told(cell(`${volume} ${inside} ${disk("<ref:../d>")}`)).join();
  assert.match(hint(""), /must refer to a VM; `\/shop\/d` is a Volume\. The cell has no such element yet: add one\.$/);
  assert.match(hint(machine("a")), /The only such element is `<ref:\/shop\/a>`\.$/);
  assert.match(hint(`${machine("a")} ${machine("b")}`), /are `<ref:\/shop\/a>` and `<ref:\/shop\/b>`\.$/);
  assert.match(hint(["a", "b", "e", "f"].map(machine).join(" ")), /`<ref:\/shop\/e>` and others\.$/);
  sound(cell(`${volume} ${machine("a")} ${disk("<ref:/shop/a>")}`));
});

test("hints fit what was written", () => {
  assert.match(told(cell("d extends Volume { x.size 1.5; }")).join(), /Write it without a fraction, from 1 /);
  assert.match(told(cell('d extends Volume { x.size "1"; }')).join(), /Write it without quotes, from 1 /);
  assert.match(told(cell("v extends VM { x.memory 64; x.restartOnFailure 1; }")).join(), /Write true/);
  assert.match(
    told(cell('v extends VM { x.memory 64; x.data "<ref:../g/b/c>"; } g extends { b 1; }')).join(),
    /nothing inside/,
  );
  assert.match(told(cell("u PARENT:PARENT:PARENT:a;")).join(), /begin with `ROOT`/);
});

test("a bare word where one of a few texts is wanted: the text is suggested", () => {
  const suggested = (attribute: string): string => told(cell(`vm extends VM { x.memory 64; ${attribute} }`)).join();
  assert.match(
    suggested("x.desiredState on;"),
    /Did you mean `"on"`\? `x\.desiredState` is a text, in double quotes: "on" or "off"\./,
  );
  assert.match(suggested("x.desiredState offf;"), /Did you mean `"off"`\?/);
  assert.match(suggested("x.desiredState running;"), /write it in double quotes: "running"/);
  assert.match(suggested("x.restartOnFailure yes;"), /Did you mean `true`\?/);
});
