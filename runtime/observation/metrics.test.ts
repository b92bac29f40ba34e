import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { gauge, type Metric, sample } from "../../core/telemetry/metrics.ts";
import { createCounter, createHistogram, encodeMetrics, mergeMetrics, processMetrics, withLabels } from "./metrics.ts";
import { parseMetrics } from "./metrics-text.ts";

const seed = Number(process.env.CELLS_SEED ?? Date.now() % 2 ** 31);

const parsed = (text: string): readonly Metric[] => {
  const read = parseMetrics(text);
  assert.ok(read.ok, read.ok ? "" : `${read.error}\n${text}`);
  return read.value;
};

test("what is written is read again as it was", () => {
  const name = fc.stringMatching(/^[a-z_:][a-z0-9_:]{0,12}$/);
  const labels = fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/), fc.string(), { maxKeys: 3 });
  const value = fc.oneof(
    fc.double({ noDefaultInfinity: true, noNaN: true }).filter((each) => !Object.is(each, -0)),
    fc.constantFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 1e21),
  );
  const metric = fc.record({
    name: name.filter((each) => !each.endsWith("_total")),
    help: fc.string().filter((text) => !text.includes("\r")),
    type: fc.constant("gauge" as const),
    samples: fc.uniqueArray(fc.record({ labels, value }), {
      minLength: 1,
      maxLength: 4,
      selector: (each) => JSON.stringify(Object.entries(each.labels).sort()),
    }),
  });
  const metrics = fc.uniqueArray(metric, { maxLength: 4, selector: (each) => each.name });
  console.log(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(metrics, (all) => {
      const plain = all.map((each) => ({
        ...each,
        samples: each.samples.map((line) => ({ ...line, labels: { ...line.labels } })),
      }));
      const read = parsed(encodeMetrics(all)).map(({ name, help, type, samples }) => ({ name, help, type, samples }));
      assert.deepEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(plain)));
    }),
    { seed, numRuns: 300 },
  );
});

test("a histogram counts each value in every bucket that holds it", () => {
  const histogram = createHistogram("cells_x_seconds", "Some time.", [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(value, { kind: "a" });
  const text = encodeMetrics([histogram.metric()]);
  assert.equal(
    text,
    [
      "# HELP cells_x_seconds Some time.",
      "# TYPE cells_x_seconds histogram",
      'cells_x_seconds_bucket{kind="a",le="0.1"} 2',
      'cells_x_seconds_bucket{kind="a",le="1"} 3',
      'cells_x_seconds_bucket{kind="a",le="+Inf"} 4',
      'cells_x_seconds_sum{kind="a"} 7.65',
      'cells_x_seconds_count{kind="a"} 4',
      "",
    ].join("\n"),
  );
  parsed(text);
});

test("metrics of one name from several services become one, and one without samples is not written", () => {
  const counter = createCounter("cells_y_total", "Some.");
  counter.add(2, { kind: "a" });
  counter.add(3, { kind: "a" });
  const both = [
    ...withLabels([counter.metric()], { service: "one" }),
    gauge("cells_empty", "Nothing.", []),
    ...withLabels([counter.metric()], { service: "two" }),
  ];
  const [merged, ...others] = parsed(encodeMetrics(both));
  assert.equal(others.length, 0);
  assert.deepEqual(
    merged?.samples.map(({ labels, value }) => [labels.service, labels.kind, value]),
    [
      ["one", "a", 5],
      ["two", "a", 5],
    ],
  );
  const clash = mergeMetrics([
    gauge("a", "x", [sample(1)]),
    { name: "a", help: "y", type: "counter", samples: [sample(2)] },
  ]);
  assert.equal(clash[0]?.samples.length, 1, "another type under the same name is left out");
});

test("a process says what it uses", async () => {
  const read = parsed(encodeMetrics(await processMetrics()));
  const value = (name: string): number => read.find((metric) => metric.name === name)?.samples[0]?.value ?? Number.NaN;
  assert.ok(value("process_resident_memory_bytes") > 1024 * 1024);
  assert.ok(value("process_cpu_seconds_total") > 0);
  assert.ok(value("process_open_fds") >= 3);
  assert.ok(value("nodejs_eventloop_lag_seconds") >= 0);
});

test("the reader refuses what the format forbids", () => {
  const head = "# HELP a Help.\n# TYPE a gauge\n";
  const bad: Readonly<Record<string, string>> = {
    "no last line end": `${head}a 1`,
    "no type": "a 1\n",
    "no help": "# TYPE a gauge\na 1\n",
    "a name twice": `${head}a 1\n${head}a{x="1"} 1\n`,
    "a series twice": `${head}a{x="1",y="2"} 1\na{y="2",x="1"} 2\n`,
    "a label twice": `${head}a{x="1",x="2"} 1\n`,
    "no number": `${head}a one\n`,
    "a foreign sample": `${head}b 1\n`,
    "an open label": `${head}a{x="1} 1\n`,
    "no comma": `${head}a{x="1"y="2"} 1\n`,
    "a comma too many": `${head}a{x="1",} 1\n`,
    "no samples": head,
    "a counter without _total": "# HELP a Help.\n# TYPE a counter\na 1\n",
    "a negative counter": "# HELP a_total Help.\n# TYPE a_total counter\na_total -1\n",
    "an empty line": `${head}a 1\n\n`,
    "no +Inf": '# HELP a Help.\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n',
    "falling buckets":
      '# HELP a Help.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
    "another count": '# HELP a Help.\n# TYPE a histogram\na_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n',
  };
  for (const [what, text] of Object.entries(bad)) assert.ok(!parseMetrics(text).ok, what);
  assert.ok(parseMetrics(`${head}a{x="a,b}\\"\\\\\\n"} 1e-3\n`).ok);
  assert.ok(parseMetrics("").ok);
});
