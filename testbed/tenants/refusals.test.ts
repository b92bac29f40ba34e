import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import type { CellSummary, InstallationStatus } from "../../model/api.ts";
import { type Ended, runCommand } from "../command.ts";
import { type Testbed, withTestbed } from "../harness.ts";

/**
 * What must be refused is refused before anything is touched: no cell, no controller, no change of version; with the
 * place in the text, the cause and what would be right. Against the real services; no machine is started.
 */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

const write = (t: Testbed, name: string, text: string): string => {
  const file = join(dirname(t.configFile), name);
  writeFileSync(file, text);
  return file;
};
const cellOf = (name: string, elements: string): string => `${name} extends Cell {\n${elements}\n}\n`;
const off = (memory: number): string => `  vm extends VM {\n    x.desiredState "off"; x.memory ${memory};\n  }`;

const stateOf = async (t: Testbed): Promise<{ cells: readonly CellSummary[]; controllers: readonly string[] }> => {
  const status = JSON.parse((await t.cells(["status", "-o", "json"])).stdout) as InstallationStatus & {
    readonly cells: readonly CellSummary[];
  };
  const controllers = status.services.map(({ name }) => name).filter((name) => name.startsWith("controller."));
  return { cells: status.cells, controllers };
};

/** The gateway's answer to a request with that credential, or with none. */
const ask = async (t: Testbed, path: string, credential: string | null, method = "GET"): Promise<Response> =>
  fetch(`${t.client().url}${path}`, {
    method,
    headers: credential === null ? {} : { authorization: `Bearer ${credential}` },
  });

describe("refusals", { skip }, () => {
  test("bad specifications and foreign credentials change nothing", async (context) => {
    await withTestbed({ hosts: 2, servers: 1 }, async (t) => {
      const refused = async (name: string, text: string): Promise<Ended> => {
        const ended = await t.cells(["apply", write(t, name, text), "--yes"]);
        assert.notEqual(ended.code, 0, ended.stdout);
        assert.deepEqual(await stateOf(t), { cells: [], controllers: [] });
        return ended;
      };

      await context.test("a misspelt attribute, told with its place", async () => {
        const { stderr } = await refused("a.sf", cellOf("shop", "  vm extends VM { x.memry 128; }"));
        assert.match(stderr, /a\.sf:2:19: .*`x\.memry` is not an attribute of VM[\s\S]*mean `x\.memory`/);
      });

      await context.test("a VM that no host can ever hold, as the first thing of a new cell", async () => {
        const { stderr } = await refused("b.sf", cellOf("shop", off(999_999)));
        assert.match(stderr, /b\.sf:3:36: .*`shop\/vm` asks for 999999 MiB, more than any host can ever give/);
        assert.match(stderr, /At most \d+ MiB can be had: write `x\.memory \d+` or less/);
      });

      await context.test(
        "the same in a change of a cell that is there leaves its version and its elements",
        async () => {
          assert.equal((await t.cells(["apply", write(t, "c.sf", cellOf("shop", off(64))), "--yes"])).code, 0);
          const before = (await stateOf(t)).cells;
          assert.equal(before[0]?.version, 1);
          const { code, stderr } = await t.cells(["apply", write(t, "d.sf", cellOf("shop", off(999_999))), "--yes"]);
          assert.notEqual(code, 0);
          assert.match(stderr, /cell\/no-host/);
          assert.deepEqual((await stateOf(t)).cells, before);
        },
      );

      await context.test("a request without a credential, with a wrong one, with another cell's", async () => {
        assert.equal((await t.cells(["apply", write(t, "e.sf", cellOf("other", off(64))), "--yes"])).code, 0);
        const own = join(dirname(t.configFile), "shop.json");
        assert.equal((await t.cells(["credential", "add", "shop", "--out", own])).code, 0);
        const as = (args: readonly string[]): Promise<Ended> =>
          runCommand(process.execPath, [join(import.meta.dirname, "../../cli/main.ts"), ...args], {
            environment: { CELLS_HOME: t.at.directory, CELLS_CONFIG: own, NO_COLOR: "1" },
          });
        const shown = await as(["get", "shop", "--state"]);
        assert.equal(shown.code, 0, shown.stderr);
        const others = await as(["get", "other", "--state"]);
        assert.notEqual(others.code, 0);
        assert.match(others.stderr, /of the cell "shop" and opens no other/);
        for (const args of [["apply", join(dirname(own), "e.sf"), "--yes"], ["delete", "other", "--yes"], ["status"]])
          assert.notEqual((await as(args)).code, 0, args.join(" "));
        const cells = JSON.parse((await as(["get", "-o", "json"])).stdout) as readonly CellSummary[];
        assert.deepEqual(
          cells.map(({ cell }) => cell),
          ["shop"],
        );
        assert.equal((await ask(t, "/cells/shop/model", null)).status, 401);
        assert.equal((await ask(t, "/cells/shop/model", null, "DELETE")).status, 401);
        assert.equal((await ask(t, "/cells/shop/model", "nothing")).status, 401);
        assert.equal((await ask(t, "/cells/shop/model", `shop.01234567.${"A".repeat(43)}`)).status, 401);
        assert.deepEqual(Object.fromEntries((await stateOf(t)).cells.map(({ cell, version }) => [cell, version])), {
          shop: 1,
          other: 1,
        });
      });

      await context.test("`why` of what is switched off says what would start it", async () => {
        const { code, stdout } = await t.cells(["why", "shop/vm"]);
        assert.equal(code, 1);
        assert.match(
          stdout,
          /held up at "wanted on": x\.desiredState is "off". To lift that: `cells start shop\/vm`, which writes/,
        );
      });
    });
  });
});
