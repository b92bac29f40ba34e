import type { Series } from "../../model/contract/operator/numbers/history.ts";
import { curvesOf, inWords, type Span, whereIn } from "../state/hosts/history.ts";
import { clock } from "./bits.tsx";
import { useKnown } from "./use-known.ts";

const [width, height] = [240, 32] as const;

/** One series as a plot and in words; the moment that somebody has picked in the time line is marked in it. */
export function Curve({ of, series, span }: { of: string; series: Series; span: Span }) {
  const { markedMs } = useKnown();
  const marked = markedMs === null ? null : whereIn(span, markedMs);
  const x = marked === null ? 0 : span.moments < 2 ? width : (marked / (span.moments - 1)) * width;
  return (
    <>
      <strong>{of}</strong>: {inWords(series)}
      {marked !== null && markedMs !== null && (
        <>
          {" "}
          <span className="marked">
            {series[marked] ?? "nothing was heard"} at {clock(new Date(markedMs))}
          </span>
        </>
      )}
      <svg className="curve" width={width} height={height} viewBox={`0 -2 ${width} ${height + 4}`} aria-hidden="true">
        {curvesOf(series, width, height).map((points) => (
          <polyline key={points} points={points} />
        ))}
        {marked !== null && <line x1={x} x2={x} y1={-2} y2={height + 2} />}
      </svg>
    </>
  );
}
