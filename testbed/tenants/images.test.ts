import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { chromium, type Page } from "playwright-core";
import type { ImageSummary } from "../../model/api.ts";
import type { VolumeDetails } from "../../model/contract/tenancy/volumes/volumes.ts";
import type { Ended } from "../command.ts";
import { resolver } from "../configuration.ts";
import { type Testbed, withTestbed } from "../harness.ts";
import { cacheDirectory } from "../places.ts";
import { readRecord } from "../record.ts";
import { stateOf } from "./questions.testing.ts";

/**
 * Images from outside, as an operator brings them in: through the command line, the gateway and two real storage servers,
 * to volumes of a cell. What each hostile byte does is tried in `host/storage-agent/images/image-convert.test.ts`.
 */
const skip = process.getuid?.() === 0 ? false : "needs root, for namespaces";
const tiny = join(cacheDirectory(), "images", "tiny");

const said = async (t: Testbed, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 0, `cells ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
};
const refused = async (t: Testbed, why: RegExp, ...args: readonly string[]): Promise<void> => {
  const { code, stdout, stderr } = await t.cells(args);
  assert.equal(code, 1, `cells ${args.join(" ")}\n${stdout}`);
  assert.match(stderr, why);
  assert.equal(stderr.trim().split("\n").length, 1, "one sentence");
};
/** Those from outside and the tiny one. What else this machine has built is provided too. */
const images = async (t: Testbed): Promise<readonly ImageSummary[]> => {
  const listed = JSON.parse(await said(t, "image", "list", "--output", "json")) as ImageSummary[];
  return listed.filter(({ name, provided }) => !provided || name === "tiny");
};
const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  const end = performance.now() + 60_000;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};
/** The disk of a volume as its server has it. */
const diskOf = async (t: Testbed, path: string): Promise<string> => {
  const state = await stateOf(t, path);
  return join(t.at.directory, "members", String(state?.server), "data", "volumes", `${state?.uid}.qcow2`);
};
const qemu = (...command: readonly string[]): string =>
  execFileSync(command[0] ?? "", command.slice(1), { encoding: "utf8" });

/** An address that everybody on the Internet reaches, as far as the gateway can see; of the machine where an operator's resolver would be. */
const somewhere = { address: "1.2.3.4", port: 8080 } as const;
/** Serves a file there. Which paths were asked for is in another one. */
async function serveOutside(t: Testbed, file: string, asked: string): Promise<void> {
  const server = `
    const { appendFileSync, createReadStream, statSync } = require("node:fs");
    const [file, asked] = process.argv.slice(1);
    require("node:http").createServer(({ url }, answer) => {
      appendFileSync(asked, url + "\\n");
      if (url.includes("?")) return answer.writeHead(302, { location: "http://${resolver.address}/" }).end();
      answer.writeHead(200, { "content-length": statSync(file).size });
      createReadStream(file).pipe(answer).on("error", () => answer.destroy());
    }).listen(${somewhere.port}, () => appendFileSync(file + ".served", "served"));`;
  const done = async ({ code, stderr }: Ended): Promise<void> => assert.equal(code, 0, stderr);
  await done(await t.resolver(["ip", "address", "add", `${somewhere.address}/32`, "dev", "lo"]));
  await done(await t.exec("gateway", ["ip", "route", "add", somewhere.address, "via", resolver.address]));
  const command = 'setsid "$0" -e "$1" "$2" "$3" >/dev/null 2>&1 </dev/null &';
  await done(await t.resolver(["sh", "-c", command, process.execPath, server, file, asked]));
  await until("the server outside listens", async () => existsSync(`${file}.served`));
}

/** The page of its gateway, signed in as the operator, over a way that takes 16 MiB in a second. */
async function withPage(t: Testbed, work: (page: Page) => Promise<void>): Promise<void> {
  // Commands ask CaaS, whose door is not the page's: a sign-in is the gateway's.
  const url = `http://127.0.0.1:${readRecord(t.at)?.port}`;
  const { credential } = t.client();
  const headers = { authorization: `Bearer ${credential}` };
  const { code } = (await (await fetch(`${url}/login/codes`, { method: "POST", headers })).json()) as { code: string };
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(60_000);
    const way = await page.context().newCDPSession(page);
    await way.send("Network.enable");
    const rates = { downloadThroughput: -1, uploadThroughput: 16 * 2 ** 20 };
    await way.send("Network.emulateNetworkConditions", { offline: false, latency: 0, ...rates });
    await page.goto(`${url}/ui/#code=${code}`);
    await page.getByRole("button", { name: "Sign in as the operator" }).click();
    await page.getByRole("link", { name: "Storage" }).click();
    await work(page);
  } finally {
    await browser.close();
  }
}

test("images from outside become volumes, or are refused with their reason", { skip }, async (suite) => {
  await withTestbed({ hosts: 1, servers: 2, personalities: ["caas"] }, async (t) => {
    const work = dirname(t.configFile);
    const raw = join(work, "tiny.raw");
    const { disk } = JSON.parse(readFileSync(join(tiny, "manifest.json"), "utf8")) as { readonly disk: string };
    qemu("qemu-img", "convert", "-f", "qcow2", "-O", "raw", join(tiny, disk), raw);

    await suite.test("the same disk as raw and as qcow2", async () => {
      await said(t, "image", "add", "from-raw", raw, "--format", "raw");
      await said(t, "image", "add", "from-qcow2", join(tiny, disk), "--format", "qcow2");
      const list = await images(t);
      assert.deepEqual(
        list.map(({ name, servers, provided }) => [name, servers.join(), provided]),
        [
          ["from-qcow2", "s1,s2", false],
          ["from-raw", "s1,s2", false],
          ["tiny", "s1,s2", true],
        ],
      );
      assert.equal(list.find(({ name }) => name === "from-raw")?.digest, qemu("sha256sum", raw).split(" ")[0]);
      for (const server of ["s1", "s2"]) {
        for (const name of ["from-raw", "from-qcow2"]) {
          const directory = join(t.at.directory, "members", server, "data", "images", name);
          const file = readdirSync(directory).find((each) => each.endsWith(".qcow2")) ?? "";
          qemu("qemu-img", "compare", "-q", "-f", "raw", "-F", "qcow2", raw, join(directory, file));
        }
      }
    });

    await suite.test("volumes are made of them, on the servers that have them", async () => {
      writeFileSync(
        join(work, "disks.sf"),
        `disks extends Cell {
          r extends Volume { x.import "from-raw"; x.size 96; }
          q extends Volume { x.import "from-qcow2"; x.size 64; }
        }`,
      );
      await said(t, "apply", join(work, "disks.sf"), "--yes");
      for (const path of ["disks/r", "disks/q"]) {
        assert.equal((await stateOf(t, path))?.phase, "ready", path);
        // What is behind the image's end is zeros, which `compare` takes for the same.
        qemu("qemu-img", "compare", "-q", "-f", "raw", "-F", "qcow2", raw, await diskOf(t, path));
      }
    });

    await suite.test("bytes of a user's become a persistent volume, whole or not at all", async () => {
      const digest = qemu("sha256sum", raw).split(" ")[0] ?? "";
      const bring = (name: string, sha256: string): string[] => [
        "volume",
        "create",
        name,
        "--upload",
        raw,
        "--format",
        "raw",
        "--sha256",
        sha256,
      ];
      await refused(t, /have the SHA-256 .*nothing of them is kept/, ...bring("wrong", "0".repeat(64)));
      await said(t, ...bring("mine", digest));
      const show = async (): Promise<VolumeDetails> =>
        JSON.parse(await said(t, "volume", "show", "mine", "--output", "json")) as VolumeDetails;
      await until("it is made", async () => (await show()).versions[0]?.phase === "ready");
      const { uid } = await show();
      const disk = await diskOf(t, `primary/volumes/${uid}/v1`);
      qemu("qemu-img", "compare", "-q", "-f", "raw", "-F", "qcow2", raw, disk);
      await until("nothing waits any more", async () => !(await said(t, "image", "list")).includes("upload-"));
      await said(t, "volume", "delete", "mine", "--allow-destroy", "mine");
    });

    await suite.test("bytes behind a URL become one, if everybody on the Internet reaches it", async () => {
      const digest = qemu("sha256sum", raw).split(" ")[0] ?? "";
      const asked = join(work, "asked");
      writeFileSync(asked, "");
      await serveOutside(t, raw, asked);
      const bring = (name: string, url: string, sha256: string): string[] => {
        const what = ["--url", url, "--sha256", sha256, "--format", "raw"];
        return ["volume", "create", name, ...what];
      };
      // The same server, at its address of the management network.
      for (const host of [resolver.address, "127.0.0.1"])
        await refused(
          t,
          /leads to .*not everybody/,
          ...bring("inside", `http://${host}:${somewhere.port}/disk`, digest),
        );
      assert.equal(readFileSync(asked, "utf8"), "", "it was not asked");
      const url = `http://${somewhere.address}:${somewhere.port}/disk`;
      await refused(t, /redirects are not followed/, ...bring("led", `${url}?elsewhere`, digest));
      await refused(t, /have the SHA-256 .*nothing of them is kept/, ...bring("wrong", url, "0".repeat(64)));
      await said(t, ...bring("fetched", url, digest));
      assert.deepEqual(readFileSync(asked, "utf8").trim().split("\n"), ["/disk?elsewhere", "/disk", "/disk"]);
      const show = async (): Promise<VolumeDetails> =>
        JSON.parse(await said(t, "volume", "show", "fetched", "--output", "json")) as VolumeDetails;
      await until("it is made", async () => (await show()).versions[0]?.phase === "ready");
      const made = join(work, "made.raw");
      const disk = await diskOf(t, `primary/volumes/${(await show()).uid}/v1`);
      qemu("qemu-img", "convert", "-U", "-f", "qcow2", "-O", "raw", disk, made);
      assert.equal(qemu("sha256sum", made).split(" ")[0], digest);
      await until("nothing waits any more", async () => !(await said(t, "image", "list")).includes("upload-"));
      await said(t, "volume", "delete", "fetched", "--allow-destroy", "fetched");
    });

    await suite.test("what is hostile, or is not what it is said to be, is refused with its reason", async () => {
      const secret = join(work, "secret");
      writeFileSync(secret, "a line of the server\n".repeat(100));
      const backing = join(work, "backing.qcow2");
      qemu("qemu-img", "create", "-q", "-f", "qcow2", "-b", secret, "-F", "raw", backing);
      await refused(t, /"evil" is refused: it names a backing file/, "image", "add", "evil", backing, "-f", "qcow2");
      await refused(t, /begins as a qcow2 image, and was declared raw/, "image", "add", "evil", backing, "-f", "raw");
      const vmdk = join(work, "disk.vmdk");
      writeFileSync(vmdk, `# Disk DescriptorFile\nversion=1\nRW 8 FLAT "${secret}" 0\n`);
      await refused(t, /VMDK descriptor, which names other files/, "image", "add", "evil", vmdk, "-f", "raw");
      await refused(t, /comes with the installation/, "image", "add", "tiny", raw, "-f", "raw", "--replace");
      await refused(t, /choose another name, or replace it/, "image", "add", "from-raw", raw, "-f", "raw");
      for (const [args, why] of [
        [["../evil", raw, "-f", "raw"], /cannot name an image/],
        [["evil", join(work, "nothing"), "-f", "raw"], /there is no such file/],
        [["evil", work, "-f", "raw"], /no regular file/],
        [["evil", raw, "-f", "vmdk"], /raw or qcow2, not `vmdk`/],
      ] as const) {
        const { code, stderr } = await t.cells(["image", "add", ...args]);
        assert.equal(code, 2, stderr);
        assert.match(stderr, why);
      }
      assert.equal((await images(t)).length, 3);
      for (const server of ["s1", "s2"]) {
        const data = join(t.at.directory, "members", server, "data");
        assert.deepEqual(readdirSync(join(data, "image-staging")), []);
        assert.equal(qemu("sh", "-c", `grep -rl "a line of the server" ${data} || true`), "");
      }
    });

    await suite.test(
      "the page brings a file and says how far it is, and says of a hostile one what the server says",
      async () => {
        const backing = join(work, "backing.qcow2");
        await withPage(t, async (page) => {
          const form = page.getByRole("region", { name: "A new persistent volume" });
          const bring = async (file: string, name: string): Promise<void> => {
            await form.getByRole("combobox", { name: "Comes from" }).selectOption("a file of this machine");
            await form.getByLabel("File", { exact: true }).setInputFiles(file);
            await form.getByRole("textbox", { name: "Name" }).fill(name);
            await form.getByRole("button", { name: "Make it" }).click();
          };
          await bring(raw, "by-page");
          await page.getByText(/[1-9]\d* of \d+ MiB sent/).waitFor();
          const made = page.getByRole("listitem").filter({ hasText: "and changes of by-page" });
          await made.getByText("Versions, shares and changes of by-page").click();
          await made.getByText("✓ ready").waitFor();
          await bring(backing, "evil");
          const sentence =
            "the upload is refused: it names a backing file, another file that it would read; write it anew";
          await page.getByRole("alert").filter({ hasText: sentence }).waitFor();
        });
        const show = await said(t, "volume", "show", "by-page", "--output", "json");
        const { uid } = JSON.parse(show) as VolumeDetails;
        const disk = await diskOf(t, `primary/volumes/${uid}/v1`);
        qemu("qemu-img", "compare", "-q", "-f", "raw", "-F", "qcow2", raw, disk);
        assert.doesNotMatch(await said(t, "volume", "list"), /evil/);
        for (const server of ["s1", "s2"])
          assert.deepEqual(readdirSync(join(t.at.directory, "members", server, "data", "image-staging")), []);
        await until("nothing waits any more", async () => !(await said(t, "image", "list")).includes("upload-"));
        await said(t, "volume", "delete", "by-page", "--allow-destroy", "by-page");
      },
    );

    await suite.test("a server that was away lacks the image, and gets it when it is added again", async () => {
      await t.stop("s2");
      const first = await t.cells(["image", "add", "late", raw, "--format", "raw"]);
      assert.equal(first.code, 0, first.stderr);
      assert.match(first.stderr, /not on s2: .*does not answer/);
      await refused(t, /every storage server must be there/, "image", "add", "late", raw, "-f", "raw", "--replace");
      await t.start("s2");
      await until("s2 answers", async () => (await images(t)).some(({ servers }) => servers.includes("s2")));
      assert.deepEqual((await images(t)).find(({ name }) => name === "late")?.servers, ["s1"]);
      await said(t, "image", "add", "late", raw, "--format", "raw");
      assert.deepEqual((await images(t)).find(({ name }) => name === "late")?.servers, ["s1", "s2"]);
    });

    await suite.test("an agent that dies over an upload keeps nothing of it, and no server takes it", async () => {
      const large = join(work, "large.raw");
      qemu("sh", "-c", `head -c 128M /dev/urandom > ${large}`);
      const adding = t.cells(["image", "add", "large", large, "--format", "raw"]);
      const staging = join(t.at.directory, "members", "s1", "data", "image-staging");
      await until("the upload is there", async () => readdirSync(staging).length > 0);
      await t.kill("s1");
      assert.notEqual((await adding).code, 0);
      await until("s1 is back", async () => (await images(t)).some(({ servers }) => servers.includes("s1")));
      await until("nothing is left", async () => readdirSync(staging).length === 0);
      const left = await t.exec("s1", ["sh", "-c", "ls /proc/*/comm | xargs grep -l qemu-img 2>/dev/null || true"]);
      assert.equal(left.stdout.trim(), "", "no sandbox is left");
      assert.equal(
        (await images(t)).some(({ name }) => name === "large"),
        false,
      );
    });

    await suite.test("deleting and replacing leave volumes as they are", async () => {
      // A file with room to grow is long and mostly a hole: nobody reads it from end to end.
      const before = join(work, "before.qcow2");
      qemu("cp", "--sparse=auto", await diskOf(t, "disks/q"), before);
      await said(t, "image", "add", "from-qcow2", raw, "--format", "raw", "--replace");
      await said(t, "image", "delete", "from-qcow2");
      await refused(t, /there is no image "from-qcow2"/, "image", "delete", "from-qcow2");
      qemu("qemu-img", "compare", "-q", "-f", "qcow2", "-F", "qcow2", before, await diskOf(t, "disks/q"));
      assert.equal((await stateOf(t, "disks/q"))?.phase, "ready");
      // A new volume of it waits, and says for what; it comes as soon as the image does.
      writeFileSync(
        join(work, "more.sf"),
        `more extends Cell { v extends Volume { x.import "from-qcow2"; x.size 64; } }`,
      );
      await said(t, "apply", join(work, "more.sf"), "--yes", "--no-wait");
      await until("the volume says what it waits for", async () =>
        /no image "from-qcow2"/.test((await stateOf(t, "more/v"))?.reason ?? ""),
      );
      await said(t, "image", "add", "from-qcow2", join(tiny, disk), "--format", "qcow2");
      await until("the volume is there", async () => (await stateOf(t, "more/v"))?.phase === "ready");
      assert.ok(existsSync(await diskOf(t, "more/v")), basename(await diskOf(t, "more/v")));
    });
  });
});
