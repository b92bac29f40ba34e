import { writeSync } from "node:fs";
import { createConnection } from "vscode-languageserver/node";
import { FramedInput } from "./framed-input.ts";
import { LanguageServer } from "./server.ts";

/**
 * `cells spec serve`: the language server over standard input and output, until the client says `exit` or closes its end.
 * Exit code 0 after a `shutdown`, else 1. It opens no connection and reads files of the client's workspace only.
 */
export function serve(input: NodeJS.ReadableStream, output: NodeJS.WritableStream): void {
  const framed = new FramedInput();
  framed.on("error", (error) => {
    writeSync(2, `cells spec serve: ${error.message}\n`);
    process.exit(1);
  });
  // The client is gone without a word.
  output.on("error", () => process.exit(1));
  const connection = createConnection(framed, output);
  new LanguageServer(connection);
  connection.listen();
  input.pipe(framed);
}
