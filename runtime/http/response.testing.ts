import type { ServerResponse } from "node:http";

/** In place of a response on a connection: what a handler that answers at once has written. */
export interface RecordedResponse {
  readonly response: ServerResponse;
  status: number;
  text: string;
}
export const recordResponse = (): RecordedResponse => {
  const recorded: RecordedResponse = {
    response: {
      writeHead: (code: number) => {
        recorded.status = code;
      },
      end: (content: string) => {
        recorded.text = content;
      },
    } as unknown as ServerResponse,
    status: 0,
    text: "",
  };
  return recorded;
};
