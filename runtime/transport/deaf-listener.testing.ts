import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";

/** Listens, and takes no connection: as many wait as its kernel lets, and nothing answers the others. */
export const deafListener = async (): Promise<{ readonly port: number; end(): void }> => {
  const program =
    'const s = require("node:net").createServer(); s.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => console.log(s.address().port));';
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(line);
  child.kill("SIGSTOP");
  const waiting = Array.from({ length: 8 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  return {
    port,
    end: () => {
      for (const socket of waiting) socket.destroy();
      child.kill("SIGKILL");
    },
  };
};
