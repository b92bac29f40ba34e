import { Component, lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import type { SignedIn } from "../../model/contract/tenancy/sign-in.ts";
import { look, show, signOut, touch } from "../data/store.ts";
import { Link, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { go, useKnown, useNow, usePlace } from "../parts/use-known.ts";
import { cellsIn } from "../state/known.ts";
import { type PageName, type Place, pageKeys, pagesFor, titles } from "../state/place.ts";
import { followedCells, silentMs } from "../state/tabs.ts";
import { Overview } from "./overview.tsx";
import { codeInAddress, SignIn, SignInByCode } from "./sign-in.tsx";

const lazily = (load: () => Promise<(props: PageProps) => ReactNode>) => lazy(async () => ({ default: await load() }));
/** Each page is a file of its own, which is asked for when somebody goes there. */
const shown: Readonly<Record<Exclude<PageName, "overview">, ReturnType<typeof lazily>>> = {
  availability: lazily(async () => (await import("./availability.tsx")).Availability),
  cells: lazily(async () => (await import("./cells.tsx")).Cells),
  dedication: lazily(async () => (await import("./dedication.tsx")).Dedication),
  machines: lazily(async () => (await import("./machines.tsx")).Machines),
  network: lazily(async () => (await import("./network.tsx")).Network),
  people: lazily(async () => (await import("./people.tsx")).People),
  placement: lazily(async () => (await import("./placement.tsx")).Placement),
  pools: lazily(async () => (await import("./pools.tsx")).Pools),
  storage: lazily(async () => (await import("./storage.tsx")).Storage),
  specification: lazily(async () => (await import("./specification.tsx")).Specification),
  timeline: lazily(async () => (await import("./timeline.tsx")).Timeline),
  versions: lazily(async () => (await import("./versions.tsx")).Versions),
};

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
  const about = place.page === "dedication" ? "root" : place.page === "unknown" ? null : place.cell;
  const one = cells.filter((cell) => cell === about);
  const own = pagesFor(who.kind, who.volumes);
  const always = [...(isOperator ? ["status", "ha"] : []), "cells"];
  const chosen = place.page === "machines" ? place.cell : null;
  const { shown, left } = followedCells(place.page === "machines" ? cells : one, chosen, always.length);
  const counted = place.page === "network" ? one : [];
  useTopics([...always, ...shown.map((cell) => `cell:${cell}`), ...counted.map((cell) => `counters:${cell}`)]);
  useUse();
  const keysShown = useRef<HTMLDialogElement>(null);
  useKeys(keysShown, own);
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
          {own.map((page) => (
            <Link key={page} to={{ page }} current={place.page === page}>
              {titles[page]}
            </Link>
          ))}
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
          {keysOf(own).map(([key, what]) => (
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
  if (place.page === "overview") return <Overview isOperator={who.kind === "operator"} />;
  if (place.page === "unknown" || !pagesFor(who.kind, who.volumes).includes(place.page))
    return (
      <>
        <h1>There is no such page</h1>
        <p>
          {place.page === "unknown" ? <code>{place.path}</code> : titles[place.page]} leads nowhere for you.{" "}
          <Link to={{ page: "overview" }}>Overview</Link>
        </p>
      </>
    );
  const Shown = shown[place.page];
  return (
    <Broken key={place.page}>
      <Suspense fallback={<Waiting what={`the page ${titles[place.page]}`} />}>
        <Shown cell={place.cell} who={who} left={left} />
      </Suspense>
    </Broken>
  );
}
/** After an upgrade the gateway has the files of another page. What was written is kept by the tab. */
class Broken extends Component<{ readonly children: ReactNode }, { readonly why: string | null }> {
  override state = { why: null as string | null };
  static getDerivedStateFromError = (error: Error) => ({ why: error.message });
  override render(): ReactNode {
    if (this.state.why === null) return this.props.children;
    return (
      <div className="wrong" role="alert">
        <p>This page cannot be shown: {this.state.why}</p>
        <p className="buttons">
          <button type="button" onClick={() => location.reload()}>
            Load it again
          </button>
          <span className="hint">The cloud may have another page by now. What you have written is kept.</span>
        </p>
      </div>
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
  const isSilent = heardMs !== null && now - heardMs > silentMs;
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

const keysOf = (own: readonly PageName[]): readonly (readonly [string, string])[] => [
  ["/", "search"],
  ...own.map((page) => [pageKeys[page], titles[page]] as const),
  ["?", "these keys"],
];
function useKeys(dialog: React.RefObject<HTMLDialogElement | null>, own: readonly PageName[]): void {
  const written = own.join(" ");
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { target, key } = event;
      const types =
        target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable], dialog") !== null;
      if (types || event.ctrlKey || event.metaKey || event.altKey) return;
      const page = own.find((each) => pageKeys[each] === key);
      if (key === "?") dialog.current?.showModal();
      else if (key === "/") document.getElementById("search")?.focus();
      else if (page !== undefined) go({ page });
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [dialog, written]);
}
