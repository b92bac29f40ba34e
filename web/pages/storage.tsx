import { useState } from "react";
import type { PersistentVolume } from "../../model/contract/tenancy/volumes/volumes.ts";
import { ask } from "../data/api.ts";
import { Failed } from "../parts/act.tsx";
import { Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { Images } from "../parts/storage/images.tsx";
import { NewVolumeForm } from "../parts/storage/new-volume.tsx";
import { Volume } from "../parts/storage/volume.tsx";
import { useAsked, useAsker } from "../parts/use-known.ts";

/** What can start, and what outlives a cell? */
export function Storage({ cell, who }: PageProps) {
  return (
    <>
      <h1>Storage</h1>
      {who.volumes === true && <Volumes who={who} cell={cell} />}
      {who.kind === "operator" && <Images />}
    </>
  );
}

interface Found {
  readonly volumes: readonly PersistentVolume[];
  readonly next: string | null;
}
const perPage = 40;
const find = async (text: string, after: string | null): Promise<Found> => {
  const query = new URLSearchParams({ limit: String(perPage) });
  if (text !== "") query.set("text", text);
  if (after !== null) query.set("after", after);
  const { value, next } = await ask("listVolumes", "GET", `/volumes?${query}`);
  return { volumes: value, next };
};

function Volumes({ who, cell }: Pick<PageProps, "who" | "cell">) {
  const asker = useAsker(who);
  const [text, setText] = useState("");
  // What stands behind the first page, for these words.
  const [more, setMore] = useState<{ readonly of: string; readonly found: Found } | null>(null);
  const first = useAsked(text, () => find(text, null));
  const behind = more?.of === text ? more.found : null;
  const all = [...(first.value?.volumes ?? []), ...(behind?.volumes ?? [])];
  const next = behind === null ? (first.value?.next ?? null) : behind.next;
  const again = async (): Promise<void> => {
    setMore(null);
    await first.again();
  };
  const goOn = async (): Promise<void> => {
    const found = await find(text, next);
    setMore({ of: text, found: { ...found, volumes: [...(behind?.volumes ?? []), ...found.volumes] } });
  };
  return (
    <section aria-labelledby="volumes">
      <h2 id="volumes">Persistent volumes</h2>
      <search className="filters">
        <label>
          <span>
            Search <kbd>/</kbd>
          </span>
          <input
            type="search"
            id="search"
            value={text}
            maxLength={200}
            placeholder="words of name, tags or text"
            onChange={(event) => setText(event.target.value)}
          />
        </label>
      </search>
      {first.value === null ? (
        first.failed === null && <Waiting what="CaaS, which keeps them" />
      ) : (
        <p role="status">{countText(all.length, next !== null, text !== "")}</p>
      )}
      <Failed why={first.failed} />
      <ul className="cards">
        {all.map((volume) => (
          <Volume key={volume.uid} volume={volume} asker={asker} onDone={again} />
        ))}
      </ul>
      {next !== null && (
        <button type="button" onClick={() => void goOn()}>
          Show more
        </button>
      )}
      <NewVolumeForm cell={cell} volumes={all} hasImages={who.kind === "operator"} onDone={again} />
    </section>
  );
}
function countText(count: number, hasMore: boolean, isSearch: boolean): string {
  if (count === 0) return isSearch ? "None has these words." : "There is none yet that you may see.";
  return `${hasMore ? "The first " : ""}${count} ${count === 1 ? "persistent volume" : "persistent volumes"}.`;
}
