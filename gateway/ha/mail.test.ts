import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { SMTPServer } from "smtp-server";
import type { Alert, Mail, Notice } from "../../core/ha/people/alert.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { type DueMail, mailNotices, messageOf, openMailSeal } from "../../runtime/ha/mail.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createAuthority, issueCertificate } from "../../runtime/identity/certificates.ts";
import { followMail, sendMail } from "./mail.ts";
import { startHaManager, until } from "./manager.testing.ts";

const anywhere = (): boolean => true;
const [user, password] = ["cells", "correct horse battery staple"];

/** A server that takes mail, whose certificate an authority of its own has signed, for the name `localhost`. */
const receiver = async (context: TestContext, options: { readonly plain?: true; readonly refuses?: number } = {}) => {
  const directory = await mkdtemp(join(tmpdir(), "cells-mail-"));
  await createAuthority(join(directory, "ca"));
  const issued = await issueCertificate(join(directory, "ca"), peerName("host.mail"), ["127.0.0.1", "localhost"]);
  const [cert, key] = await Promise.all([issued.certFile, issued.keyFile].map((file) => readFile(file)));
  const ca = await readFile(issued.caFile, "utf8");
  const got: { readonly text: string; readonly secure: boolean; readonly user?: string | undefined }[] = [];
  const logins: string[] = [];
  let refusing = options.refuses ?? 0;
  const server = new SMTPServer({
    cert: cert as Buffer,
    key: key as Buffer,
    closeTimeout: 500,
    ...(options.plain === true ? { disabledCommands: ["STARTTLS"] } : {}),
    onAuth: (auth, session, done) => {
      logins.push(`${auth.username} ${session.secure ? "with" : "without"} TLS`);
      const isRight = auth.username === user && auth.password === password;
      return isRight ? done(null, { user }) : done(new Error("that is not the password"));
    },
    onData: (stream, session, done) => {
      void text(stream).then((content) => {
        refusing -= 1;
        if (refusing >= 0) return done(Object.assign(new Error("try again later"), { responseCode: 451 }));
        got.push({ text: content, secure: session.secure, user: session.user });
        return done();
      });
    },
  });
  server.on("error", () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve());
  });
  context.after(async () => {
    server.close(() => undefined);
    await rm(directory, { recursive: true, force: true });
  });
  const { port } = server.server.address() as AddressInfo;
  return { got, logins, ca, server: `localhost:${port}` };
};
const due = (server: string, ca: string | null, more: Partial<DueMail> = {}): DueMail => ({
  number: 3,
  server,
  ca,
  login: { user, password },
  from: "cells@example.com",
  to: "oncall@example.com",
  subject: "[cells] an alert: held shop:shop/web",
  text: "look at it\n",
  messageId: "<cells.3.1@example.com>",
  ...more,
});

test("mail goes to the server by STARTTLS, with the login after it, and is known by its number", async (context) => {
  const there = await receiver(context);
  assert.equal(await sendMail(due(there.server, there.ca), anywhere), null);
  assert.deepEqual(there.logins, ["cells with TLS"]);
  const [{ text: content = "", secure, user: from } = {}] = there.got;
  assert.deepEqual([secure, from], [true, "cells"]);
  for (const line of [
    /^From: cells@example\.com$/m,
    /^To: oncall@example\.com$/m,
    /^Subject: \[cells\] an alert: held shop:shop\/web$/m,
    /^Message-ID: <cells\.3\.1@example\.com>$/im,
    /^Cells-Notice: 3$/m,
    /^Auto-Submitted: auto-generated$/m,
    /^look at it$/m,
  ])
    assert.match(content.replaceAll("\r", ""), line);
});

test("nothing is said to a server without TLS, with another's certificate, or inside of the installation", async (context) => {
  const plain = await receiver(context, { plain: true });
  assert.match((await sendMail(due(plain.server, plain.ca), anywhere)) ?? "", /STARTTLS/i);
  const there = await receiver(context);
  assert.match(
    (await sendMail(due(there.server, null), anywhere)) ?? "",
    /certificate|issuer|signed/i,
    "nobody knows who signed it",
  );
  assert.match(
    (await sendMail(due(there.server, plain.ca), anywhere)) ?? "",
    /certificate|signature/i,
    "somebody else's authority",
  );
  for (const [server, what] of [
    [
      there.server,
      /localhost leads to .*, which is an address of the installation.*: a mail server is outside of them/,
    ],
    ["10.0.0.2:25", /10\.0\.0\.2 leads to/],
    ["169.254.169.254", /169\.254\.169\.254 leads to/],
  ] as const)
    assert.match((await sendMail(due(server, there.ca))) ?? "", what);
  assert.deepEqual([plain.logins, plain.got, there.logins, there.got], [[], [], [], []]);
});

test("a certificate of another name is refused", async (context) => {
  const there = await receiver(context);
  const [, port] = there.server.split(":");
  // The same machine, by a name for which it has none.
  const answer = await sendMail(due(`ip6-localhost:${port}`, there.ca), anywhere);
  assert.match(answer ?? "", /ip6-localhost|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|altnames/i);
  assert.deepEqual(there.logins, []);
});

test("a wrong password, a server that does not take it, and one that says nothing are said", async (context) => {
  const there = await receiver(context, { refuses: 1 });
  const wrong = { login: { user, password: "wrong" } };
  const refused = (await sendMail(due(there.server, there.ca, wrong), anywhere)) ?? "";
  assert.match(refused, /login|535/i);
  assert.match((await sendMail(due(there.server, there.ca), anywhere)) ?? "", /451|try again later/i);
  assert.match((await sendMail(due("127.0.0.1:1", null), anywhere)) ?? "", /ECONNREFUSED/);
  assert.equal(there.got.length, 0);
});

test("what is said is one header and a few lines, whatever a path has in it", () => {
  const alert: Alert = {
    kind: "held" as const,
    subject: "shop:shop/web\r\nBcc: all@example.com",
    since: 0,
    sentence: "it waits",
  };
  const notice: Notice = { number: 1, event: "opened", alert, at: 1000 };
  const { subject, text: lines } = messageOf(notice);
  assert.equal(subject, "[cells] an alert: held shop:shop/web??Bcc: all@example.com");
  assert.match(lines, /^it waits\n\nopened 1970-01-01T00:00:01/);
  assert.match(messageOf({ ...notice, event: "test", alert: null }).subject, /told here/);
});

test("alerts go from a real HA Manager over mutual TLS and by mail to somebody, once each, also when his server was away; the password is sealed", async (context) => {
  const { configuration, gateway, request, written, now, remove } = await startHaManager("gateway-mail");
  const seal = await openMailSeal(configuration.directory);
  const served = await servePeers(configuration, mailNotices(seal).handler({ service: { request } } as never));
  const there = await receiver(context, { refuses: 1 });
  const end = followMail(gateway, anywhere);
  try {
    const login = { user, sealed: seal.seal(password) };
    const mail: Mail = {
      server: there.server,
      from: "cells@example.com",
      to: "oncall@example.com",
      ca: there.ca,
      login,
    };
    await request({ kind: "ha-mail-set", mail } as unknown as Json);
    await request({ kind: "ha-pause" });
    await request({ kind: "ha-release" });
    await until(() => there.got.length === 3, 600);
    assert.deepEqual(
      there.got.map(({ text: content }) => /^Subject: (.*)$/m.exec(content.replaceAll("\r", ""))?.[1]),
      ["[cells] alerts are told here", "[cells] an alert: paused", "[cells] an alert is over: paused"],
    );
    await until(() => now().mail.queue.size === 0, 600);
    assert.equal(now().notices.number, 0, "nobody registered a webhook");
    assert.ok(!written.join().includes(password), "the password is in no record and in no event");
  } finally {
    end();
    await served.stop();
    await remove();
  }
});

test("a server that accepts the connection and says nothing costs its time-out, and is told", {
  timeout: 30_000,
}, async (context) => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => {
    silent.listen(0, "127.0.0.1", () => resolve());
  });
  context.after(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  assert.match((await sendMail(due(`127.0.0.1:${port}`, null), anywhere)) ?? "", /greeting|timeout|time/i);
});
