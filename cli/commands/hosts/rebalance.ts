import type { Balance, Rebalance, RebalanceQuery } from "../../../model/contract/operator/placement.ts";
import { printable } from "../../../model/diagnostics/render-diagnostic.ts";
import { type Context, printJson } from "../../context/context.ts";
import { usage } from "../../terminal/failure.ts";

export interface RebalanceOptions {
  readonly even?: boolean;
  readonly pack?: boolean;
  readonly empty?: string;
}

/** `cells rebalance`: moves, and what they gain. Nothing is moved. */
export const showRebalance = async (context: Context, { even, pack, empty }: RebalanceOptions): Promise<void> => {
  if ([even, pack, empty].filter((each) => each !== undefined).length > 1)
    throw usage("say one of --even, --pack and --empty");
  const query: RebalanceQuery =
    empty !== undefined ? { goal: "empty", host: empty } : { goal: pack === true ? "pack" : "even" };
  const answer = await context.client().ask("readRebalance", { parameters: {}, query });
  if (context.json) return printJson(context, answer);
  for (const line of answer.plans.flatMap(linesOf)) context.terminal.print(printable(line));
};

const balanceText = ({ hostsInUse, fullestPercent, deviationPercent }: Balance): string =>
  `${hostsInUse} in use, the fullest ${fullestPercent} %, deviation ${deviationPercent} %`;

function linesOf({ host, moves, before, after, left }: Rebalance): string[] {
  const stay = host === null || left.length === 0 ? [] : [`these stay at ${host}: ${left.join(", ")}`];
  if (moves.length === 0) return ["no move gains anything", ...stay];
  return [
    ...moves.map(({ vm, from, to }) => `cells move ${vm} --to ${to}    # from ${from}`),
    `now: ${balanceText(before)}`,
    `then: ${balanceText(after)}`,
    ...stay,
  ];
}
