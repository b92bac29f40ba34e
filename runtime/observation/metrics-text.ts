import type { Labels, Metric, Sample } from "../../core/telemetry/metrics.ts";
import { fail, ok, type Result } from "../../model/result.ts";

/**
 * A strict reader of the text format 0.0.4, stricter than Prometheus' own: HELP and TYPE come before the samples of a
 * metric, all of which stand together; nothing appears twice; a counter ends in `_total` and is not negative; a histogram
 * is complete and its buckets only grow. What the gateway passes on has gone through this.
 */
export const parseMetrics = (text: string): Result<readonly Metric[], string> => {
  if (text !== "" && !text.endsWith("\n")) return fail("the last line has no end");
  const reader: Reader = { metrics: [], names: new Set(), current: null, help: null };
  const lines = text === "" ? [] : text.slice(0, -1).split("\n");
  for (const [index, line] of lines.entries()) {
    const fault = readLine(reader, line);
    if (fault !== null) return fail(`line ${index + 1}: ${fault}: ${line.slice(0, 200)}`);
  }
  for (const metric of reader.metrics) {
    const fault = faultOf(metric);
    if (fault !== null) return fail(`${metric.name}: ${fault}`);
  }
  return ok(reader.metrics);
};

interface Open extends Metric {
  readonly samples: Sample[];
  readonly seen: Set<string>;
}
interface Reader {
  readonly metrics: Open[];
  readonly names: Set<string>;
  current: Open | null;
  help: { readonly name: string; readonly text: string } | null;
}

const namePattern = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const helpLine = new RegExp(`^# HELP (${namePattern}) (.*)$`);
const typeLine = new RegExp(`^# TYPE (${namePattern}) (counter|gauge|histogram)$`);
const sampleLine = new RegExp(`^(${namePattern})(?:\\{(.*)\\})? ([^ ]+)$`);
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
const number = /^(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]Inf|NaN)$/;

/** What is wrong with the line; null: nothing. */
const readLine = (reader: Reader, line: string): string | null => {
  const help = helpLine.exec(line);
  if (help !== null) {
    const [, name = "", text = ""] = help;
    if (reader.names.has(name)) return `${name} comes a second time`;
    reader.names.add(name);
    reader.help = { name, text: plainText(text) };
    reader.current = null;
    return null;
  }
  const type = typeLine.exec(line);
  if (type !== null) {
    const [, name = "", kind = ""] = type;
    if (reader.help?.name !== name || reader.current !== null) return `${name} has no HELP right before its TYPE`;
    const open: Open = { name, help: reader.help.text, type: kind as Metric["type"], samples: [], seen: new Set() };
    reader.current = open;
    reader.metrics.push(open);
    return null;
  }
  return readSample(reader, line);
};

const readSample = ({ current }: Reader, line: string): string | null => {
  const found = sampleLine.exec(line);
  if (found === null) return "neither HELP nor TYPE nor a sample";
  const [, name = "", labelText, valueText = ""] = found;
  if (current === null) return "a sample without its TYPE";
  const suffix = name.slice(current.name.length);
  const allowed = current.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  if (!name.startsWith(current.name) || !allowed.includes(suffix)) return `no sample of ${current.name}`;
  const labels = readLabels(labelText ?? "");
  if (labels === null) return "labels that cannot be read";
  if (!number.test(valueText)) return "no number";
  const identity = `${suffix} ${JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))}`;
  if (current.seen.has(identity)) return "the same series a second time";
  current.seen.add(identity);
  const value = valueText.endsWith("Inf")
    ? Number(valueText.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY)
    : Number(valueText);
  current.samples.push({ labels, value, ...(suffix === "" ? {} : { suffix: suffix as "_bucket" }) });
  return null;
};

const readLabels = (text: string): Labels | null => {
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  for (let at = 0; at < text.length; at = label.lastIndex) {
    const found = label.exec(text);
    if (found === null) return null;
    const [whole, name = "", value = "", end] = found;
    const last = at + whole.length === text.length;
    if (Object.hasOwn(labels, name) || name.startsWith("__") || (end === "") !== last) return null;
    labels[name] = plainText(value);
  }
  return labels;
};

const plainText = (text: string): string =>
  text.replaceAll(/\\(.)/g, (_whole, letter: string) => (letter === "n" ? "\n" : letter));

const faultOf = ({ type, name, samples }: Metric): string | null => {
  if (samples.length === 0) return "it has no samples";
  if (type === "counter" && !name.endsWith("_total")) return "a counter's name ends in _total";
  if (type !== "counter" && name.endsWith("_total")) return "only a counter's name ends in _total";
  if (type === "counter" && samples.some(({ value }) => !(value >= 0))) return "a counter is not negative";
  if (type !== "histogram") return null;
  const series = Map.groupBy(samples, ({ labels }) => {
    const { le: _le, ...others } = labels;
    return JSON.stringify(Object.entries(others).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
  for (const parts of series.values()) {
    const buckets = parts.filter(({ suffix }) => suffix === "_bucket");
    const counts = parts.filter(({ suffix }) => suffix === "_count");
    const bound = ({ labels }: Sample): number => (labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le));
    const last = buckets.at(-1);
    if (last === undefined || bound(last) !== Number.POSITIVE_INFINITY) return "its last bucket is not +Inf";
    if (buckets.some((bucket, index) => index > 0 && !(bound(bucket) > bound(buckets[index - 1] ?? bucket))))
      return "its buckets do not ascend";
    if (buckets.some(({ value }, index) => index > 0 && value < (buckets[index - 1]?.value ?? 0)))
      return "its buckets do not grow";
    if (counts.length !== 1 || parts.filter(({ suffix }) => suffix === "_sum").length !== 1)
      return "it has no sum or no count";
    if (counts[0]?.value !== last.value) return "its count is not its last bucket";
  }
  return null;
};
