import { connect } from "node:net";

/** Whether anybody takes a connection there within so many milliseconds. Also false where somebody refuses: the address alone is no service. */
export const listens = (host: string, port: number, timeoutMs: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const settle = (answer: boolean) => () => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", settle(true));
    socket.once("error", settle(false));
    socket.once("timeout", settle(false));
  });
