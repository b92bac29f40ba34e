import type { InstanceAllocation } from "../../model/eucalyptus/allocation/allocation.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import type { BookedInstance } from "./book.ts";
import type { CarrierRequest } from "./network-hosts/carriers.ts";

/** What is asked of the Network View Manager, and what it hears. */
export type Request =
  /** Another configuration: one that would move what is in use is refused, naming the instances. */
  | { readonly kind: "configure"; readonly configuration: NetworkConfiguration }
  /** An instance is to start at a host: it gets a private address. */
  | {
      readonly kind: "run";
      readonly instance: Pick<BookedInstance, "id" | "owner" | "cluster" | "groups"> & {
        readonly node: string;
        /** An address that it has had at this host, and has again if nobody else has it. Absent: none. */
        readonly before?: number;
      };
    }
  /** Its owner ends it. Addresses stay until its host says that they are gone. */
  | { readonly kind: "terminate"; readonly id: string }
  /** It goes on at another host, with its addresses. */
  | { readonly kind: "move"; readonly id: string; readonly cluster: string; readonly node: string }
  /** An account wants an elastic address; answered with it. */
  | {
      readonly kind: "allocate";
      readonly account: string;
      /** That it has had before this store was lost. While it stands with an instance it is that one's owner's, and nobody's before that has said so. */
      readonly has?: number;
      /** For which it is leased. Absent: for none yet. */
      readonly instance?: string;
    }
  /** It gives it back; refused while an instance has it. */
  | { readonly kind: "return"; readonly address: number; readonly account: string }
  | { readonly kind: "associate"; readonly address: number; readonly account: string; readonly id: string }
  | { readonly kind: "disassociate"; readonly address: number; readonly account: string }
  | CarrierRequest
  /** What is said of groups is another: the view is another one, too. */
  | { readonly kind: "regrouped" }
  /** This store was lost, or is an older one: nothing new is given out before these hosts have said what they have. */
  | { readonly kind: "recover"; readonly hosts: readonly string[] }
  /** Whoever has instances has said so since: what hosts have of others goes. */
  | { readonly kind: "settled" }
  /** What a host says of the view that it has put in place (NRA). */
  | {
      readonly kind: "heard";
      readonly host: string;
      /** Of the latest view that it has put in place whole: one of which something failed is none. */
      readonly version: number;
      /** An instance that is named twice has the addresses of its first; another one of a second may still be in place, too. */
      readonly instances: readonly InstanceAllocation[];
      /** A cluster whose network host it is by what it has in place; absent: none. */
      readonly carries?: string;
    }
  /** Nothing of the host runs any more, for certain. */
  | { readonly kind: "fenced"; readonly host: string };

/** A record by its key, null where it ends; `restoreBook` takes them. */
export interface Write {
  readonly key: string;
  readonly value: unknown;
}
export interface Answer {
  /** A sentence; null: it was done. */
  readonly refused: string | null;
  /** Of `run` and `allocate`. */
  readonly address?: number;
}
export interface Stepped {
  readonly answer: Answer;
  readonly writes: readonly Write[];
}
