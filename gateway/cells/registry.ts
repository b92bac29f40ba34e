import type { CellSummary } from "../../model/api.ts";
import { askSupervisor } from "./supervisor.ts";

/** Which cells there are, and who makes and ends their controllers: the testbed's supervisor, or the root cell. */
export interface Registry {
  /** Of all cells that whoever has this credential, the operator, may be told of. */
  names(authorization: string): Promise<readonly string[]>;
  /** Is there such a cell? Asked for everybody, also who turns out to have no credential. */
  has(cell: string): Promise<boolean>;
  /** Has the cell been made, so that it can be given a model? Asked for the operator. */
  isMade(cell: string, authorization: string): Promise<boolean>;
  /** Makes the cell's controller, and waits until it can be asked. Idempotent. Rejects with what is in the way. */
  make(cell: string, authorization: string, signal: AbortSignal): Promise<void>;
  /** Ends the cell for good. */
  end(cell: string, authorization: string): Promise<void>;
  /** `end` sees to it that everything of the cell goes first. Otherwise it may be called only once nothing is left. */
  readonly empties: boolean;
  mayEnd(authorization: string): boolean;
  /** Gives the cell to an account, by the operator. Absent: whose it is, is a record of `tenancy` alone. */
  give?(cell: string, account: string, authorization: string): Promise<void>;
  /** May who shows this make a cell? */
  mayMake(authorization: string): boolean;
  /** Version of a cell that was made and never given a model. */
  readonly firstVersion: number;
}
/** What a cell's controller says of it in short. */
export type Summary = CellSummary & { readonly empty: boolean };

/** Controllers are processes of one machine, which its supervisor makes and ends (`SupervisorApi`). */
export function createSupervised(supervisorSocket: string): Registry {
  const names = async (): Promise<readonly string[]> =>
    (await askSupervisor(supervisorSocket, "GET", "/cells")) as readonly string[];
  const has = async (cell: string): Promise<boolean> => (await names()).includes(cell);
  return {
    names,
    has,
    isMade: has,
    make: async (cell) => {
      await askSupervisor(supervisorSocket, "POST", `/cells/${encodeURIComponent(cell)}`);
    },
    end: async (cell) => {
      await askSupervisor(supervisorSocket, "DELETE", `/cells/${encodeURIComponent(cell)}`);
    },
    empties: false,
    mayEnd: () => true,
    mayMake: () => true,
    firstVersion: 0,
  };
}
