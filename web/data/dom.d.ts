/** Trusted Types (W3C), which the compiler's library does not have yet. */
interface TrustedTypePolicy {
  createScriptURL(input: string): unknown;
}
interface Window {
  readonly trustedTypes?: {
    createPolicy(name: string, rules: { createScriptURL(input: string): string }): TrustedTypePolicy;
  };
}
declare module "*.css";
/** As much of it as is used; the package has no types of its own. */
declare module "@novnc/novnc" {
  interface Channel {
    readonly readyState: string;
    send(bytes: Uint8Array): void;
    close(): void;
  }
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: Channel, options?: { readonly shared?: boolean });
    scaleViewport: boolean;
    focusOnClick: boolean;
    disconnect(): void;
    /** Pressed and let go. */
    sendKey(keysym: number, code: string | null, isDown: boolean): void;
  }
}
