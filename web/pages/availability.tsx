import { useState } from "react";
import type { ForcedStop, HostEnd, InstallationStatus } from "../../model/api.ts";
import type { Asker } from "../../model/contract/actions/actions.ts";
import type { HaAlert, HaAnswer, HaItem } from "../../model/contract/operator/ha.ts";
import { ask } from "../data/api.ts";
import { Act, Failed, useDoing } from "../parts/act.tsx";
import { Command, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { useAsker, useKnown, useNow } from "../parts/use-known.ts";
import { answerSigns, hostOf, isOver, namedVm, queueOf, stepsOf, workOf } from "../state/availability.ts";
import { commandOf } from "../state/command.ts";
import { ago, haIn, type KnownHa, rowsOf, statusIn } from "../state/known.ts";

/** What broke, what is being done, what is asked of me? */
export function Availability({ who }: PageProps) {
  const { followed } = useKnown();
  const asker = useAsker(who);
  const [ha, status] = [haIn(followed), statusIn(followed)];
  if (rowsOf(followed, "ha") === null)
    return (
      <>
        <h1>Availability</h1>
        <Waiting what="the HA Manager" />
      </>
    );
  return (
    <>
      <h1>Availability</h1>
      {ha === null ? (
        <p>This installation has no HA Manager: machines of a host that is lost wait until it is back.</p>
      ) : (
        <Work ha={ha} asker={asker} />
      )}
      {status !== null && <Hosts hosts={status.hosts} asker={asker} />}
    </>
  );
}

const query = (parameters: Record<string, string>): string => String(new URLSearchParams(parameters));

function Work({ ha, asker }: { ha: KnownHa; asker: Asker | null }) {
  const queue = queueOf(ha);
  const now = useNow(1000);
  const open = ha.items.filter((item) => !isOver(item));
  const over = ha.items.filter(isOver);
  return (
    <>
      <p role="status">
        {ha.protected} running {ha.protected === 1 ? "machine is" : "machines are"} looked after.{" "}
        {ha.storm === null
          ? ""
          : ha.storm.asked === true
            ? `Nothing is fenced or started elsewhere since ${ago(Date.parse(ha.storm.since), now)}: an operator has said that hosts will be switched off.`
            : `${ha.storm.hosts.join(", ")} were lost within minutes: tenants' machines wait until somebody has looked.`}
      </p>
      <div className="buttons">
        <Act
          name="pauseHa"
          of="high availability"
          asker={asker}
          subject={queue}
          run={() => ask("pauseHa", "POST", "/ha/pause")}
          says={<p>No machine is fenced or started elsewhere until it goes on, whatever breaks meanwhile.</p>}
        />
        <Act
          name="resumeHa"
          of="with high availability"
          asker={asker}
          subject={queue}
          run={() => ask("releaseHa", "POST", "/ha/release")}
        />
        <Command text={queue.paused === null ? "cells ha pause" : "cells ha release"} />
      </div>
      <Alerts alerts={ha.alerts} asker={asker} />
      <h2>Being done</h2>
      {open.length === 0 && <p>Nothing: no machine waits for a host that is lost.</p>}
      <ul className="cards">
        {open.map((item) => (
          <Item key={`${item.vm} ${item.incarnation} ${item.type}`} item={item} asker={asker} />
        ))}
      </ul>
      {over.length > 0 && (
        <details>
          <summary>{over.length} done in the last day</summary>
          <ul className="cards">
            {over.slice(0, 100).map((item) => (
              <Item key={`${item.vm} ${item.incarnation} ${item.type}`} item={item} asker={asker} />
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Alerts({ alerts, asker }: { alerts: readonly HaAlert[]; asker: Asker | null }) {
  if (alerts.length === 0) return null;
  return (
    <section aria-labelledby="alerts">
      <h2 id="alerts">Waits for you</h2>
      <ul className="cards">
        {alerts.map(({ kind, subject, sentence, acknowledged }) => (
          <li key={`${kind} ${subject}`} className="card need">
            <strong>
              {kind}
              {subject === "" ? "" : `: ${subject}`}
            </strong>
            <p>{sentence}</p>
            <div className="buttons">
              <Act
                name="acknowledge"
                of={`${kind} ${subject}`}
                asker={asker}
                subject={{ kind, isAcknowledged: acknowledged !== undefined }}
                run={() => ask("acknowledgeAlert", "POST", `/alerts/acknowledge?${query({ kind, subject })}`)}
              />
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Item({ item, asker }: { item: HaItem; asker: Asker | null }) {
  const { path, host, incarnation, type, reason, outcome, held, since, scheduled, gaveUp } = item;
  const now = useNow(1000);
  const vm = namedVm(item);
  const subject = workOf(item);
  return (
    <li className={`card ${held !== null || gaveUp === true ? "need" : ""}`}>
      <strong>
        {path}, incarnation {incarnation} at {host}
      </strong>
      <ol className="steps" aria-label={`${type}: steps`}>
        {stepsOf(item).map(({ name, is }) => (
          <li key={name} className={`step-${is}`} aria-current={is === "now" ? "step" : undefined}>
            <span aria-hidden="true">{is === "over" ? "✓" : is === "now" ? "◔" : "…"}</span> {name}
          </li>
        ))}
      </ol>
      <p>
        {outcome ?? reason}
        {!isOver(item) &&
          ` At this step for ${ago(Date.parse(since), now)}, scheduled ${ago(Date.parse(scheduled), now)} ago.`}
      </p>
      {held !== null && <p className="danger">It waits for a person: {held}</p>}
      {gaveUp === true && <p className="danger">Everybody was asked, and nobody is asked any more.</p>}
      <Answers title="Asked whether it still runs" answers={item.investigators} now={now} />
      <Answers title="Made sure that it writes nothing" answers={item.fencers} now={now} />
      {!isOver(item) && (
        <div className="buttons">
          <Act
            name="releaseHeld"
            of={path}
            asker={asker}
            subject={subject}
            run={() => ask("releaseHa", "POST", `/ha/release?${query({ vm })}`)}
            says={
              held === null ? null : (
                <p>
                  It goes on with {path}, although: {held}
                </p>
              )
            }
          />
          <Act
            name="retryWork"
            of={path}
            asker={asker}
            subject={subject}
            run={() => ask("retryHa", "POST", `/ha/retry?${query({ vm })}`)}
          />
          <Act
            name="cancelWork"
            of={path}
            asker={asker}
            subject={subject}
            run={() => ask("cancelHa", "POST", `/ha/cancel?${query({ vm })}`)}
            says={<p>This incarnation is left alone until it is tried again, or its host is back.</p>}
          />
          <ForceStop item={item} />
          <Command text={commandOf("cells ha why", vm)} />
        </div>
      )}
    </li>
  );
}

/** Unknown is never drawn as stopped. */
function Answers({ title, answers, now }: { title: string; answers: readonly HaAnswer[]; now: number }) {
  if (answers.length === 0) return null;
  return (
    <>
      <p className="hint">{title}:</p>
      <ul className="lines">
        {answers.map(({ by, says, sentence, since }) => (
          <li key={by}>
            <strong>{by}</strong>{" "}
            <span className={`answer answer-${says}`}>
              <span aria-hidden="true">{answerSigns[says]}</span> {says}
            </span>{" "}
            for {ago(Date.parse(since), now)}
            <span className="reason">{sentence}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The operator frees a machine of its host: what nobody has looked at is said first, as the controller says it. */
function ForceStop({ item }: { item: HaItem }) {
  const { cell, path, host } = item;
  const [said, setSaid] = useState<ForcedStop | null>(null);
  const { busy, failed, run } = useDoing();
  const at = `/cells/${encodeURIComponent(cell)}`;
  const order = (dryRun: boolean) =>
    ask("forceStop", "POST", `${at}/forced-stops?dryRun=${dryRun}`, { body: JSON.stringify({ vm: path }) });
  const look = () =>
    run(async () => {
      setSaid((await order(true)).value);
    });
  const stop = () =>
    run(async () => {
      const element = path.split("/").map(encodeURIComponent).join("/");
      await ask("putElement", "PUT", `${at}/model/${element}/x.desiredState`, { body: '"off"' });
      await order(false);
      setSaid(null);
    });
  return (
    <span className="act">
      {said === null && (
        <button type="button" disabled={busy} onClick={() => void look()} aria-label={`Force stop ${path}`}>
          Force stop
        </button>
      )}
      {said !== null && (
        <fieldset className="card danger-box" aria-label={`Force stop ${path}?`}>
          <strong>
            {path} counts as stopped without the word of {host}:
          </strong>
          <ul className="lines">
            {said.unchecked.map((sentence) => (
              <li key={sentence} className="danger">
                ! {sentence}
              </li>
            ))}
            {said.checked.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
            <li>It is switched off, and stays off until somebody starts it.</li>
          </ul>
          <button type="button" className="main" disabled={busy} onClick={() => void stop()}>
            Force it to stop
          </button>{" "}
          <button type="button" disabled={busy} onClick={() => setSaid(null)}>
            Leave it as it is
          </button>
        </fieldset>
      )}
      <Failed why={failed} />
    </span>
  );
}

function Hosts({ hosts, asker }: { hosts: InstallationStatus["hosts"]; asker: Asker | null }) {
  const put = (host: string, state: string) =>
    ask("putElement", "PUT", `/cells/root/model/root/hosts/${encodeURIComponent(host)}/x.state`, {
      body: JSON.stringify(state),
    });
  const dead = async (host: string): Promise<void> => {
    const path = `/cells/root/hosts/${encodeURIComponent(host)}/end`;
    const { value: end } = await ask("readHostEnd", "GET", path);
    const { against, generation, boot } = end as HostEnd;
    if (against !== null) throw new Error(against);
    await ask("endHost", "PUT", path, { body: JSON.stringify({ powerIsOff: true, generation, boot }) });
  };
  return (
    <section aria-labelledby="hosts">
      <h2 id="hosts">Hosts</h2>
      <ul className="cards small">
        {hosts.map((each) => {
          const { host, vms } = each;
          const subject = hostOf(each);
          return (
            <li key={host} className="card">
              <strong>{host}</strong>
              <p>
                {subject.presence === "up" ? "is heard" : `presence: ${subject.presence}`}
                {subject.administration === "enabled" ? "" : `, ${subject.administration}`}
              </p>
              <div className="buttons">
                {subject.administration === "enabled" ? (
                  <Act
                    name="drain"
                    of={host}
                    asker={asker}
                    subject={subject}
                    run={() => put(host, "maintenance")}
                    says={
                      <p>
                        It takes nothing new, and its {vms} machines are stopped in order and start elsewhere with their
                        data.
                      </p>
                    }
                  />
                ) : (
                  <Act name="resume" of={host} asker={asker} subject={subject} run={() => put(host, "enabled")} />
                )}
                {subject.presence !== "up" && (
                  <Act
                    name="dead"
                    of={`(${host})`}
                    asker={asker}
                    subject={subject}
                    run={() => dead(host)}
                    says={
                      <p>
                        Its machines start on other hosts with their volumes and addresses. If {host} runs on, they run
                        twice: make sure that its power is off.
                      </p>
                    }
                  />
                )}
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
