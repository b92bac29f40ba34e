/** What is used of it. */
declare module "nodemailer" {
  interface Transport {
    sendMail(message: {
      readonly from: string;
      readonly to: string;
      readonly subject: string;
      readonly text: string;
      readonly messageId: string;
      readonly date: Date;
      readonly headers: Readonly<Record<string, string>>;
    }): Promise<unknown>;
    close(): void;
  }
  /** `host` may be an address: `tls.servername` is what the certificate is for. Times in milliseconds. */
  export function createTransport(options: {
    readonly host: string;
    readonly port: number;
    /** TLS from the first byte on; else STARTTLS, which `requireTLS` insists on. */
    readonly secure: boolean;
    readonly requireTLS: boolean;
    readonly tls: { readonly servername: string; readonly ca?: string };
    readonly auth?: { readonly user: string; readonly pass: string };
    readonly connectionTimeout: number;
    readonly greetingTimeout: number;
    readonly socketTimeout: number;
    readonly disableFileAccess: boolean;
    readonly disableUrlAccess: boolean;
  }): Transport;
}

/** What a test asks of it: a server that takes mail. */
declare module "smtp-server" {
  import type { Server } from "node:net";
  import type { Readable } from "node:stream";

  type Done = (error?: Error | null, more?: object) => void;
  export class SMTPServer {
    constructor(options: {
      readonly key: Buffer;
      readonly cert: Buffer;
      readonly secure?: boolean;
      readonly disabledCommands?: readonly string[];
      readonly closeTimeout?: number;
      readonly onAuth: (
        auth: { readonly username?: string; readonly password?: string },
        session: { readonly secure: boolean },
        done: Done,
      ) => void;
      readonly onData: (
        stream: Readable,
        session: { readonly secure: boolean; readonly user?: string; readonly servername?: string },
        done: Done,
      ) => void;
    });
    readonly server: Server;
    on(event: "error", listener: (error: Error) => void): this;
    listen(port: number, host: string, done: () => void): Server;
    close(done: () => void): void;
  }
}
