import assert from "node:assert/strict";
import { test } from "node:test";
import { placerOf, root } from "./many-hosts.ts";
import { isPooled, machineAt, mixOf, pooled, poolsOf } from "./mix.ts";
import { Quotas } from "./quotas.ts";

test("in the mix a host in twenty is in a pool, and a VM in twenty asks for one and stands there alone with such", () => {
  const [hosts, accounts] = [40, 10];
  const { peers, state, desire } = placerOf(hosts, accounts, machineAt);
  const pools = poolsOf(hosts, accounts);
  assert.equal(pools, 2);
  const names = peers.map((peer) => peer.slice("host.".length));
  for (const [at, name] of names.entries())
    if (isPooled(at)) desire(root, `pooled/${name}`, pooled(name, at, accounts, pools));
  const { kindOf, request } = mixOf(accounts, pools, desire);
  let asking = 0;
  for (let count = 0; count < 300; count += 1) {
    const { client, document } = request(kindOf());
    const { pool } = document.placement as { readonly pool?: string };
    desire(client, `placement/${document.vm}`, document);
    const host = state.reservations.get(document.vm as never)?.host;
    if (pool !== undefined) {
      asking += 1;
      // Hosts 5 and 25, of the first pool and the second.
      assert.equal(host, names[pool === "pool-0" ? 5 : 25]);
    } else if (host !== undefined) assert.ok(!isPooled(names.indexOf(host)), host);
  }
  assert.ok(asking > 3 && asking < 60, `${asking}`);
});

test("a quota refuses what is beyond it, and takes what ends out of its sums", () => {
  const quotas = new Quotas(2, { vms: 2, memoryMiB: 3000 });
  const size = { memoryMiB: 1000, cpus: 1 };
  assert.deepEqual([quotas.take(0, size), quotas.take(0, size)], [[], []]);
  assert.deepEqual(quotas.take(0, size), ["3 VMs, and 2 are allowed (`x.limits.vms`)"]);
  assert.deepEqual(quotas.take(1, { memoryMiB: 4000, cpus: 1 }), [
    "4000 MiB of memory, and 3000 are allowed (`x.limits.memory`)",
  ]);
  quotas.give(0, size);
  assert.deepEqual(quotas.take(0, size), []);
});
