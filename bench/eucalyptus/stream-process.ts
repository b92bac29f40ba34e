import { createSocket, type Socket } from "node:dgram";
import { readFileSync } from "node:fs";
import { serve } from "../../host/drivers/network/diverter/testing/serve.testing.ts";

/* An end of streams of datagrams, one in a millisecond, that counts what it sends and what comes. */
const everyMs = 1;

export interface Counts {
  readonly sent: number;
  readonly received: number;
  /** What has come to this machine and found no room at its socket: nobody's rule took it. */
  readonly overflown: number;
}
const socket: Socket = createSocket({ type: "udp4" });
let timer: NodeJS.Timeout | null = null;
let [sent, received] = [0, 0];

/** @param answers what comes is sent back */
const listen = (port: number, answers: boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.on("message", (data, from) => {
      received += 1;
      if (answers) socket.send(data, from.port, from.address);
    });
    socket.bind(port, resolve);
  });
function begin(address: string, port: number): void {
  timer = setInterval(() => {
    sent += 1;
    socket.send("datagram", port, address);
  }, everyMs);
}
function rest(): void {
  if (timer !== null) clearInterval(timer);
  timer = null;
}
function overflown(): number {
  const [names = [], values = []] = readFileSync("/proc/net/snmp", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("Udp: "))
    .map((line) => line.split(" "));
  return Number(values[names.indexOf("RcvbufErrors")] ?? 0);
}

serve((method, args) => {
  switch (method) {
    case "listen":
      return listen(Number(args[0]), args[1] === true);
    case "begin":
      return begin(String(args[0]), Number(args[1]));
    case "rest":
      return rest();
    case "counts":
      return { sent, received, overflown: overflown() } satisfies Counts;
    default:
      throw new Error(`no method ${method}`);
  }
});
