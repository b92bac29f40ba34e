import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FramedInput } from "./framed-input.ts";

/** What comes out of it, and the error that ended it. */
async function passed(chunks: readonly Buffer[]): Promise<{ readonly output: string; readonly error: string }> {
  const input = new FramedInput();
  const output: Buffer[] = [];
  input.on("data", (data: Buffer) => output.push(data));
  const ended = new Promise<string>((resolve) => {
    input.on("end", () => resolve(""));
    input.on("error", ({ message }) => resolve(message));
  });
  for (const chunk of chunks) input.write(chunk);
  input.end();
  const error = await ended;
  return { output: Buffer.concat(output).toString(), error };
}
const message = (content: string, more = ""): string =>
  `Content-Length: ${Buffer.byteLength(content)}\r\n${more}\r\n${content}`;

test("messages pass as they are, however they are cut", async () => {
  const seed = Number(process.env.CELLS_SEED ?? Date.now() % 2 ** 31);
  const type = "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n";
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: "binary" })), fc.array(fc.nat()), async (contents, cuts) => {
      const whole = Buffer.from(contents.map((each, index) => message(each, index % 2 === 0 ? "" : type)).join(""));
      const places = [0, ...cuts.map((cut) => cut % (whole.length + 1)).toSorted((a, b) => a - b), whole.length];
      const chunks = places.slice(1).map((end, index) => whole.subarray(places[index], end));
      assert.deepEqual(await passed(chunks), { output: whole.toString(), error: "" });
    }),
    { seed, numRuns: 100 },
  );
});

test("what can be no message ends it at once, also in small pieces", async () => {
  const bytes = (text: string): readonly Buffer[] => [...Buffer.from(text)].map((each) => Buffer.from([each]));
  assert.match((await passed(bytes("no header at all"))).error, /no message of the language server protocol/);
  assert.match((await passed(bytes(`${message("{}")}{`))).error, /no message/);
  assert.match((await passed(bytes("Content-Length: 1e9\r\n\r\n"))).error, /no Content-Length/);
  assert.match((await passed([Buffer.from(`X: ${"y".repeat(10_000)}`)])).error, /longer than 8192/);
});
