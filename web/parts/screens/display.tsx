import RFB from "@novnc/novnc";
import { useCallback, useRef } from "react";
import type { PageSession } from "../../data/session.ts";
import { Connection } from "./connection.tsx";
import { RfbChannel } from "./rfb-channel.ts";
import { type Screen, useSession } from "./use-session.ts";

/** A VM's screen, keyboard and pointer. */
export function Display({ cell, vm }: { cell: string; vm: string }) {
  const box = useRef<HTMLElement>(null);
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
        channel.opened();
      },
      left: () => {
        channel.left();
        rfb = null;
        box.current?.replaceChildren();
      },
    };
  }, []);
  const shown = useSession({ cell, vm, verb: "display" }, begin);
  return (
    <Connection shown={shown} said={null}>
      <section className="screen display" ref={box} aria-label={`Display of ${vm}`} />
    </Connection>
  );
}
