/** A `Bundle` (`cell/cell.ts`) of texts that the model reads itself. */
export interface ExampleBundle {
  readonly main: string;
  readonly files: Readonly<Record<string, string>>;
}

/**
 * What a page shows as wrong or mended. `large`: too long to print, so `shown` says how it is built. `request`: not the
 * text of a cell but a request to its controller, whose tests send it, or to another command.
 */
export type Example =
  | { readonly kind: "bundle"; readonly bundle: ExampleBundle }
  | { readonly kind: "large"; readonly shown: string; readonly bundle: () => ExampleBundle }
  | { readonly kind: "request"; readonly shown: string };

/** What there is to know about one error code (`cells explain CODE`). */
export interface DiagnosticPage {
  /** One line, without a full stop. */
  readonly title: string;
  /** Why it is an error, and what to do. */
  readonly why: string;
  /** Gives exactly this code (tested), as `right` is accepted. */
  readonly wrong: Example;
  readonly right: Example;
}

const bundle = (main: string, files: Readonly<Record<string, string>>): Example => ({
  kind: "bundle",
  bundle: { main, files },
});

/** A page whose examples are SmartFrog texts. */
export const smartFrogPage = (title: string, why: string, wrong: string, right: string): DiagnosticPage => ({
  title,
  why,
  wrong: bundle("shop.sf", { "shop.sf": wrong }),
  right: bundle("shop.sf", { "shop.sf": right }),
});
/** The same with what stands inside a cell. */
export const cellPage = (title: string, why: string, wrong: string, right: string): DiagnosticPage => {
  const cell = (text: string): string => `shop extends Cell {\n${text.trimEnd().replace(/^(?=.)/gm, "  ")}\n}\n`;
  return smartFrogPage(title, why, cell(wrong), cell(right));
};
export const jsonPage = (title: string, why: string, wrong: string, right: string): DiagnosticPage => ({
  title,
  why,
  wrong: bundle("shop.json", { "shop.json": wrong }),
  right: bundle("shop.json", { "shop.json": right }),
});
/** Examples of several files; the first is the main one. */
export const filesPage = (
  title: string,
  why: string,
  wrong: Readonly<Record<string, string>>,
  right: Readonly<Record<string, string>>,
): DiagnosticPage => ({
  title,
  why,
  wrong: bundle(Object.keys(wrong)[0] ?? "", wrong),
  right: bundle(Object.keys(right)[0] ?? "", right),
});
/** Examples that a program writes: what is shown, and the text of `shop.sf`. */
export const largePage = (
  title: string,
  why: string,
  wrong: readonly [shown: string, text: () => string],
  right: readonly [shown: string, text: () => string],
): DiagnosticPage => {
  const large = ([shown, text]: readonly [string, () => string]): Example => ({
    kind: "large",
    shown,
    bundle: () => ({ main: "shop.sf", files: { "shop.sf": text() } }),
  });
  return { title, why, wrong: large(wrong), right: large(right) };
};
export const requestPage = (title: string, why: string, wrong: string, right: string): DiagnosticPage => ({
  title,
  why,
  wrong: { kind: "request", shown: wrong },
  right: { kind: "request", shown: right },
});
