import { Terminal } from "@xterm/xterm";
import { useCallback, useEffect, useRef, useState } from "react";
import type { PageSession } from "../../data/session.ts";
import { Connection } from "./connection.tsx";
import { ConsoleSearch } from "./console-search.tsx";
import { stylesBearNonce } from "./nonce.ts";
import { type Screen, useSession } from "./use-session.ts";

/** A VM's serial console. What its guest writes moves this terminal alone: neither its title, nor links, nor the clipboard are the guest's. */
export function SerialConsole({ cell, vm }: { cell: string; vm: string }) {
  const box = useRef<HTMLDivElement>(null);
  const terminal = useRef<Terminal | null>(null);
  const session = useRef<() => PageSession | null>(() => null);
  const isReplayed = useRef(false);
  const [isReady, setReady] = useState(false);
  const [said, say] = useState<string | null>(null);
  useEffect(() => {
    if (box.current === null) return;
    stylesBearNonce();
    const made = new Terminal({
      cols: 80,
      rows: 24,
      scrollback: 2000,
      fontSize: 14,
      screenReaderMode: true,
      convertEol: false,
      linkHandler: { activate: () => undefined },
    });
    made.open(box.current);
    const encoder = new TextEncoder();
    made.onData((text) => {
      // What the guest has asked a terminal before, or long ago, is not answered by this one now: the answer would be typed.
      if (isReplayed.current && text.startsWith("\u001b")) return;
      const isSent = session.current()?.send(encoder.encode(text)) ?? false;
      say(
        isSent
          ? null
          : "What was typed is not sent: there is no connection, or the guest has not read what came before.",
      );
    });
    terminal.current = made;
    // One that nobody sees is not painted either.
    box.current.scrollIntoView({ block: "nearest" });
    made.focus();
    setReady(true);
    return () => {
      terminal.current = null;
      made.dispose();
    };
  }, []);
  const begin = useCallback((current: () => PageSession | null): Screen => {
    session.current = current;
    let [past, unpainted, missing] = [0, 0, 0];
    const line = (text: string): void => terminal.current?.write(`\r\n\u001b[0m[${text}]\r\n`);
    return {
      bytes: (bytes) => {
        const isPast = past > 0;
        past -= Math.min(past, bytes.length);
        // What the terminal has yet to paint is kept in this page: a guest must not fill it.
        if (unpainted > mostUnpainted) {
          missing += bytes.length;
          return;
        }
        if (missing > 0) line(`${missing} bytes are missing here: they came too fast`);
        missing = 0;
        unpainted += bytes.length;
        if (isPast) isReplayed.current = true;
        terminal.current?.write(bytes, () => {
          unpainted -= bytes.length;
          if (past === 0) isReplayed.current = false;
        });
      },
      message: (message) => {
        if (message.kind === "opened") {
          past = message.pastBytes;
          terminal.current?.reset();
          line(`incarnation ${message.incarnation}; ${atIt(message.viewers)}`);
        } else if (message.kind === "viewers") line(atIt(message.count));
        else if (message.kind === "lost") line(`${message.bytes} bytes are missing here: they came too fast`);
      },
    };
  }, []);
  const shown = useSession({ cell, vm, verb: "console" }, isReady ? begin : null);
  return (
    <Connection shown={shown} said={said}>
      <ConsoleSearch terminal={terminal} />
      <section className="screen" ref={box} aria-label={`Console of ${vm}`} />
    </Connection>
  );
}
const mostUnpainted = 1024 * 1024;
const atIt = (count: number): string =>
  count === 1 ? "nobody else is at it" : `${count} are at it; all see it, all may type`;
