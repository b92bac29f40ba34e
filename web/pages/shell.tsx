import { useEffect, useRef, useState } from "react";
import type { SignedIn } from "../../model/contract/tenancy/sign-in.ts";
import { look, show, signOut, touch } from "../data/store.ts";
import { Link, Waiting } from "../parts/bits.tsx";
import { go, useKnown, useNow, usePlace } from "../parts/use-known.ts";
import { cellsIn } from "../state/known.ts";
import type { Place } from "../state/place.ts";
import { followedCells } from "../state/tabs.ts";
import { Machines } from "./machines.tsx";
import { Overview } from "./overview.tsx";
import { codeInAddress, SignIn, SignInByCode } from "./sign-in.tsx";
import { Specification } from "./specification.tsx";

/** Two beats of the gateway missed. */
const staleMs = 25_000;
const titles = { overview: "Overview", machines: "Machines", specification: "Specification" } as const;
const keys: readonly (readonly [string, string])[] = [
  ["/", "search"],
  ["o", "overview"],
  ["m", "machines"],
  ["s", "specification"],
  ["?", "these keys"],
];

export function Shell() {
  const { who, out } = useKnown();
  // Also where somebody is in: a code of the address is asked about, and never stays there.
  const [code, setCode] = useState(codeInAddress);
  useEffect(() => void look(), []);
  if (who === undefined) return <Waiting what="the gateway" />;
  if (code !== null) return <SignInByCode code={code} who={who} done={() => setCode(null)} />;
  if (who === null) return <SignIn said={out} />;
  return <Inside who={who} />;
}

function Inside({ who }: { who: SignedIn }) {
  const { followed } = useKnown();
  const place = usePlace();
  const isOperator = who.kind === "operator";
  const cells = cellsIn(followed)?.map(({ cell }) => cell) ?? [];
  // Of a cell that is not there yet nothing can be followed.
  const one = place.page === "specification" ? cells.filter((cell) => cell === place.cell) : [];
  const always = [...(isOperator ? ["status", "ha"] : []), "cells"];
  const chosen = place.page === "machines" ? place.cell : null;
  const { shown, left } = followedCells(place.page === "machines" ? cells : one, chosen, always.length);
  useTopics([...always, ...shown.map((cell) => `cell:${cell}`)]);
  useUse();
  const keysShown = useRef<HTMLDialogElement>(null);
  useKeys(keysShown);
  const heading = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = place.page === "unknown" ? "Cells" : `${titles[place.page]} – Cells`;
  }, [place.page]);
  return (
    <>
      <a className="skip" href="#content">
        To the content
      </a>
      <header>
        <strong className="brand">Cells</strong>
        <nav aria-label="Pages">
          <Link to={{ page: "overview" }} current={place.page === "overview"}>
            Overview
          </Link>
          <Link to={{ page: "machines", cell: null }} current={place.page === "machines"}>
            Machines
          </Link>
          <Link to={{ page: "specification", cell: null }} current={place.page === "specification"}>
            Specification
          </Link>
        </nav>
        <span className="who">
          {who.name ?? "operator"}
          <SignOut />
        </span>
      </header>
      <OfWhen />
      <main id="content" ref={heading} tabIndex={-1}>
        <Page place={place} who={who} left={left} />
      </main>
      <dialog ref={keysShown} aria-label="Keys">
        <h2>Keys</h2>
        <dl>
          {keys.map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </dialog>
    </>
  );
}

function Page({ place, who, left }: { place: Place; who: SignedIn; left: readonly string[] }) {
  switch (place.page) {
    case "overview":
      return <Overview isOperator={who.kind === "operator"} />;
    case "machines":
      return <Machines cell={place.cell} left={left} />;
    case "specification":
      return <Specification cell={place.cell} who={who.name ?? who.kind} />;
    case "unknown":
      return (
        <>
          <h1>There is no such page</h1>
          <p>
            <code>{place.path}</code> leads nowhere. <Link to={{ page: "overview" }}>Overview</Link>
          </p>
        </>
      );
  }
}

function useTopics(topics: readonly string[]): void {
  const written = topics.join(" ");
  useEffect(() => show(written.split(" ")), [written]);
}
/** Who writes, points or scrolls is not idle. */
function useUse(): void {
  useEffect(() => {
    const events = ["keydown", "pointerdown", "wheel", "touchmove"] as const;
    for (const event of events) addEventListener(event, touch, { passive: true });
    return () => {
      for (const event of events) removeEventListener(event, touch);
    };
  }, []);
}

function SignOut() {
  const [failed, setFailed] = useState<string | null>(null);
  const leave = (): void => {
    setFailed(null);
    signOut().catch((error: Error) => setFailed(error.message));
  };
  return (
    <>
      <button type="button" className="quiet" onClick={leave}>
        Sign out
      </button>
      {failed !== null && (
        <span className="wrong" role="alert">
          You are still signed in: {failed}
        </span>
      )}
    </>
  );
}

/** Whether what is shown is of now, and since when it is not. */
function OfWhen() {
  const { heardMs, followed } = useKnown();
  const now = useNow(1000);
  const stale = [...followed.topics].flatMap(([topic, { stale }]) => (stale === null ? [] : [`${topic}: ${stale}`]));
  const unheard = [...followed.unheard.values()];
  const ended = [...followed.ended]
    .filter(([topic]) => !followed.topics.has(topic))
    .map(([topic, why]) => `${topic}: ${why}`);
  const isSilent = heardMs !== null && now - heardMs > staleMs;
  useEffect(() => {
    document.documentElement.classList.toggle("silent", isSilent);
  }, [isSilent]);
  const said = [...unheard, ...stale, ...ended];
  if (!isSilent && said.length === 0) return null;
  return (
    <p className="of-when" role="status">
      {isSilent &&
        `The gateway was last heard at ${new Date(heardMs).toLocaleTimeString()}: what is shown may be old. `}
      {said.join("; ")}
    </p>
  );
}

function useKeys(shown: React.RefObject<HTMLDialogElement | null>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { target, key } = event;
      const types =
        target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;
      if (types || event.ctrlKey || event.metaKey || event.altKey) return;
      if (key === "?") shown.current?.showModal();
      else if (key === "/") document.getElementById("search")?.focus();
      else if (key === "o") go({ page: "overview" });
      else if (key === "m") go({ page: "machines", cell: null });
      else if (key === "s") go({ page: "specification", cell: null });
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [shown]);
}
