import { type HaSettings, haSettingNames, haSettings } from "../../cell/attributes/ha-settings.ts";
import type { Cell } from "../../cell/cell.ts";
import type { ReportFault } from "../fault.ts";

/** Only one cell speaks to the HA Manager about all others. */
const rootName = "root";

/** The settings that a cell writes; null: none. Each is within its bounds by the schema. */
export function haSettingsOf(
  read: (attribute: string) => number | undefined,
  texts: (attribute: string) => readonly string[] | undefined,
): HaSettings | null {
  const written = haSettingNames.flatMap((name): readonly (readonly [string, number])[] => {
    const value = read(`x.ha.${name}`);
    return value === undefined ? [] : [[name, value]];
  });
  const investigators = texts("x.ha.investigators") as HaSettings["investigators"];
  if (written.length === 0 && investigators === undefined) return null;
  return Object.freeze({ ...Object.fromEntries(written), ...(investigators === undefined ? {} : { investigators }) });
}

export function checkHa({ ha, name, path }: Cell, fault: ReportFault): void {
  if (ha === undefined) return;
  if (name !== rootName) {
    fault("cell/ha", `\`${name}\` sets what the HA Manager does for all cells, which is the root cell's alone`, path, {
      attribute: `x.ha.${Object.keys(ha)[0]}`,
      hint: "Leave `x.ha` out here, and put it into the root cell's specification. Of one VM, `x.ha.isolated` can be said.",
    });
    return;
  }
  const secondsOf = (setting: "timeBetweenCleanup" | "timeBetweenFailures"): number =>
    ha[setting] ?? haSettings[setting].preset;
  const [kept, within] = [secondsOf("timeBetweenCleanup"), secondsOf("timeBetweenFailures")];
  if (kept >= within) return;
  fault(
    "cell/ha",
    `\`x.ha.timeBetweenFailures\` is ${within} s, and what has ended is forgotten after ${kept} s: nobody could count that far back`,
    path,
    {
      attribute: "x.ha.timeBetweenFailures",
      hint: `Write \`x.ha.timeBetweenCleanup ${within}\` or more, or \`x.ha.timeBetweenFailures ${kept}\` or less.`,
    },
  );
}
