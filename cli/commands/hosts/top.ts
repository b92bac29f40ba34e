import { statusOfRows } from "../../../model/contract/follow/rows.ts";
import { followed } from "../../connection/followed.ts";
import { type Context, printJson } from "../../context/context.ts";
import { type Measure, renderTop, topOf } from "../../output/top.ts";

/** `cells top`: what uses most, as it is now and, at a terminal, as it becomes. */
export const top = async (
  context: Context,
  { by, once }: { readonly by: Measure; readonly once: boolean },
): Promise<void> => {
  const { terminal, json } = context;
  const isOnce = once || !(terminal.live || json);
  for await (const { topics } of followed(context.client(), ["status"])) {
    const topic = topics.get("status");
    if (topic === undefined) continue;
    const found = topOf(statusOfRows(topic.rows), by);
    if (json && isOnce) printJson(context, found);
    else if (json) terminal.print(JSON.stringify(found));
    else {
      const lines = renderTop(found, terminal.paint);
      const old = topic.stale === null ? [] : [terminal.paint("yellow", `this may be old: ${topic.stale}`)];
      if (isOnce) for (const line of [...lines, ...old]) terminal.print(line);
      else terminal.draw([...lines, ...old]);
    }
    if (isOnce) return;
  }
};
