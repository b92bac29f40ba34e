import { request } from "node:http";
import type { MemberStatus } from "./supervised.ts";

/** Asks the supervisor on its unix socket. Rejects when there is none, or with what it says against it. */
export const askSupervisor = <T>(socketPath: string, method: string, path: string, body?: unknown): Promise<T> =>
  new Promise((resolve, reject) => {
    const asking = request({ socketPath, method, path, timeout: 30_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("error", reject).on("end", () => {
        const answer = JSON.parse(text === "" ? "null" : text) as T & { error?: { message: string } };
        if (response.statusCode === 200) resolve(answer);
        else reject(new Error(answer.error?.message ?? `the supervisor answered ${response.statusCode}`));
      });
    });
    asking.once("error", reject).once("timeout", () => asking.destroy(new Error("the supervisor does not answer")));
    asking.end(body === undefined ? undefined : JSON.stringify(body));
  });

/** Undefined when no supervisor answers. */
export const memberStatus = async (socketPath: string): Promise<readonly MemberStatus[] | undefined> => {
  try {
    return (await askSupervisor<{ services: readonly MemberStatus[] }>(socketPath, "GET", "/status")).services;
  } catch {
    return undefined;
  }
};
