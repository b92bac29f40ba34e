import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { connect } from "node:tls";

/**
 * Someone who does what no service of an installation does, run in a member's namespaces. Arguments: what, the address of a
 * host, and where it speaks TLS the directory of a certificate. Ends when the other side has closed.
 */
const [, , what = "", address = "", directory = ""] = process.argv;
const port = 7100;
const times = 20;

const sendDatagrams = async (): Promise<void> => {
  const socket = createSocket("udp4");
  for (let count = 0; count < times; count += 1) {
    // A packet has its magic first; the rest of a forged one comes from nowhere.
    const bytes = Buffer.alloc(20 + count * 10, count);
    await new Promise((resolve) => socket.send(bytes, port, address, resolve));
  }
  socket.close();
};

/** One connection after the other, each ended by the other side. */
const speak = async (first: Buffer, secured: boolean): Promise<void> => {
  const read = (name: string): Buffer => readFileSync(`${directory}/${name}.pem`);
  for (let count = 0; count < times; count += 1) {
    const socket = secured
      ? connect({
          host: address,
          port,
          rejectUnauthorized: false,
          servername: "",
          cert: read("certificate"),
          key: read("key"),
          ca: read("authority"),
        })
      : connectTcp({ host: address, port });
    socket.on("error", () => undefined).resume();
    socket.write(first);
    await once(socket, "close");
  }
};

const frame = (value: object): Buffer => {
  const body = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, body]);
};

switch (what) {
  case "datagrams":
    await sendDatagrams();
    break;
  case "long-frame":
    await speak(Buffer.from([0x7f, 0xff, 0xff, 0xff, 1, 2, 3]), true);
    break;
  case "version":
    await speak(frame({ frame: "hello", version: 99, generation: 1, session: 1, name: "agent.s1" }), true);
    break;
  case "certificate":
    await speak(frame({ frame: "hello", version: 1, generation: 1, session: 1, name: "agent.s1" }), true);
    break;
  case "no-tls":
    await speak(Buffer.from("GET / HTTP/1.0\r\n\r\n"), false);
    break;
  default:
    throw new Error(`there is no "${what}"`);
}
