import {
  boolean,
  dictionary,
  exactly,
  integer,
  list,
  nullable,
  type OrLater,
  oneOf,
  optional,
  orLater,
  pattern,
  record,
  secret,
  text,
  time,
} from "../schema.ts";

/** How the management controller of a host is reached: `PUT /hosts/{name}/power`. The password goes no further than it has to. */
export interface PowerControllerWord {
  readonly kind: "ipmi" | "redfish" | "agent";
  /** `ADDRESS` or `ADDRESS:PORT`. */
  readonly address: string;
  readonly user: string;
  readonly password: string;
  /** Of IPMI: the cipher suite. Absent: 17. */
  readonly suite?: 3 | 17;
  /** Of Redfish: SHA-256 of the controller's certificate, hexadecimal. */
  readonly fingerprint?: string;
  /** Of an agent: the program of `fence-agents`; the plug as its device calls it (absent: it has one alone); further options of the program. */
  readonly agent?: string;
  readonly plug?: string;
  readonly options?: { readonly [name: string]: string };
}
/** It was tried: another host reads there that the host is on, with the UUID that the host says it has; by an agent, twice. */
export interface PowerRegistered {
  readonly host: string;
  readonly kind: "ipmi" | "redfish" | "agent";
  readonly address: string;
  /** Of an agent empty: it shows none. */
  readonly uuid: string;
  readonly power: "on";
}
export interface PowerRemoved {
  readonly wasThere: boolean;
}

/** What the HA Manager works on, and what it has done lately (`core/ha/`). */
export interface HaReport {
  /** Incarnations of VMs that it looks after. */
  readonly protected: number;
  /**
   * Many hosts were lost at once: tenants' machines wait until a person has looked. `asked`: the operator has said beforehand that hosts
   * will be switched off, and all machines wait. Null: neither. ISO 8601.
   */
  readonly storm: { readonly since: string; readonly hosts: readonly string[]; readonly asked?: true } | null;
  /** What waits for a person, the first one first. Absent: a HA Manager of the previous version. */
  readonly alerts?: readonly HaAlert[];
  /** Where alerts are told to: how many notices wait, and why the last attempt was not taken (null: it was, or there was none). Absent: nowhere. */
  readonly webhook?: { readonly url: string; readonly waiting: number; readonly said: string | null };
  /** Who is told of alerts by mail, likewise. Absent: nobody. */
  readonly mail?: {
    readonly server: string;
    readonly to: string;
    readonly waiting: number;
    readonly said: string | null;
  };
  /** Hosts whose power can be cut, and what their controllers said last. Absent: a HA Manager of an earlier version. */
  readonly power?: readonly HaPower[];
  /** Those that are being worked on first, then those that have ended, the last one first. */
  readonly items: readonly HaItem[];
  /** HA Managers that did not answer, each with why: what they look after and work on is missing here. Absent: all have answered. */
  readonly silent?: readonly HaSilent[];
}
export interface HaSilent {
  /** `ha-manager`, or `ha-manager.<n>` of a further one. */
  readonly manager: string;
  readonly sentence: string;
}
export interface HaPower {
  readonly host: string;
  readonly kind: OrLater<"ipmi" | "redfish" | "agent">;
  readonly address: string;
  /** Of an agent empty: it shows none. */
  readonly uuid: string;
  readonly agent?: string;
  readonly plug?: string;
  /** A sentence; null: nothing was asked since the start. */
  readonly said: string | null;
}
export interface HaAlert {
  /** `paused`: many hosts were lost at once; `held`: a VM was started again too often, or its hosts were lost soon after it came; `isolated`: a host that is declared dead may run on; `unfenced`: a fence takes too long; `stuck`: a host that is heard does not start or stop what it was asked to; `unguarded`: the HA Manager of a cell is gone; `system-hosts`: fewer hosts are left to the cloud's own VMs than are to be. */
  readonly kind: OrLater<"paused" | "held" | "isolated" | "unfenced" | "stuck" | "unguarded" | "system-hosts">;
  /** A host, or a VM as `cell:path`; of `paused` and `system-hosts` nothing. */
  readonly subject: string;
  /** ISO 8601. */
  readonly since: string;
  /** What is so, and what helps. */
  readonly sentence: string;
  /** When somebody has said that he looks after it, ISO 8601. Absent: nobody has. */
  readonly acknowledged?: string;
}
/** Where alerts are told to: `PUT /alerts/webhook`. */
export interface WebhookWord {
  /** `http` or `https`; neither of the installation itself nor of the gateway's own machine. */
  readonly url: string;
  /** With it each notice is signed; it is shown to nobody again. */
  readonly secret: string;
}
export interface WebhookRegistered {
  readonly url: string;
}
export interface WebhookRemoved {
  readonly wasThere: boolean;
}
/** To whom alerts are told by mail: `PUT /alerts/mail`. */
export interface MailWord {
  /** `HOST` or `HOST:PORT`, 587 unless said. At port 465 TLS is spoken at once, else after STARTTLS; without TLS nothing is sent. */
  readonly server: string;
  readonly from: string;
  readonly to: string;
  /** With it the gateway logs in there; the password is shown to nobody again. Absent: it does not log in. */
  readonly login?: { readonly user: string; readonly password: string };
  /** PEM of who has signed the server's certificate. Absent: somebody whom the system knows. */
  readonly ca?: string;
}
export interface MailRegistered {
  readonly server: string;
  readonly to: string;
}
export interface MailRemoved {
  readonly wasThere: boolean;
}
/** The body of what is posted to a webhook. `number` grows by one with each; one may come twice. */
export interface AlertNotice {
  readonly number: number;
  /** `test`: the webhook was registered. */
  readonly event: "opened" | "acknowledged" | "ended" | "test";
  /** Null for a test. */
  readonly alert: HaAlert | null;
  /** ISO 8601. */
  readonly at: string;
}
export interface HaItem {
  /**
   * Of a VM whose host is lost, `HA`: it starts elsewhere, `Stop` and `Destroy`: it is freed of that host. In order, `Migration`: it leaves its host,
   * `CheckStop`: its host, which is heard, does not stop it, `ForceStop`: an operator has freed it of its host.
   */
  readonly type: OrLater<"HA" | "Stop" | "Destroy" | "Migration" | "CheckStop" | "ForceStop">;
  /** `Error`: another version has written it, and this one cannot read it. */
  readonly step: OrLater<
    "Scheduled" | "Investigating" | "Fencing" | "Stopping" | "Migrating" | "Restarting" | "Done" | "Cancelled" | "Error"
  >;
  readonly vm: string;
  readonly cell: string;
  readonly path: string;
  readonly incarnation: number;
  readonly host: string;
  /** Why it was scheduled, and why it ended as it did (null: it has not): sentences. */
  readonly reason: string;
  readonly outcome: string | null;
  /** Why it waits for a person, a sentence; null: it does not. */
  readonly held: string | null;
  /** What made sure that nothing of it can write; null: nothing has. */
  readonly fencedBy: OrLater<"storage" | "power" | "recreatable" | "stopped"> | null;
  /** ISO 8601: when it was scheduled, and since when it is at its step. */
  readonly scheduled: string;
  readonly since: string;
  /** What each said when it was last asked. */
  readonly investigators: readonly HaAnswer[];
  readonly fencers: readonly HaAnswer[];
  /** All tries are used up, and nobody tries it any more. Absent: not so. */
  readonly gaveUp?: true;
}
export interface HaAnswer {
  readonly by: string;
  /** Of a fencer, "Stopped": it is fenced. */
  readonly says: "Running" | "Stopped" | "Unknown";
  readonly sentence: string;
  /** Since when it says that, ISO 8601. */
  readonly since: string;
}

const haAnswer = record<HaAnswer>(
  { by: text(), says: oneOf("Running", "Stopped", "Unknown"), sentence: text(), since: time },
  "HaAnswer",
);
const haItem = record<HaItem>(
  {
    type: orLater("HA", "Stop", "Destroy", "Migration", "CheckStop", "ForceStop"),
    step: orLater(
      ...(["Scheduled", "Investigating", "Fencing", "Stopping", "Migrating"] as const),
      ...(["Restarting", "Done", "Cancelled", "Error"] as const),
    ),
    vm: text(),
    cell: text(),
    path: text(),
    incarnation: integer(),
    host: text(),

    reason: text(),
    outcome: nullable(text()),
    held: nullable(text()),
    fencedBy: nullable(orLater("storage", "power", "recreatable", "stopped")),
    scheduled: time,
    since: time,
    investigators: list(haAnswer),
    fencers: list(haAnswer),
    gaveUp: optional(exactly(true)),
  },
  "HaItem",
);
const haAlert = record<HaAlert>(
  {
    kind: orLater("paused", "held", "isolated", "unfenced", "stuck", "unguarded", "system-hosts"),
    subject: text(),
    since: time,
    sentence: text(),
    acknowledged: optional(time),
  },
  "HaAlert",
);
export const webhookWord = record<WebhookWord>(
  {
    url: pattern(
      /^https?:\/\/[^\s@/?#]{1,300}(?:[/?][^\s#]{0,1700})?$/,
      "an http or https URL without a user and a fragment",
    ),
    secret: secret(/^[^\0\n]{16,256}$/, "16 to 256 characters in one line"),
  },
  "WebhookWord",
);
const mailAddress = pattern(
  /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/,
  "one address, name@domain",
);
export const mailWord = record<MailWord>(
  {
    server: pattern(/^[A-Za-z0-9][A-Za-z0-9.-]{0,250}(?::\d{1,5})?$/, "HOST or HOST:PORT, a name or IPv4"),
    from: mailAddress,
    to: mailAddress,
    login: optional(
      record<NonNullable<MailWord["login"]>>({
        user: pattern(/^[^\0\r\n]{1,256}$/, "at most 256 characters in one line"),
        password: secret(/^[^\0\r\n]{1,256}$/, "at most 256 characters in one line"),
      }),
    ),
    ca: optional(
      pattern(
        /^-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s-]{1,12000}$/,
        "certificates in PEM, at most 12,000 characters",
      ),
    ),
  },
  "MailWord",
);
export const mailRegistered = record<MailRegistered>({ server: text(), to: text() }, "MailRegistered");
export const mailRemoved = record<MailRemoved>({ wasThere: boolean }, "MailRemoved");
export const webhookRegistered = record<WebhookRegistered>({ url: text() }, "WebhookRegistered");
export const webhookRemoved = record<WebhookRemoved>({ wasThere: boolean }, "WebhookRemoved");
const haPower = record<HaPower>(
  {
    host: text(),
    kind: orLater("ipmi", "redfish", "agent"),
    address: text(),
    uuid: text(),
    agent: optional(text()),
    plug: optional(text()),
    said: nullable(text()),
  },
  "HaPower",
);
export const haReport = record<HaReport>(
  {
    protected: integer(),
    storm: nullable(
      record<NonNullable<HaReport["storm"]>>({ since: time, hosts: list(text()), asked: optional(exactly(true)) }),
    ),
    alerts: optional(list(haAlert)),
    webhook: optional(
      record<NonNullable<HaReport["webhook"]>>({ url: text(), waiting: integer(), said: nullable(text()) }),
    ),
    mail: optional(
      record<NonNullable<HaReport["mail"]>>({
        server: text(),
        to: text(),
        waiting: integer(),
        said: nullable(text()),
      }),
    ),
    power: optional(list(haPower)),
    items: list(haItem),
    silent: optional(list(record<HaSilent>({ manager: text(), sentence: text() }, "HaSilent"))),
  },
  "HaReport",
);

/** Agents put some of them into the command lines of other programs: there it is one word, and no option. */
const agentWord = pattern(
  /^[A-Za-z0-9_][A-Za-z0-9_.:/@,>-]{0,127}$/,
  "at most 128 letters, digits and _.:/@,>- of which the first is a letter, a digit or _",
);
/** As the gateway takes it, the HA Manager, and the host that asks the controller: no word of it could be an option of a program. */
export const powerController = record<PowerControllerWord>(
  {
    kind: oneOf("ipmi", "redfish", "agent"),
    address: pattern(/^[A-Za-z0-9][A-Za-z0-9.-]{0,250}(?::\d{1,5})?$/, "ADDRESS or ADDRESS:PORT, IPv4 or a name"),
    user: pattern(/^(?:[^-\0\n][^\0\n]{0,255})?$/, "at most 256 characters in one line, the first one no hyphen"),
    password: secret(/^[^\0\n]{0,256}$/, "at most 256 characters in one line"),
    suite: optional(oneOf(3, 17)),
    fingerprint: optional(pattern(/^[0-9a-f]{64}$/, "a SHA-256, hexadecimal")),
    agent: optional(pattern(/^fence_[a-z0-9_]{1,40}$/, "a program of `fence-agents`, fence_…")),
    plug: optional(agentWord),
    options: optional(dictionary(agentWord)),
  },
  "PowerControllerWord",
);
export const powerRegistered = record<PowerRegistered>(
  { host: text(), kind: oneOf("ipmi", "redfish", "agent"), address: text(), uuid: text(), power: exactly("on") },
  "PowerRegistered",
);
export const powerRemoved = record<PowerRemoved>({ wasThere: boolean }, "PowerRemoved");
/** What a host read at another one's controller. */
export const powerReading = record<PowerReadingWord>({
  power: nullable(oneOf("on", "off")),
  uuid: nullable(text()),
  reason: nullable(text()),
});
interface PowerReadingWord {
  readonly power: "on" | "off" | null;
  readonly uuid: string | null;
  readonly reason: string | null;
}
