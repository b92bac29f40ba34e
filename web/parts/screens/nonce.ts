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
    // A terminal writes what is selected, and colours beyond the first 256, as an attribute, which the policy refuses; as properties they pass.
    if (made instanceof HTMLSpanElement) made.setAttribute = styleAsProperties(made);
    return made;
  }) as typeof document.createElement;
}
function styleAsProperties(element: HTMLElement): (name: string, value: string) => void {
  const set = element.setAttribute.bind(element);
  return (name, value) => {
    if (name === "style") element.style.cssText = value;
    else set(name, value);
  };
}
