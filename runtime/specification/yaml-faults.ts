import type { YAMLParseError, YAMLWarning } from "yaml";
import type { Diagnostic } from "../../model/diagnostics/diagnostic.ts";

/** What a text says about a fault of it, in our words; `at`: where it is better shown than where the library met it. */
export interface YamlFault extends Pick<Diagnostic, "code" | "message" | "hint"> {
  readonly at?: number;
}

/**
 * Characters that YAML 1.2 (5.1) does not allow in a text; the library takes some of them for signs of its own. (U+007F,
 * which should be escaped, does no harm.)
 */
export const controlCharacter = new RegExp(
  `[${["00-08", "0b-0c", "0e-1f"].map((range) => range.replace(/[0-9a-f]{2}/g, "\\u00$&")).join("")}]`,
);

const closing: Readonly<Record<string, string>> = { "[": "]", "{": "}" };
const fault = (code: string, message: string, hint: string, at?: number): YamlFault => ({
  code,
  message,
  hint,
  ...(at === undefined ? {} : { at }),
});
const colonHint = "An attribute reads `name: value`, with a space behind the colon.";
export const missingSpace = (name: string): YamlFault =>
  fault("yaml/colon", `There is no space behind the colon of \`${name}\``, colonHint);

/** `name:value`, as is written where a space was forgotten; the name. */
export const nameWithoutSpace = (text: string): string | undefined => /^([A-Za-z_$][\w.$-]*):[^\s:/]/.exec(text)?.[1];

/**
 * An error of the library for the author of the text. Usual slips are told by what they are and how to mend them; what is
 * rare keeps the library's sentence. `lastQuote`: where the last quoted text begins, the only one that can be unclosed.
 */
export function faultOf(error: YAMLParseError | YAMLWarning, text: string, lastQuote: number): YamlFault {
  const [offset] = error.pos;
  const found = text.slice(offset, offset + 40).split("\n")[0] ?? "";
  switch (error.code) {
    case "TAB_AS_INDENT":
      return fault("yaml/tab", "A tab indents this line", "YAML is indented with spaces: write two for each level.");
    case "BAD_INDENT":
      return badIndentation(error.message);
    case "MISSING_CHAR":
    case "MULTILINE_IMPLICIT_KEY":
      return missing(error.message, found, text, lastQuote);
    case "KEY_OVER_1024_CHARS":
      return fault("yaml/key", "This name is longer than 1024 characters", "Use a shorter one.");
    case "BLOCK_AS_IMPLICIT_KEY":
      return fault(
        "yaml/indentation",
        "A further attribute begins within this value",
        'Put it on a line of its own, indented as its neighbours; a text that holds ": " stands in double quotes.',
      );
    case "BAD_DQ_ESCAPE":
      return wrongEscape(error.message.replace("Invalid escape sequence ", ""));
    case "BAD_SCALAR_START":
      return fault("yaml/quotes", `A text cannot begin with \`${found[0] ?? ""}\``, "Put it into double quotes.");
    case "TAG_RESOLVE_FAILED":
    case "BAD_COLLECTION_TYPE":
    case "MULTIPLE_TAGS":
      return tagFault(found.split(/\s/)[0] ?? "");
    case "BAD_ALIAS":
    case "ALIAS_PROPS":
    case "MULTIPLE_ANCHORS":
      return fault("yaml/alias", `${error.message}`, "An anchor reads `&name`, what repeats it `*name`.");
    case "BAD_DIRECTIVE":
      return fault("yaml/directive", `${error.message}`, "Leave the line out: YAML 1.2 is read in any case.");
    case "IMPOSSIBLE":
      if (/^[[{]/.test(found)) return collectionName;
      return unexpected(error.message, found);
    default:
      return unexpected(error.message, found);
  }
}

export const wrongEscape = (sign: string): YamlFault =>
  fault(
    "yaml/escape",
    `\`${sign}\` is no escape of a text in double quotes`,
    "Write a backslash twice, or put the text into single quotes, where it means itself.",
  );
export const collectionName = fault(
  "yaml/key",
  "A list or mapping cannot be a name",
  "Names are texts; what begins with `{`, `[` or `*` stands in double quotes.",
);
export const tagFault = (tag: string): YamlFault =>
  fault(
    "yaml/tag",
    `The tag \`${tag}\` means nothing here`,
    "Leave it out: values are texts, numbers, true, false, null, lists and mappings.",
  );

function badIndentation(message: string): YamlFault {
  const open = /^Flow (map|sequence)/.exec(message)?.[1];
  if (open !== undefined) {
    const sign = open === "map" ? "{" : "[";
    return fault(
      "yaml/unclosed",
      `The \`${sign}\` before this place is not closed`,
      `Add the missing \`${closing[sign]}\`, and indent all lines up to it deeper than the attribute.`,
    );
  }
  return fault(
    "yaml/indentation",
    "This line stands in no column that was begun before",
    "Attributes of one component begin in the same column, those of the next level deeper.",
  );
}

function missing(message: string, found: string, text: string, lastQuote: number): YamlFault {
  const quote = /Missing closing (.)quote/.exec(message)?.[1];
  if (quote !== undefined)
    return fault(
      "yaml/unclosed",
      `The text that begins here has no closing \`${quote}\``,
      `Close it with \`${quote}\`${quote === "'" ? "; within it, write `'` twice" : ""}.`,
      lastQuote,
    );
  const name = nameWithoutSpace(found);
  if (name !== undefined) return missingSpace(name);
  if (/^Implicit (map )?keys/.test(message))
    return fault("yaml/colon", `\`${found.trim()}\` has no colon behind its name`, colonHint);
  const separated = /^(Comments|Tags and anchors)/.exec(message)?.[1];
  if (separated !== undefined)
    return fault("yaml/syntax", `A space is missing before \`${found.trim()}\``, "Put a space between the two.");
  if (/Missing , /.test(message)) return fault("yaml/syntax", "A comma is missing here", "Items are separated by `,`.");
  if (/Missing space after :/.test(message))
    return fault("yaml/colon", "There is no space behind this colon", colonHint);
  return fault(
    "yaml/syntax",
    message || `Something is missing before \`${text}\``,
    "Look at this line and the one above.",
  );
}

function unexpected(message: string, found: string): YamlFault {
  const sign = /^[\]}]/.exec(found)?.[0];
  if (sign !== undefined)
    return fault("yaml/unclosed", `This \`${sign}\` closes nothing`, "Remove it, or put the text into double quotes.");
  if (/block-seq-ind/.test(message))
    return fault(
      "yaml/indentation",
      "A list begins on the line of its name",
      "Begin it on the next line, or write it as `[…, …]`.",
    );
  if (/Unexpected ,|empty item/.test(message))
    return fault("yaml/syntax", "There is no item before this comma", "Remove the comma, or add the item.");
  if (/at node end|in YAML stream|Unexpected scalar/.test(message))
    return fault(
      "yaml/quotes",
      `\`${found.trim()}\` cannot stand behind the value that ended here`,
      "Put the whole text into double quotes; within single quotes, write `'` twice.",
    );
  return fault("yaml/syntax", `This cannot be read: ${message}`, "Look at this line and the one above.");
}
