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
