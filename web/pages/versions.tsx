import { useState } from "react";
import type { ModelSource, ModelVersion } from "../../model/contract/versions.ts";
import { lineDifferences } from "../../model/editor/line-differences.ts";
import { ask } from "../data/api.ts";
import { Act } from "../parts/act.tsx";
import { Command, Waiting } from "../parts/bits.tsx";
import { CellChoice } from "../parts/cell-choice.tsx";
import { nameOf, type PageProps } from "../parts/page-props.ts";
import { go, useAsked, useAsker } from "../parts/use-known.ts";
import { keepDraft } from "../state/cell/drafts.ts";
import { commandOf } from "../state/command.ts";

/** How did it come to be as it is, and how do I go back? */
export function Versions({ cell, who }: PageProps) {
  return (
    <>
      <h1>Versions</h1>
      <CellChoice page="versions" cell={cell} />
      {cell !== null && <List key={cell} cell={cell} who={who} />}
    </>
  );
}

const sourceAt = async (cell: string, version: number): Promise<ModelSource> =>
  (await ask("readSource", "GET", `/cells/${encodeURIComponent(cell)}/source?version=${version}`)).value;

function List({ cell, who }: { cell: string; who: PageProps["who"] }) {
  const { value, failed } = useAsked(cell, async () => {
    return (await ask("listVersions", "GET", `/cells/${encodeURIComponent(cell)}/versions`)).value;
  });
  const [compared, setCompared] = useState<number | null>(null);
  const asker = useAsker(who);
  if (failed !== null) return <p className="wrong">{failed}</p>;
  if (value === null) return <Waiting what={`the controller of ${cell}`} />;
  const newest = value.versions.find(({ text }) => text !== undefined)?.version;
  /** What was then is written into the editor; nothing is changed before its plan was seen. */
  const back = async (version: number): Promise<void> => {
    const { files, main } = await sourceAt(cell, version);
    if (Object.keys(files).length > 1)
      throw new Error(`it was sent as several files: \`cells rollback ${cell} ${version}\` applies them`);
    keepDraft(sessionStorage, nameOf(who), cell, { text: files[main] ?? "", main, version: value.version });
    go({ page: "specification", cell });
  };
  return (
    <>
      <p role="status">
        {cell} has version {value.version}.
      </p>
      <ol className="cards" aria-label="Versions, the last one first">
        {value.versions.map((each) => (
          <li key={each.version} className="card">
            <strong>version {each.version}</strong> <Told version={each} />
            <div className="buttons">
              <Act
                name="rollback"
                of={`version ${each.version}`}
                asker={asker}
                subject={{
                  version: each.version,
                  isPresent: each.version === newest,
                  hasText: each.text !== undefined,
                }}
                run={() => back(each.version)}
              />
              {each.text !== undefined && each.version !== newest && newest !== undefined && (
                <button
                  type="button"
                  className="quiet"
                  aria-expanded={compared === each.version}
                  onClick={() => setCompared(compared === each.version ? null : each.version)}
                >
                  Compare with version {newest}
                </button>
              )}
              <Command text={commandOf("cells diff", cell, String(each.version))} />
            </div>
            {compared === each.version && newest !== undefined && (
              <Difference cell={cell} from={each.version} to={newest} />
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

const words: Readonly<Record<string, string>> = {
  create: "made",
  change: "changed",
  restart: "restarted",
  replace: "made anew",
  delete: "taken away",
};
function Told({ version: { who, time, changes, lost = [], text } }: { version: ModelVersion }) {
  const parts = Object.entries(changes).map(([action, count]) => `${count} ${words[action] ?? action}`);
  return (
    <>
      <p>
        {parts.length === 0 ? "Nothing but its words" : parts.join(", ")}, by {who},{" "}
        {new Date(time).toLocaleString("en-GB")}
        {text === undefined && "; without a text"}
      </p>
      {lost.length > 0 && <p className="danger">Data that went with it: {lost.join(", ")}</p>}
    </>
  );
}

function Difference({ cell, from, to }: { cell: string; from: number; to: number }) {
  const { value, failed } = useAsked(`${cell} ${from} ${to}`, async () => {
    const [one, other] = await Promise.all([sourceAt(cell, from), sourceAt(cell, to)]);
    return lineDifferences(one.files[one.main] ?? "", other.files[other.main] ?? "");
  });
  if (failed !== null) return <p className="wrong">{failed}</p>;
  if (value === null) return <Waiting what="both texts" />;
  if (value.every(({ sign }) => sign === " ")) return <p>Both texts are the same.</p>;
  return (
    <section className="difference" aria-label={`From version ${from} to ${to}`}>
      {value.map(({ sign, text }, at) => (
        // Lines have no names, and none of them moves.
        <code key={at} className={sign === "+" ? "put-in" : sign === "-" ? "taken-out" : ""}>
          {sign} {text}
        </code>
      ))}
    </section>
  );
}
