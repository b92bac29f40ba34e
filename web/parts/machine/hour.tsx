import { useEffect, useState } from "react";
import { ask } from "../../data/api.ts";
import { commandOf } from "../../state/command.ts";
import { Failed } from "../act.tsx";
import { Command, clock, Waiting } from "../bits.tsx";
import { Curve } from "../curve.tsx";
import { useAsked } from "../use-known.ts";

/** What one machine has used, as the gateway has seen it. Nothing is asked before somebody wants to see it. */
export function MachineHour({ cell, vm }: { cell: string; vm: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The last hour of {vm}</summary>
      {isOpen && <Curves key={vm} cell={cell} vm={vm} />}
    </details>
  );
}

const named = {
  load: "Processors",
  residentMiB: "Memory in MiB",
  network: "Network, octets a second",
  disk: "Disks, octets a second",
} as const;
function Curves({ cell, vm }: { cell: string; vm: string }) {
  const path = `/cells/${encodeURIComponent(cell)}/history?${new URLSearchParams({ vm })}`;
  const { value, failed, again } = useAsked(path, async () => (await ask("readMachineHistory", "GET", path)).value);
  const everyMs = value?.everyMs ?? null;
  // The gateway's next moment is known, and nothing tells of it: no stream has machines of an hour.
  useEffect(() => {
    if (everyMs === null) return;
    const timer = setInterval(() => void again(), everyMs);
    return () => clearInterval(timer);
  }, [path, everyMs]);
  if (value === null) return failed === null ? <Waiting what="the gateway's memory" /> : <Failed why={failed} />;
  return (
    <>
      <ul className="lines">
        {(Object.keys(named) as (keyof typeof named)[]).map((kind) => (
          <li key={kind}>
            <Curve of={named[kind]} series={value[kind]} span={value} />
          </li>
        ))}
      </ul>
      {!value.isWhole && (
        <p className="hint">The gateway keeps an hour of so many machines; others, maybe this one, had no room.</p>
      )}
      <p className="buttons">
        <span className="hint">As of {clock(new Date(value.until))}.</span>
        <Command text={commandOf("cells history", vm)} />
      </p>
      <Failed why={failed} />
    </>
  );
}
