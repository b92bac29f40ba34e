import RFB from "@novnc/novnc";
import { type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import type { PageSession } from "../../data/session.ts";
import { firstTyped, leftOut, type Stroke, strokeMs } from "../../state/screens/keysyms.ts";
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
        type={(strokes) => {
          for (const { keysym, isDown } of strokes) keyboard.current?.sendKey(keysym, null, isDown);
          return keyboard.current !== null;
        }}
      />
    </Connection>
  );
}

/** A screen has no clipboard that every guest shares: what is pasted here is typed there, key by key, and goes from here as it is typed. */
function Typed({ vm, type }: { vm: string; type: (strokes: readonly Stroke[]) => boolean }) {
  const [text, setText] = useState("");
  const [isTyping, setTyping] = useState(false);
  const left = leftOut(text);
  useEffect(() => {
    const next = isTyping ? firstTyped(text) : null;
    if (next === null) {
      setTyping(false);
      return;
    }
    const timer = setTimeout(() => {
      // Where nobody is connected the rest stays here.
      if (type(next.strokes)) setText(text.slice(next.length));
      else setTyping(false);
    }, next.strokes.length * strokeMs);
    return () => clearTimeout(timer);
  }, [isTyping, text]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setTyping(!isTyping);
  };
  return (
    <form className="filters" onSubmit={submit}>
      <label>
        Paste here what is to be typed at {vm}
        <textarea
          value={text}
          rows={2}
          maxLength={mostTyped}
          readOnly={isTyping}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <button type="submit" disabled={text === ""}>
        {isTyping ? "Stop" : "Type it"}
      </button>
      <span className="hint">
        {isTyping && `${text.length} ${text.length === 1 ? "character is" : "characters are"} left. `}
        {left.length > 0 && `No key of a US keyboard types ${nameSigns(left)}: left out.`}
      </span>
    </form>
  );
}
/** It takes some minutes to type so many. */
const mostTyped = 4096;
/** What is no sign to look at is told by its number. */
const nameSigns = (signs: readonly string[]): string =>
  signs
    .slice(0, 10)
    .map((sign) =>
      /[\p{L}\p{N}\p{P}\p{S}]/u.test(sign) ? sign : `U+${sign.codePointAt(0)?.toString(16).padStart(4, "0")}`,
    )
    .join(" ") + (signs.length > 10 ? ` and ${signs.length - 10} more` : "");
