import assert from "node:assert/strict";
import { test } from "node:test";
import { type Guest, opened, withSessions } from "../session.testing.ts";
import { withoutQueries } from "./replay.ts";

test("what a recording asks of a terminal is left out, and everything else stays", () => {
  const escape_ = "\u001b";
  const asks = [
    `${escape_}[6n`,
    `${escape_}[c`,
    `${escape_}[>0c`,
    `${escape_}]11;?\u0007`,
    `${escape_}P+q544e${escape_}\\`,
  ];
  for (const ask of asks) assert.equal(withoutQueries(Buffer.from(`a${ask}b`)).toString(), "ab", JSON.stringify(ask));
  const kept = `${escape_}[31mröt${escape_}[0m${escape_}[2J${escape_}[10;20Hx\r\n`;
  assert.equal(withoutQueries(Buffer.from(kept)).toString(), kept);
});

test("logs prints what was recorded and leaves; nothing is typed", async () => {
  let typed = "";
  const serve = (guest: Guest): void => {
    guest.onInput((text) => {
      typed += text;
    });
    guest.send({ ...opened, pastBytes: 10 });
    guest.write("output", "one\ntwo");
    guest.write("output", "\n3\n");
  };
  await withSessions(serve, async ({ run }) => {
    assert.deepEqual(await run("logs", "shop/web").ended, { code: 0, stdout: "one\ntwo\n3\n", stderr: "" });
  });
  await withSessions(
    (guest) => guest.send(opened),
    async ({ run }) => {
      assert.deepEqual(await run("logs", "shop/web").ended, { code: 0, stdout: "", stderr: "" }, "there was nothing");
    },
  );
  assert.equal(typed, "");
});

test("logs --follow goes on with the next incarnation, and a refusal at first is told", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: 2 + count, pastBytes: 4 });
    guest.write("output", `of ${count}`);
    if (count > 1) return;
    guest.write("output", "\nmore\n");
    guest.send({ kind: "ended", cause: "machine-ended", sentence: "it was stopped" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { child, ended } = run("logs", "shop/web", "--follow");
    let out = "";
    child.stdout.on("data", (text: string) => {
      out += text;
      if (out.endsWith("of 2")) child.kill("SIGINT");
    });
    const { stdout, stderr } = await ended;
    assert.equal(stdout, "of 1\nmore\nof 2");
    assert.match(
      stderr,
      /^\[incarnation 3 of shop\/web on host h1\]\n\[the console of shop\/web ended: it was stopped;/,
    );
    assert.match(stderr, /\[incarnation 4 of shop\/web on host h1\]\n$/);
  });
  const refusal = { status: 409, message: "the VM is off" };
  await withSessions(
    () => undefined,
    async ({ run }) => {
      const { code, stderr } = await run("logs", "shop/web", "-f").ended;
      assert.deepEqual([code, stderr], [1, "the VM is off\n"]);
    },
    refusal,
  );
});

test("logs of one incarnation are of no other, and with --follow they end with it", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: 2 + count, pastBytes: 4 });
    guest.write("output", `of ${count}`);
    if (count > 1) return;
    guest.send({ kind: "ended", cause: "machine-ended", sentence: "it was stopped" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { code, stdout } = await run("logs", "shop/web", "--follow", "--incarnation", "3").ended;
    assert.deepEqual([code, stdout], [0, "of 1"]);
    const gone = await run("logs", "shop/web", "--incarnation", "3").ended;
    assert.deepEqual([gone.code, gone.stdout], [1, ""]);
    assert.match(gone.stderr, /the record of incarnation 3 of shop\/web went with it, since .*: incarnation 4 runs/);
    const later = await run("logs", "shop/web", "-f", "--incarnation", "9").ended;
    assert.deepEqual([later.code, later.stdout], [1, ""]);
    assert.match(later.stderr, /shop\/web has had no incarnation 9 yet: incarnation 5 runs/);
  });
});

test("logs of an incarnation that has ended are asked for by its number, and end with it", async () => {
  const serve = (guest: Guest): void => {
    guest.send({ ...opened, incarnation: 2, pastBytes: 6 });
    guest.write("output", "panic\n");
    guest.send({ kind: "ended", cause: "machine-ended", sentence: "incarnation 2 of this VM has ended" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run, bodies }) => {
    for (const more of [[], ["--follow"]]) {
      const { code, stdout } = await run("logs", "shop/web", "--incarnation", "2", ...more).ended;
      assert.deepEqual([code, stdout], [0, "panic\n"]);
    }
    assert.match(bodies[0] ?? "", /"incarnation":2/);
  });
});

test("logs --follow of one incarnation goes on where the connection ends, or the host's service, and the machine does not", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: count > 3 ? 4 : 3, pastBytes: 4 });
    guest.write("output", `of ${count}`);
    if (count === 2) guest.send({ kind: "ended", cause: "closing", sentence: "the service restarts" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { code, stdout } = await run("logs", "shop/web", "--follow", "--incarnation", "3").ended;
    assert.deepEqual([code, stdout], [0, "of 1of 2of 3"]);
  });
});

test("logs in JSON say of which incarnation and host they are, and with --follow each piece is a line of its own", async () => {
  const serve = (guest: Guest, count: number): void => {
    guest.send({ ...opened, incarnation: 2 + count, pastBytes: 9 });
    // A sign that comes in two pieces is one all the same.
    const [first, second] = [Buffer.from("one\nö").subarray(0, 5), Buffer.from("one\nö").subarray(5)];
    guest.raw("output", first);
    guest.raw("output", Buffer.concat([second, Buffer.from("two")]));
    if (count === 1) return;
    guest.send({ kind: "ended", cause: "machine-ended", sentence: "it was stopped" });
    guest.socket.close();
  };
  await withSessions(serve, async ({ run }) => {
    const { code, stdout } = await run("logs", "shop/web", "--output", "json").ended;
    assert.deepEqual(
      [code, JSON.parse(stdout)],
      [0, { vm: "shop/web", incarnation: 3, host: "h1", text: "one\nötwo" }],
    );
    const lines = (await run("logs", "shop/web", "-f", "--incarnation", "4", "-o", "json").ended).stdout.trimEnd();
    assert.deepEqual(
      lines.split("\n").map((line) => JSON.parse(line)),
      [
        { vm: "shop/web", incarnation: 4, host: "h1", text: "one\n" },
        { vm: "shop/web", incarnation: 4, host: "h1", text: "ötwo" },
      ],
    );
  });
  await withSessions(
    (guest) => guest.send(opened),
    async ({ run }) => {
      const { stdout } = await run("logs", "shop/web", "-o", "json").ended;
      assert.equal(JSON.parse(stdout).text, "", "there was nothing");
    },
  );
});
