import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  type Hover,
  type Location,
  ResponseError,
  type TextEdit,
  type WorkspaceEdit,
} from "vscode-languageserver/node";
import { Editor, exitOf, type Place, startServer } from "./testing/client.testing.ts";

/** The real process, spoken to as an editor speaks to it. */
const directory = realpathSync(mkdtempSync(join(tmpdir(), "cells-serve-")));
const workspace = join(directory, "work");
mkdirSync(join(workspace, "lib"), { recursive: true });
after(() => rmSync(directory, { recursive: true, force: true }));

const write = (name: string, text: string): string => {
  const path = join(workspace, name);
  writeFileSync(path, text);
  return path;
};
/** Where a text stands in another, `into` characters further. */
const placeOf = (text: string, part: string, into = 0): Place => {
  const offset = text.indexOf(part) + into;
  assert.ok(text.includes(part), part);
  const before = text.slice(0, offset).split("\n");
  return { line: before.length - 1, character: before.at(-1)?.length ?? 0 };
};
const uri = (path: string): string => pathToFileURL(path).href;
const abilities = {
  textDocument: {
    completion: { completionItem: { snippetSupport: true } },
    documentSymbol: { hierarchicalDocumentSymbolSupport: true },
  },
  workspace: { workspaceEdit: { documentChanges: true, changeAnnotationSupport: {} } },
};

const shopText = `// 😀
#include "lib/tier.sf"
shop extends Cell {
  note "😀"; web extends Tier { role "web"; }
  disk extends VolumeConnection { x.vm "<ref:../web/vm>"; x.volume "<ref:/shop/golden>"; }
  golden extends Volume { x.size 64; }
}
`;
const tierText = 'Tier extends {\n  role "";\n  vm extends VM { x.memory 128; }\n}\n';

test("diagnostics, completion, hover, navigation, rename, formatting and the end", { timeout: 60_000 }, async () => {
  const [shop, tier] = [write("shop.sf", shopText), write("lib/tier.sf", tierText)];
  const editor = new Editor();
  try {
    await editor.initialize([workspace], abilities);
    await editor.open(shop, shopText);
    assert.deepEqual(await editor.diagnostics(shop, () => true), []);
    // Behind characters of two code units, in a statement that is not finished.
    const at = placeOf(shopText, 'web extends Tier { role "web"; ', 31);
    await editor.change(shop, at, at, "x.memroy 5; vm:x.c");
    const [wrong] = await editor.diagnostics(shop, (found) => found.length > 0);
    assert.ok(wrong);
    assert.match(String(wrong.message), /vm:x\.c/);
    await editor.change(shop, at, { ...at, character: at.character + 18 }, "x.memroy 5;");
    const [stray] = await editor.diagnostics(shop, (found) => found.some(({ code }) => code === "schema/no-type"));
    assert.deepEqual(stray?.range.start, at);
    await editor.change(shop, at, { ...at, character: at.character + 11 }, "");
    await editor.diagnostics(shop, (found) => found.length === 0);

    // What is not saved wins: a fault in the included text is told there, with the places that use it.
    await editor.open(tier, tierText);
    await editor.change(tier, placeOf(tierText, "128"), placeOf(tierText, "128", 3), "12");
    const [small] = await editor.diagnostics(tier, (found) => found.length > 0);
    assert.match(String(small?.message), /x\.memory/);
    assert.deepEqual(small?.range, { start: placeOf(tierText, "128"), end: placeOf(tierText, "128", 2) });
    assert.ok(small?.relatedInformation?.some(({ location }) => location.uri === uri(shop)));
    const page = await editor.at<Hover>("textDocument/hover", tier, placeOf(tierText, "128"));
    assert.match(JSON.stringify(page.contents), /Wrong:/);
    await editor.change(tier, placeOf(tierText, "128"), placeOf(tierText, "128", 2), "128");
    await editor.diagnostics(tier, (found) => found.length === 0);

    const path = placeOf(shopText, "<ref:../web/", 12);
    assert.deepEqual(await editor.labels(shop, path), ["vm"]);
    assert.ok((await editor.labels(tier, placeOf(tierText, "x.memory"))).includes("x.cpus"));
    const hover = await editor.at<Hover>("textDocument/hover", shop, placeOf(shopText, "web/vm", 5));
    assert.match(JSON.stringify(hover.contents), /\/shop\/web\/vm.*VM/);
    const [definition] = await editor.at<Location[]>("textDocument/definition", shop, placeOf(shopText, "web/vm", 5));
    assert.deepEqual([definition?.uri, definition?.range.start], [uri(tier), placeOf(tierText, "vm extends")]);
    const uses = await editor.at<Location[]>("textDocument/references", tier, placeOf(tierText, "vm extends"), {
      context: { includeDeclaration: true },
    });
    assert.deepEqual(uses.map((each) => each.uri).toSorted(), [uri(tier), uri(shop)].toSorted());
    const symbols = await editor.at<{ name: string; children: { name: string }[] }[]>(
      "textDocument/documentSymbol",
      tier,
      path,
    );
    assert.deepEqual(
      symbols.map(({ name, children }) => [name, children.map((each) => each.name)]),
      [["Tier", ["role", "vm"]]],
    );

    const renamed = await editor.at<WorkspaceEdit>("textDocument/rename", tier, placeOf(tierText, "vm extends"), {
      newName: "machine",
    });
    assert.equal(renamed.documentChanges?.length, 2);
    assert.match(JSON.stringify(renamed), /machine:x\.movedFrom \\"shop\/web\/vm\\";.*"annotationId":"keep"/);
    const refused = await editor
      .at("textDocument/rename", tier, placeOf(tierText, "vm extends"), { newName: "role" })
      .catch((error: unknown) => error);
    assert.ok(refused instanceof ResponseError && /already/.test(refused.message));

    const formatting = { options: { tabSize: 2, insertSpaces: true } };
    await editor.change(tier, placeOf(tierText, "  role"), placeOf(tierText, "  role", 2), "      ");
    const [edit, ...more] = await editor.at<TextEdit[]>("textDocument/formatting", tier, path, formatting);
    assert.deepEqual([edit?.newText, more], ["", []]);
    await editor.close(tier);
    await editor.close(shop);
    assert.deepEqual(await editor.shutdown(), { code: 0, errors: "" });
  } finally {
    await editor.kill();
  }
});

test("JSON is served, YAML checked, and other JSON left alone", { timeout: 60_000 }, async () => {
  const text = '{"shop": {"x.type": "Cell", "vm": {"x.type": "VM", "x.memroy": 128}}}';
  const [cell, other] = [write("cell.json", text), write("package.json", '{"name": "x"')];
  const editor = new Editor();
  try {
    await editor.initialize([workspace]);
    await editor.open(other, '{"name": "x"');
    await editor.open(cell, text);
    const found = await editor.diagnostics(cell, (some) => some.length > 0);
    assert.ok(found.some(({ code }) => code === "schema/unknown-attribute"));
    assert.ok((await editor.labels(cell, placeOf(text, '"x.memroy', 3))).includes("x.memory"));
    const yaml = "shop:\n  x.type: Cell\n  vm: { x.type: VM, x.memroy: 128 }\n";
    const cloud = write("cell.yaml", yaml);
    await editor.open(cloud, yaml);
    const inYaml = await editor.diagnostics(cloud, (some) =>
      some.some(({ code }) => code === "schema/unknown-attribute"),
    );
    assert.ok(inYaml.some(({ range }) => range.start.line === 2));
    assert.equal(await editor.at("textDocument/hover", other, { line: 0, character: 3 }), null);
    assert.equal((await editor.shutdown()).code, 0);
  } finally {
    await editor.kill();
  }
});

test("files outside the workspace are not read", { timeout: 60_000 }, async () => {
  writeFileSync(join(directory, "secret.sf"), "Secret extends VM { x.memory 5; }\n");
  symlinkSync(join(directory, "secret.sf"), join(workspace, "link.sf"));
  const text = '#include "../secret.sf"\n#include "link.sf"\nshop extends Cell { vm extends Se }\n';
  const file = write("curious.sf", text);
  const editor = new Editor();
  try {
    await editor.initialize([workspace]);
    await editor.open(file, text);
    const found = await editor.diagnostics(file, (some) => some.length > 0);
    assert.deepEqual(
      found.map(({ code }) => code),
      ["syntax/include-outside", "syntax/include-missing"],
    );
    const offered = await editor.labels(file, placeOf(text, "extends Se", 10));
    assert.ok(offered.includes("VM") && !offered.includes("Secret"), offered.join(" "));
    assert.equal((await editor.shutdown()).code, 0);
  } finally {
    await editor.kill();
  }
});

test("what is out of turn is refused, what is stale dropped", { timeout: 60_000 }, async () => {
  const file = write("turn.sf", "shop extends Cell { }\n");
  const editor = new Editor();
  try {
    const early = await editor
      .at("textDocument/hover", file, { line: 0, character: 0 })
      .catch((error: unknown) => error);
    assert.ok(early instanceof ResponseError && early.code === -32002, String(early));
    await editor.initialize([workspace]);
    assert.equal(await editor.at("textDocument/completion", file, { line: 0, character: 0 }), null, "not open");
    await editor.open(file, "shop extends Cell { }\n");
    const far = await editor.at("textDocument/completion", file, { line: 900, character: 9000 });
    assert.ok(far);
    const unknown = await editor.request("cells/nothing", {}).catch((error: unknown) => error);
    assert.ok(unknown instanceof ResponseError && unknown.code === -32601);
    await editor.request("shutdown", {});
    const late = await editor
      .at("textDocument/hover", file, { line: 0, character: 0 })
      .catch((error: unknown) => error);
    assert.ok(late instanceof ResponseError && late.code === -32600, String(late));
    await editor.connection.sendNotification("exit");
    assert.equal((await editor.exit).code, 0);
  } finally {
    await editor.kill();
  }
});

test("what is no message ends the server with a sentence", { timeout: 60_000 }, async () => {
  const hostile: readonly (readonly [string | Buffer, RegExp])[] = [
    ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", /no message of the language server protocol: "GET/],
    [Buffer.alloc(100_000, 65), /longer than 8192 bytes/],
    ["Content-Length: 999999999999\r\n\r\n{", /999999999999 bytes is larger/],
    ["Content-Type: x\r\n\r\n{}", /no Content-Length/],
    [Buffer.from([0, 1, 2, 255]), /no message/],
  ];
  await Promise.all(
    hostile.map(async ([bytes, expected]) => {
      const child = startServer();
      const exit = exitOf(child);
      child.stdin.on("error", () => {});
      child.stdin.write(bytes);
      const { code, errors } = await exit;
      assert.equal(code, 1);
      assert.match(errors, expected);
    }),
  );
});

test("of many changes the last one is what is told, and a check holds nothing up", { timeout: 60_000 }, async () => {
  const machines = Array.from({ length: 2000 }, (_, index) => `  vm${index} extends VM { x.memory 128; }\n`).join("");
  const text = `shop extends Cell {\n${machines}  late extends VM { x.memory  }\n}\n`;
  const file = write("many.sf", text);
  const editor = new Editor();
  try {
    await editor.initialize([workspace]);
    await editor.open(file, text);
    const at = placeOf(text, "x.memory  }", 9);
    for (let digit = 1; digit <= 9; digit++) {
      await editor.change(file, at, at, String(digit));
      assert.ok((await editor.labels(file, placeOf(text, "late"))).length > 0);
    }
    // 987654321 MiB.
    const found = await editor.diagnostics(file, (some) => some.some(({ code }) => code !== "syntax/expected"));
    assert.match(String(found[0]?.message), /987654321/);
    assert.equal(found.length, 1);
    assert.equal((await editor.shutdown()).code, 0);
  } finally {
    await editor.kill();
  }
});

test("a client that goes away without a word is followed", { timeout: 60_000 }, async () => {
  const editor = new Editor();
  try {
    await editor.initialize([workspace]);
    editor.child.stdin.end();
    assert.equal((await editor.exit).code, 1);
  } finally {
    await editor.kill();
  }
});
