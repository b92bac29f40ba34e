import { lazy, Suspense, useEffect, useState } from "react";
import type { Asker } from "../../../model/contract/actions/actions.ts";
import { commandOf } from "../../state/command.ts";
import type { Machine } from "../../state/machines.ts";
import { Act } from "../act.tsx";
import { Command, Waiting } from "../bits.tsx";
import { FormerConsole } from "../screens/former.tsx";
import { MachineHour } from "./hour.tsx";
import { MachineNow } from "./now.tsx";

const shown = {
  console: lazy(async () => ({ default: (await import("../screens/console.tsx")).SerialConsole })),
  display: lazy(async () => ({ default: (await import("../screens/display.tsx")).Display })),
} as const;
type What = keyof typeof shown;

/** One machine of the list: why it is so, and the ways into it. */
export function ChosenMachine({ machine, asker }: { machine: Machine; asker: Asker | null }) {
  const { cell, path, phase, reason, incarnation } = machine;
  const [what, setWhat] = useState<What | null>(null);
  useEffect(() => setWhat(null), [cell, path]);
  const subject = { path, phase, reason, wanted: null, power: null, host: null, isHostHeard: null };
  const Shown = what === null ? null : shown[what];
  return (
    <section aria-label={path}>
      <h2>{path}</h2>
      <MachineNow key={path} machine={machine} asker={asker} />
      <MachineHour cell={cell} vm={path} />
      {incarnation !== null && <FormerConsole key={path} cell={cell} vm={path} newest={incarnation} />}
      <p className="buttons">
        {(Object.keys(shown) as What[]).map((name) => (
          <Act key={name} name={name} asker={asker} subject={subject} of={path} run={async () => setWhat(name)} />
        ))}
        {what !== null && (
          <button type="button" onClick={() => setWhat(null)}>
            Leave it
          </button>
        )}
      </p>
      {Shown !== null && what !== null && (
        <>
          <Command text={commandOf(`cells ${what}`, path)} />
          <Suspense fallback={<Waiting what={`the ${what}`} />}>
            <Shown cell={cell} vm={path} />
          </Suspense>
        </>
      )}
    </section>
  );
}
