import assert from "node:assert/strict";
import { test } from "node:test";
import { dataTree } from "./data-tree.ts";

test("components become directories, values files, vectors lines", () => {
  assert.deepEqual(
    dataTree({ role: "web", serve: { tcp: 8080, udp: [1, 2] }, none: null, list: [{ a: true }] }, "data"),
    {
      "data/role": "web\n",
      "data/serve/tcp": "8080\n",
      "data/serve/udp": "1\n2\n",
      "data/none": "",
      "data/list/0/a": "true\n",
    },
  );
});

test("no name leaves the directory", () => {
  for (const name of ["..", ".", "a/b", "../../etc/passwd", ""]) {
    const [path] = Object.keys(dataTree({ [name]: 1 }, "data"));
    const parts = (path ?? "").split("/");
    assert.equal(parts.length, 2, path);
    assert.ok(!/^\.*$/.test(parts[1] ?? ""), path);
  }
});
