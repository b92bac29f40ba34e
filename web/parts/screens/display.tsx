import RFB from "@novnc/novnc";
import { type FormEvent, useCallback, useRef, useState } from "react";
import type { PageSession } from "../../data/session.ts";
import { keysymsOf } from "../../state/screens/keysyms.ts";
import { Connection } from "./connection.tsx";
import { RfbChannel } from "./rfb-channel.ts";
import { type Screen, useSession } from "./use-session.ts";

/** A VM's screen, keyboard and pointer. */
export function Display({ cell, vm }: { cell: string; vm: string }) {
  const box = useRef<HTMLElement>(null);
  const keyboard = useRef<RFB | null>(null);
  const begin = useCallback((current: () => PageSession | null): Screen => {
    const channel = new RfbChannel(current);
    let rfb: RFB | null = null;
    return {
      bytes: (bytes) => channel.give(bytes),
      message: (message) => {
        if (message.kind !== "opened" || box.current === null) return;
        rfb = new RFB(box.current, channel, { shared: true });
        rfb.scaleViewport = true;
        rfb.focusOnClick = true;
        keyboard.current = rfb;
        channel.opened();
      },
      left: () => {
        channel.left();
        if (keyboard.current === rfb) keyboard.current = null;
        rfb = null;
        box.current?.replaceChildren();
      },
    };
  }, []);
  const shown = useSession({ cell, vm, verb: "display" }, begin);
  return (
    <Connection shown={shown} said={null}>
      <section className="screen display" ref={box} aria-label={`Display of ${vm}`} />
      <Typed
        vm={vm}
        type={(text) => {
          for (const keysym of keysymsOf(text)) keyboard.current?.sendKey(keysym, null);
          return keyboard.current !== null;
        }}
      />
    </Connection>
  );
}

/** A screen has no clipboard that every guest shares: what is pasted here is typed there, key by key. */
function Typed({ vm, type }: { vm: string; type: (text: string) => boolean }) {
  const [text, setText] = useState("");
  const send = (event: FormEvent): void => {
    event.preventDefault();
    // Where nobody is connected it stays here.
    if (type(text)) setText("");
  };
  return (
    <form className="filters" onSubmit={send}>
      <label>
        Paste here what is to be typed at {vm}
        <textarea value={text} rows={2} maxLength={mostTyped} onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="submit" disabled={text === ""}>
        Type it
      </button>
    </form>
  );
}
/** Each is two messages, of which so many wait here at most. */
const mostTyped = 4096;
