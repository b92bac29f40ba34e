import { type ReactNode, useState } from "react";
import { phaseSigns } from "../state/known.ts";
import { addressOf, type Target } from "../state/place.ts";
import { go } from "./use-known.ts";

export function Link({ to, children, current = false }: { to: Target; children: ReactNode; current?: boolean }) {
  return (
    <a
      href={addressOf(to)}
      aria-current={current ? "page" : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}

/** A state as a sign and a word. */
export function Phase({ phase }: { phase: string }) {
  return (
    <span className={`phase phase-${Object.hasOwn(phaseSigns, phase) ? phase : "other"}`}>
      <span aria-hidden="true">{phaseSigns[phase] ?? "•"}</span> {phase}
    </span>
  );
}

/** What the page does can be done by the command line. Null: not by one that could be copied (`commandOf`). */
export function Command({ text }: { text: string | null }) {
  const [copied, setCopied] = useState(false);
  if (text === null) return null;
  const copy = (): void => {
    void navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    );
  };
  return (
    <span className="command">
      <code>{text}</code>
      <button type="button" className="quiet" onClick={copy} aria-label={`Copy the command ${text}`}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}

/** What is waited for is said, so that nobody watches a wheel turn. */
export function Waiting({ what }: { what: string }) {
  return (
    <p className="waiting" role="status">
      Waiting for {what} …
    </p>
  );
}

/** Used of all, as a bar and as words. */
export function Share({ used, all, unit }: { used: number; all: number; unit: string }) {
  const shown = (value: number): string =>
    unit === "MiB" && all >= 4096 ? (value / 1024).toFixed(1) : `${Math.round(value)}`;
  const of = unit === "MiB" && all >= 4096 ? "GiB" : unit;
  return (
    <span className="share">
      <meter min={0} max={all || 1} value={used} aria-hidden="true" />
      {shown(used)} of {shown(all)} {of}
    </span>
  );
}

export const clock = (at: Date): string => at.toLocaleTimeString(undefined, { hour12: false });
