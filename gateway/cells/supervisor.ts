import { request } from "node:http";
import { text } from "node:stream/consumers";

/** What the supervisor said against a request, or that it does not answer. */
export class SupervisorError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Asks the supervisor on its unix socket (`SupervisorApi`). Rejects with a `SupervisorError`, 503 when nobody answers.
 */
export async function askSupervisor(socketPath: string, method: string, path: string): Promise<unknown> {
  const asking = request({ socketPath, method, path, timeout: 30_000 });
  asking.once("timeout", () => asking.destroy(new Error("it did not answer within 30 s")));
  const [status, body] = await new Promise<[number, string]>((resolve, reject) => {
    asking.once("error", (error) => reject(new SupervisorError(503, `the supervisor is not there: ${error.message}`)));
    asking.once("response", (response) => {
      text(response).then((whole) => resolve([response.statusCode ?? 500, whole]), reject);
    });
    asking.end();
  });
  if (status === 200) return body === "" ? null : JSON.parse(body);
  throw new SupervisorError(status, messageIn(body) ?? `the supervisor answered ${status}`);
}

function messageIn(body: string): string | null {
  try {
    const message: unknown = JSON.parse(body)?.error?.message;
    return typeof message === "string" ? message : null;
  } catch {
    return null;
  }
}
