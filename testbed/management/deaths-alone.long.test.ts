import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { type Testbed, withTestbedDirectory } from "../harness.ts";
import { losesServiceHost } from "../hosts/succession.testing.ts";
import { cells, until } from "../lab.testing.ts";
import { stateOf } from "../tenants/questions.testing.ts";
import { accountGoes, givesToAccount } from "./account.testing.ts";
import { backupOf, losesRootStore } from "./root-store.testing.ts";
import { killMachine, tenant, untilAllReady, vmState } from "./self-hosted.testing.ts";

/**
 * What else may be lost of a cloud that runs in itself, in one of its own: only with `./cells test --all`. The root controller's store is lost and
 * put back from a backup, the host of another service is lost, and an account goes with the cell that it was given. Each is tried in every
 * run where services are processes: in lost-stores.test.ts, ../hosts/ha.test.ts and gateway/cells/account-goes.testing.ts.
 */
const patience = 600;
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";

/** A machine runs before its services answer. */
const primaryAnswers = (t: Testbed): Promise<unknown> =>
  until(
    "the primary cell's controller answers",
    () => stateOf(t, "primary/gateway/vm"),
    (state) => state !== null,
    patience,
  );

test("a cloud that runs in itself loses its root store, a service's host, and an account", {
  skip,
}, async (context) => {
  const start = performance.now();
  const reached = (what: string): void =>
    context.diagnostic(`${((performance.now() - start) / 1000).toFixed(0)} s: ${what}`);
  await withTestbedDirectory({ profile: "small", hosts: 4, servers: 1 }, async (t) => {
    await t.up();
    reached("up");
    writeFileSync(join(dirname(t.configFile), "one.sf"), tenant("one"));
    await cells(t, "apply", join(dirname(t.configFile), "one.sf"), "--yes");
    await untilAllReady(t, "root", patience);
    const backup = await backupOf(t);
    reached("a backup is made, which the next incarnations are newer than");
    const victim = "root/controllers/primary/vm";
    const { host, uid, incarnation = 0 } = await vmState(t, victim);
    await killMachine(t, host, uid);
    await until(
      "the victim runs in its next incarnation",
      () => stateOf(t, victim),
      (state) => state?.phase === "ready" && (state.incarnation ?? 0) > incarnation,
      patience,
    );
    await primaryAnswers(t);
    await losesRootStore({ t, reached, patience, backup, victim });
    await primaryAnswers(t);
    await untilAllReady(t, "root", patience);
    await losesServiceHost({ t, reached, patience, cell: "one" });
    const user = await givesToAccount(t, "one/vm");
    await accountGoes(t, { cell: "one", user, patience });
    reached("an account is deleted, with the cell that it was given");
    await until(
      "nothing is left of the cell",
      () => t.cells(["get", "root", "--output", "json"]),
      ({ code, stdout }) => code === 0 && !/"one"/.test(stdout),
      patience,
    );
    assert.doesNotMatch((await t.cells(["get", "--output", "json"])).stdout, /"one"/);
    reached("nothing is left of it");
  });
});
