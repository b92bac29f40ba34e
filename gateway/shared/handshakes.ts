import type { Server } from "node:https";
import type { Socket } from "node:net";
import { addressOf } from "../../runtime/transport/admission.ts";
import { Bucket, type Measure } from "./limits.ts";

/*
 * A handshake costs a door a signature, a key exchange and the buffers of a connection, before anything is known of who wants it. So each
 * source has so many a second, and more at once after a while of none (decision 251). Beyond that its connection ends before TLS hears of
 * it: there is no handshake to pay for, and no answer either, since an answer would take one.
 */
export const handshakesOfSource: Measure = { rate: 50, burst: 256 };

export type Admits = (source: string) => boolean;
export function createHandshakes(nowMs: () => number, measure: Measure = handshakesOfSource): Admits {
  const sources = new Bucket(measure);
  return (source) => {
    const now = nowMs();
    if (sources.leftOf(source, now) < 1) return false;
    sources.take(source, now);
    return true;
  };
}

/**
 * A connection from the machine itself is one of a personality beside the gateway: its clients were measured at its own door, and have
 * one source here.
 * @param isPassedOn of a source that stands for many, which were measured where they came in
 */
export function boundHandshakes(
  server: Server,
  admits: Admits = createHandshakes(() => performance.now()),
  isPassedOn: (source: string) => boolean = () => false,
): void {
  const begins = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const source = addressOf(socket);
    if (source !== socket.localAddress && !isPassedOn(source) && !admits(source)) socket.destroy();
    else for (const begin of begins) begin.call(server, socket);
  });
}
