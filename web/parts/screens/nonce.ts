/**
 * A library that makes a `style` element of its own has it refused by the page's policy, unless it bears the nonce of this answer. So each such element of this
 * document is made with it. What a style can do here is bounded by the same policy: it loads nothing.
 */
let isDone = false;
export function stylesBearNonce(): void {
  if (isDone) return;
  isDone = true;
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="cells-nonce"]')?.content ?? "";
  const create = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const made = create(name, options);
    if (made instanceof HTMLStyleElement) made.nonce = nonce;
    return made;
  }) as typeof document.createElement;
}
