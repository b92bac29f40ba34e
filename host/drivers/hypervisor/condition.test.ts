import assert from "node:assert/strict";
import { test } from "node:test";
import { type ConditionNews, watchCondition } from "./condition.ts";
import type { Qmp } from "./qmp.ts";

/** A QEMU whose disk works again after so many `cont`. */
const stalling = (works: number) => {
  const asked: string[] = [];
  let status = "io-error";
  let left = works;
  const watch = { event: (_event: string, _data: object = {}): void => undefined };
  const qmp: Qmp = {
    execute: async (command) => {
      asked.push(command);
      if (command === "query-status") return { status };
      if (command === "query-block")
        return [
          { qdev: "/machine/peripheral/disk-ab12-4/virtio-backend", "io-status": "failed" },
          { qdev: "disk-ab12-5", "io-status": "ok" },
          { qdev: "/machine/peripheral/seed-disk/virtio-backend" },
        ];
      if (command === "cont") {
        left -= 1;
        status = left <= 0 ? "running" : "io-error";
        if (left > 0) watch.event("BLOCK_IO_ERROR", { action: "stop", reason: "Input/output error" });
      }
      return {};
    },
    close: () => undefined,
  };
  return { qmp, asked, watch };
};

const newsOf = (on: Partial<ConditionNews> = {}) => {
  const told: object[] = [];
  const news: ConditionNews = {
    tell: (condition) => told.push(condition),
    poweredOff: () => told.push({ off: true }),
    dead: (why) => told.push({ dead: why }),
    ...on,
  };
  return { told, news };
};

test("a machine stopped by its disk is told once per error and is let go on until it does", async () => {
  const { qmp, asked, watch: machine } = stalling(2);
  let done: () => void = () => undefined;
  const runs = new Promise<void>((resolve) => {
    done = resolve;
  });
  const { told, news } = newsOf();
  const tell: ConditionNews["tell"] = (condition) => {
    news.tell(condition);
    if (condition.condition === "running") done();
  };
  const watch = watchCondition({ ...news, tell }, { firstResumeMs: 10, longestResumeMs: 20, settledMs: 150 });
  machine.event = (event, data = {}) => watch.event({ event, data: data as Readonly<Record<string, unknown>> });
  // The time of its waits does not hold the process.
  const hold = setTimeout(() => undefined, 60_000);
  await watch.connected(qmp);
  await runs;
  clearTimeout(hold);
  watch.close();
  assert.deepEqual(told, [
    { condition: "stalled", detail: "Input/output error", connections: ["ab12-4"] },
    { condition: "stalled", detail: "Input/output error", connections: ["ab12-4"] },
    { condition: "running", detail: "its disks answer again" },
  ]);
  assert.equal(asked.filter((command) => command === "cont").length, 2);
});

test("resets, power-off and what an error that does not stop the guest means", () => {
  const { told, news } = newsOf();
  const watch = watchCondition(news);
  watch.event({ event: "RESET", data: { guest: false } });
  watch.event({ event: "BLOCK_IO_ERROR", data: { action: "report" } });
  watch.event({ event: "SHUTDOWN", data: { guest: false } });
  assert.deepEqual(told, []);
  watch.event({ event: "RESET", data: { guest: true } });
  watch.event({ event: "RESET", data: { guest: true } });
  watch.event({ event: "SHUTDOWN", data: { guest: true } });
  assert.deepEqual(told, [{ condition: "rebooted", detail: "its guest reset itself" }, { off: true }]);
  watch.close();
  watch.event({ event: "SHUTDOWN", data: { guest: true } });
  assert.equal(told.length, 2);
});

test("resets that come together are one, and those of a guest that does nothing else are several", () => {
  const { told, news } = newsOf();
  let now = 0;
  const watch = watchCondition(news, undefined, () => now);
  for (const at of [0, 17, 300, 600, 1300, 1600, 1900, 2600, 2900]) {
    now = at;
    watch.event({ event: "RESET", data: { guest: true } });
  }
  assert.equal(told.length, 3);
  watch.close();
});

test("a machine found stopped says at once what became of it", async () => {
  for (const [status, expected] of [
    ["shutdown", { off: true }],
    ["guest-panicked", { dead: "its guest's kernel panicked" }],
  ] as const) {
    const { told, news } = newsOf();
    const watch = watchCondition(news);
    await watch.connected({ execute: async () => ({ status }), close: () => undefined });
    watch.close();
    assert.deepEqual(told, [expected]);
  }
});
