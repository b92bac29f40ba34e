import { isObject } from "../../core/outbox.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { DueMail } from "../../runtime/ha/mail.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { followDue, isOutside, outsideAddress } from "./notices.ts";

/*
 * Carries alerts to whoever reads mail: one message after the other, to the server that the operator has named, and to none that is inside of the
 * installation, by the checks of webhooks. Nothing is said to a server before TLS, whose certificate has the name that was said.
 * `nodemailer` speaks SMTP (decision 91); `modules.d.ts` says what is used of it.
 */
const tlsPort = 465;
const submissionPort = 587;
const patienceMs = 10_000;
/** All of it, however slowly a server goes on. */
const mostMs = 30_000;

/** `HOST` or `HOST:PORT`, as the contract has it. */
export const serverOf = (server: string): { readonly host: string; readonly port: number } => {
  const [host = "", port] = server.split(":");
  return { host, port: port === undefined ? submissionPort : Number(port) };
};

/** Null: the server has taken it; else why not, a sentence. */
export const sendMail = async (mail: DueMail, allows: typeof isOutside = isOutside): Promise<string | null> => {
  const { host, port } = serverOf(mail.server);
  // Loaded when there is something to be said: hardly any gateway ever does.
  const { createTransport } = await import("nodemailer");
  let overdue: NodeJS.Timeout | undefined;
  try {
    const transport = createTransport({
      // What was looked at is what is spoken to; its certificate is for the name.
      host: await outsideAddress(host, "a mail server", allows),
      port,
      secure: port === tlsPort,
      requireTLS: true,
      tls: { servername: host, ...(mail.ca === null ? {} : { ca: mail.ca }) },
      ...(mail.login === null ? {} : { auth: { user: mail.login.user, pass: mail.login.password } }),
      connectionTimeout: patienceMs,
      greetingTimeout: patienceMs,
      socketTimeout: patienceMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    const late = new Promise<never>((_resolve, reject) => {
      overdue = setTimeout(() => {
        transport.close();
        reject(new Error(`${host} had not taken it after ${mostMs / 1000} s`));
      }, mostMs);
    });
    const { from, to, subject, text, number, messageId } = mail;
    const sent = transport.sendMail({
      from,
      to,
      subject,
      text,
      messageId,
      date: new Date(),
      headers: { "Auto-Submitted": "auto-generated", "Cells-Notice": `${number}` },
    });
    await Promise.race([sent, late]);
    return null;
  } catch (error) {
    return (error as Error).message.replace(/\s+/g, " ").slice(0, 300);
  } finally {
    clearTimeout(overdue);
  }
};

/** As long as the process lives. @returns what ends that */
export const followMail = (configuration: ProcessConfiguration, allows: typeof isOutside = isOutside): (() => void) =>
  followDue(configuration, peerName("ha-manager"), "/mail", (due) => {
    const isMail = isObject(due as never) && typeof (due as { server?: unknown }).server === "string";
    return isMail ? sendMail(due as unknown as DueMail, allows) : Promise.resolve("it is no mail");
  });
