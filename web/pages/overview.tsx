import type { InstallationStatus } from "../../model/api.ts";
import { Command, Link, Phase, Share, Waiting } from "../parts/bits.tsx";
import { LastHour } from "../parts/last-hour.tsx";
import { useKnown, useNow } from "../parts/use-known.ts";
import { ago, cellsIn, haIn, type KnownHa, statusIn } from "../state/known.ts";
import { doneLately, standingOf } from "../state/needs.ts";

/** Is my cloud well, and what needs me? */
export function Overview({ isOperator }: { isOperator: boolean }) {
  const { followed } = useKnown();
  const [status, cells, ha] = [statusIn(followed), cellsIn(followed), haIn(followed)];
  const { needs, doing } = standingOf(status, cells, ha);
  const isKnown = cells !== null && (!isOperator || status !== null);
  return (
    <>
      <h1>Overview</h1>
      {isKnown ? (
        <p className={`verdict ${needs.length > 0 ? "verdict-needs" : ""}`} role="status">
          {verdict(needs.length, doing.length)}
        </p>
      ) : (
        <Waiting what={cells === null ? "the list of cells" : "the hosts and services"} />
      )}
      {needs.length > 0 && (
        <section aria-labelledby="needs">
          <h2 id="needs">Needs you</h2>
          <ul className="cards">
            {needs.map(({ key, title, reason, command }) => (
              <li key={key} className="card need">
                <strong>{title}</strong>
                {reason !== null && <p>{reason}</p>}
                {command !== null && <Command text={command} />}
              </li>
            ))}
          </ul>
        </section>
      )}
      {doing.length > 0 && <DoingList doing={doing} />}
      <DoneList ha={ha} />
      <CellList />
      {isOperator && <LastHour />}
      {status !== null && <Hosts status={status} />}
      {status !== null && <Storage status={status} />}
      {status !== null && <Services status={status} />}
    </>
  );
}
function verdict(needs: number, doing: number): string {
  const does = doing === 0 ? "" : ` ${doing === 1 ? "One thing is" : `${doing} things are`} being done without you.`;
  if (needs === 0) return `${doing === 0 ? "All is well." : "Nothing needs you."}${does}`;
  return `${needs === 1 ? "One thing needs" : `${needs} things need`} you.${does}`;
}

const mostDoing = 12;
function DoingList({ doing }: { doing: ReturnType<typeof standingOf>["doing"] }) {
  const now = useNow(1000);
  return (
    <section aria-labelledby="doing">
      <h2 id="doing">Being done</h2>
      <ul className="lines">
        {doing.slice(0, mostDoing).map(({ key, title, step, reason, since }) => (
          <li key={key}>
            <strong>{title}</strong> {step}
            {since !== null && ` for ${ago(Date.parse(since), now)}`}
            {reason !== null && <span className="reason">{reason}</span>}
          </li>
        ))}
        {doing.length > mostDoing && <li>and {doing.length - mostDoing} more</li>}
      </ul>
    </section>
  );
}

function DoneList({ ha }: { ha: KnownHa | null }) {
  const now = useNow(1000);
  const done = doneLately(ha, now);
  if (done.length === 0) return null;
  return (
    <section aria-labelledby="done">
      <h2 id="done">Done without you</h2>
      <ul className="lines">
        {done.slice(0, mostDoing).map(({ key, title, outcome, since }) => (
          <li key={key}>
            <strong>{title}</strong> {ago(Date.parse(since), now)} ago
            <span className="reason">{outcome}</span>
          </li>
        ))}
        {done.length > mostDoing && <li>and {done.length - mostDoing} more</li>}
      </ul>
    </section>
  );
}

function CellList() {
  const cells = cellsIn(useKnown().followed);
  if (cells === null) return null;
  return (
    <section aria-labelledby="cells">
      <h2 id="cells">Cells</h2>
      {cells.length === 0 && (
        <p>
          There is none yet. <Link to={{ page: "specification", cell: null }}>Write one</Link>.
        </p>
      )}
      <ul className="cards small">
        {cells.map(({ cell, elements, phases, version }) => (
          <li key={cell} className="card">
            <strong>
              <Link to={{ page: "machines", cell }}>{cell}</Link>
            </strong>
            <p>
              {Object.entries(phases).map(([phase, count]) => (
                <span key={phase} className="count">
                  {count} <Phase phase={phase} />
                </span>
              ))}
              {elements === 0 && "empty"}
            </p>
            <p className="hint">
              version {version} · <Link to={{ page: "specification", cell }}>specification</Link>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Hosts({ status: { hosts } }: { status: InstallationStatus }) {
  return (
    <section aria-labelledby="hosts">
      <h2 id="hosts">Hosts</h2>
      <ul className="cards small">
        {hosts.map(({ host, state, presence, vms, usedMiB, memoryMiB, administration }) => (
          <li key={host} className="card">
            <strong>{host}</strong>{" "}
            <Phase
              phase={
                presence?.state === "dead" ? "lost" : state === "unreachable" ? "silent" : (administration ?? "up")
              }
            />
            <p>
              {state === "unreachable"
                ? "What runs there is not known."
                : `${vms} ${vms === 1 ? "machine" : "machines"}`}
            </p>
            {state !== "unreachable" && <Share used={usedMiB} all={memoryMiB} unit="MiB" />}
          </li>
        ))}
      </ul>
    </section>
  );
}
function Storage({ status: { servers } }: { status: InstallationStatus }) {
  return (
    <section aria-labelledby="storage">
      <h2 id="storage">Storage</h2>
      <ul className="cards small">
        {servers.map(({ server, state, volumes, totalMiB, freeMiB }) => (
          <li key={server} className="card">
            <strong>{server}</strong> <Phase phase={state === "unreachable" ? "silent" : "up"} />
            <p>{volumes} volumes</p>
            {state !== "unreachable" && <Share used={totalMiB - freeMiB} all={totalMiB} unit="MiB" />}
          </li>
        ))}
      </ul>
    </section>
  );
}
function Services({ status: { services } }: { status: InstallationStatus }) {
  const running = services.filter(({ running }) => running).length;
  return (
    <section aria-labelledby="services">
      <h2 id="services">Services</h2>
      <details>
        <summary>
          {running} of {services.length} run
        </summary>
        <ul className="lines">
          {services.map(({ name, running, state, lastEnd }) => (
            <li key={name}>
              <strong>{name}</strong> <Phase phase={running ? "up" : (state ?? "stopped")} />
              {lastEnd !== undefined && lastEnd !== null && <span className="reason">it ended last: {lastEnd}</span>}
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}
