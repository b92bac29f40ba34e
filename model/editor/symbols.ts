import type { SourceBlock, SourceFile, Span } from "./sources/source.ts";

/** One line of an outline. */
export interface Outline {
  readonly name: string;
  /** What it extends, or its type in JSON. */
  readonly detail: string;
  readonly kind: "component" | "attribute";
  readonly span: Span;
  readonly nameSpan: Span;
  readonly children: readonly Outline[];
}

/** The attributes of a text, as it stands, component by component. */
export function symbolsOf({ top, text }: SourceFile): readonly Outline[] {
  return outlines(top, text);
}

function outlines({ entries }: SourceBlock, text: string): readonly Outline[] {
  return entries.flatMap((entry): readonly Outline[] => {
    const [first] = entry.kind === "attribute" ? entry.name : [];
    if (entry.kind !== "attribute" || !first) return [];
    const { component, start, value } = entry;
    const last = entry.name.at(-1) ?? first;
    const children = (component?.parts ?? []).flatMap((part) =>
      part.kind === "block" ? outlines(part.block, text) : [],
    );
    const prototypes = (component?.parts ?? []).flatMap((part) =>
      part.kind === "reference" ? [text.slice(part.reference.start, part.reference.end)] : [],
    );
    const type = children.find(({ name }) => name === "x.type")?.detail.replace(/^"(.*)"$/, "$1");
    const written = value && !component ? text.slice(value.start, Math.min(value.end, value.start + 60)) : "";
    const end = Math.min(Math.max(component?.end ?? value?.end ?? last.end, last.end), text.length);
    return [
      {
        name: entry.name.map((part) => part.text).join(":"),
        detail: component ? prototypes.join(", ") || (type ?? "") : written,
        kind: component ? "component" : "attribute",
        span: { start, end },
        nameSpan: { start: first.start, end: last.end },
        children,
      },
    ];
  });
}
