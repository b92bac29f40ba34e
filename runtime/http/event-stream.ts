/** Whoever says them without end fills nobody's memory. */
const longestEvent = 4 * 1024 * 1024;

/** Events of a text/event-stream (HTML Living Standard, section 9.2.6) as they come; only `data` matters here. Ends with the stream, rejects when it breaks. */
export async function* readEventStream<E>(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<E> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? "";
    if (rest.length > longestEvent) throw new Error(`an event has more than ${longestEvent} characters`);
    for (const block of blocks) {
      const data = block
        .split(/\r?\n/)
        .flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trimStart()] : []))
        .join("\n");
      if (data !== "") yield JSON.parse(data) as E;
    }
  }
}
