import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../../specification/specification.ts";

/** What is written of wishes and is none, told with its position (`^`), its cause and what would be right. */
const mistakes = [
  {
    what: "a way to fill hosts that does not exist",
    text: 'vm extends VM { x.memory 128; x.placement.fill ^"Packed"; }',
    code: "schema/value",
    message: /`x\.placement\.fill` is "spread" or "pack"/,
    right: /Did you mean "pack"\? "pack" takes the fullest/,
  },
  {
    what: "places to spread over that are none",
    text: 'vm extends VM { x.memory 128; x.placement.spread "web"; x.placement.spreadOver ^"zones"; }',
    code: "schema/value",
    message: /is "host" or "cluster" or "pod" or "zone"/,
    right: /Did you mean "zone"\?/,
  },
  {
    what: "places to spread over, and nothing that is spread",
    text: 'vm extends VM { x.memory 128; x.placement.spreadOver ^"zone"; }',
    code: "schema/value",
    message: /nothing is spread/,
    right: /x\.placement\.spread "web"/,
  },
  ...(
    [
      [
        "no wishes by names",
        '^["ssd"]',
        /has 1 to 16 wishes by their names/,
        /x\.placement\.nice extends DATA \{ near/,
      ],
      ["none at all", "^extends DATA { }", /has 1 to 16 wishes/, /roomy extends DATA \{ memory 4096; \}/],
      ["a word for a wish", '^extends DATA { near "z1"; }', /the wish `near`, which is no wish/, /near extends DATA/],
      ["nothing", "^extends DATA { near extends DATA { weight 2; } }", /`near`, which asks for nothing/, /one of zone/],
      [
        "what is none",
        '^extends DATA { near extends DATA { zones "z1"; } }',
        /asks for `zones`, which is none/,
        /Did you mean `zone`\?/,
      ],
      [
        "two things at once",
        '^extends DATA { near extends DATA { zone "z1"; memory 512; } }',
        /asks for zone and memory at once/,
        /one of zone/,
      ],
      [
        "what is no zone",
        "^extends DATA { near extends DATA { zone 1; } }",
        /asks for a zone that is none/,
        /`zone "z1";`/,
      ],
      [
        "what is no amount",
        '^extends DATA { roomy extends DATA { memory "1G"; } }',
        /asks for a memory that is none/,
        /`memory 4096;`/,
      ],
      [
        "a weight of 0",
        '^extends DATA { near extends DATA { zone "z1"; weight 0; } }',
        /a weight that is none/,
        /from 1 to 1000/,
      ],
      [
        "what it has anyhow",
        "^extends DATA { roomy extends DATA { memory 128; } }",
        /memory 128, and the VM has 128 anyhow/,
        /more than `x\.memory 128`/,
      ],
    ] as const
  ).map(([of, value, message, right]) => ({
    what: `a nice wish for ${of}`,
    text: `vm extends VM { x.memory 128; x.placement.nice ${value} }`.replace('"] }', '"]; }'),
    code: "schema/value" as const,
    message,
    right,
  })),
  {
    what: "more memory than was saved, of a VM that goes on from a saved state",
    text: 'vm extends VM { x.memory 128; x.start "resume"; x.placement.nice ^extends DATA { roomy extends DATA { memory 512; } } }',
    code: "schema/value",
    message: /goes on with as much as was saved/,
    right: /"resume"`, out/,
  },
] as const;

for (const { what, text, code, message, right } of mistakes)
  test(`${what} is refused, with its place, its cause and what would be right`, () => {
    const marked = `shop extends Cell {\n${text}\n}\n`;
    const read = readSpecification({ main: "a.sf", files: { "a.sf": marked.replace("^", "") } });
    const [first] = read.ok ? [] : read.error;
    assert.ok(first !== undefined, "it is refused");
    assert.equal(first.code, code);
    assert.match(first.message, message);
    assert.match(`${first.message} ${first.hint ?? ""}`, right);
    assert.deepEqual([first.position?.line, first.position?.column], [2, text.indexOf("^") + 1]);
  });
