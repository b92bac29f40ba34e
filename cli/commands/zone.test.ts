import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import type { ZoneReport } from "../../model/contract/operator/zone.ts";
import { failure, scene } from "./model/scene.testing.ts";
import { showZone, zoneKey } from "./zone.ts";

const report: ZoneReport = {
  zones: ["cloud.example.org", "18.198.in-addr.arpa"],
  serial: 7,
  secondaries: ["10.0.0.9"],
  key: null,
  keys: [],
};

test("cells zone says to whom what is handed, and that nobody can fetch it while the key's secret is not here", async (t) => {
  const said = async (body: ZoneReport): Promise<string> => {
    const { context, printed } = await scene(t, () => ({ status: 200, body }));
    await showZone(context);
    return printed.join("\n");
  };
  assert.match(await said({ ...report, zones: [], serial: null, secondaries: [] }), /no zone is declared/);
  const open = await said(report);
  assert.match(open, /^cloud\.example\.org, number 7, is handed to 10\.0\.0\.9\nwith it 18\.198\.in-addr\.arpa\n/);
  assert.match(open, /addresses alone count/);
  const missing = /nobody can fetch it: the secret of "transfer" is not here; `cells zone key transfer` takes it/;
  assert.match(await said({ ...report, key: "transfer" }), missing);
  assert.match(await said({ ...report, key: "transfer", keys: [{ name: "transfer", lost: true }] }), missing);
  const keys = [{ name: "transfer" }, { name: "former" }];
  assert.match(
    await said({ ...report, key: "transfer", keys }),
    /signed by "transfer"\nkey.*\ntransfer +in use\nformer +not in use/,
  );
});

test("a key's secret is what a file says, and is not printed", async (t) => {
  const bodies: string[] = [];
  const { context, printed, file } = await scene(t, ({ body }) => {
    bodies.push(body);
    return { status: 200, body: { name: "transfer", wasThere: false, declared: bodies.length > 1 } };
  });
  writeFileSync(file, "c2VjcmV0\r\n");
  await zoneKey(context, "transfer", { secretFile: file });
  assert.equal(bodies[0], JSON.stringify({ secret: "c2VjcmV0" }));
  await zoneKey(context, "transfer", { secretFile: file });
  assert.deepEqual(printed, [
    'the secret of "transfer" is sealed; it counts once the root cell has `x.zone.key "transfer"`',
    'the secret of "transfer" is sealed; transfers are signed by it',
  ]);
  const nowhere = await failure(zoneKey(context, "transfer", { secretFile: `${file}.not` }));
  assert.deepEqual([nowhere.exitCode, /cannot be read/.test(nowhere.message)], [2, true]);
  writeFileSync(file, "\n");
  assert.match((await failure(zoneKey(context, "transfer", { secretFile: file }))).message, /nothing is there/);
  assert.equal(bodies.length, 2);
});
