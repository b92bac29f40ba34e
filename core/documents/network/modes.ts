import type { Mode } from "../../../model/cell/network/modes.ts";

/** Of what may stand under the rules of Eucalyptus (decision 160). */
export interface OfMode {
  /** Of a host: the mode that it offers beside Diverter; of a VM: the one that its cell has. Absent: Diverter alone. */
  readonly networkMode?: Mode;
}
/** Of an interface in a mode: the agent of its host makes its tap, and it has its address once that is in place there. */
export interface OfInstance {
  /** `i-xxxxxxxx`; absent: its interface is Diverter's. */
  readonly instance?: string;
}
/** Of a name. */
export interface OfHeard {
  /** Its machine says that it has this address, and may say any: the name leads there, and from there nothing back. Absent: it was given to it. */
  readonly heard?: true;
}
export const tapOfInstance = (instance: string): string => `vn_${instance}`;
