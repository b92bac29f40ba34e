import type { DesiredCell, DesiredLife } from "../documents/cells.ts";

/** What its parent says of a cell, as its controller is told it. */
export const lifeOf = ({
  uid,
  model,
  grant,
  startsPerMinute,
  bound,
  gateway,
  off,
  pools,
}: DesiredCell): Omit<DesiredLife, "ending"> => ({
  uid,
  model,
  grant,
  ...(startsPerMinute === undefined ? {} : { startsPerMinute }),
  ...(bound === undefined ? {} : { bound }),
  ...(gateway === undefined ? {} : { gateway }),
  ...(off === true ? { off } : {}),
  ...(pools === undefined ? {} : { pools }),
});
