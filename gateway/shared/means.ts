import type { FastifyServerFactory } from "fastify";
import type { Notifications } from "../follow/notifications/notifications.ts";
import type { OwnCertificate } from "../page/certificate/kept.ts";

export interface GatewayMeans {
  /** Absent: plain HTTP. */
  readonly serve?: FastifyServerFactory | undefined;
  readonly receivers?: Notifications["receivers"];
  /** By which browsers know the page; absent: it speaks no TLS itself. */
  readonly certificate?: OwnCertificate | undefined;
}
