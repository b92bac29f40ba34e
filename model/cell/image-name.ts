import { ValueFault } from "./value-fault.ts";

/** How an image may be called: it names a directory and stands in a URL, so nothing in it can lead elsewhere. */
const form = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

export const isImageName = (name: string): boolean => form.test(name);

/** What a VM can boot from: an image by its name, or a volume of another cell. */
export const bootImagePattern = /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,62}|\/\/[a-z0-9.-]{1,253}\/[A-Za-z0-9._/-]{1,253})$/;

/** What would be right, for the end of a sentence that refuses a name. */
export const imageNameRule = "letters, digits, `.`, `_` and `-`, at most 63, the first a letter or a digit";

/** Images of services are the root cell's alone, and no other cell is told of them. */
export const isServiceImage = (name: string): boolean => /^service(?:-|$)/.test(name);

/** Bytes that somebody uploaded, until a persistent volume is made of them: whose they are and which, each a hash or random. */
export const uploadImage = (owner: string, id: string): string => `upload-${owner}-${id}`;
export const isUpload = (name: string): boolean => /^upload-[0-9a-f]{16}-[0-9a-f]{32}$/.test(name);
/** Of whom no list tells that all cells read. */
export const isOfFew = (name: string): boolean => isServiceImage(name) || isUpload(name);

export const readImage = (name: string, item: string): string | ValueFault =>
  bootImagePattern.test(item)
    ? item
    : new ValueFault(
        "schema/value",
        `\`${name}\` has ${JSON.stringify(item)}, which is no image`,
        "Write the name of an image, or a volume of another cell as //shop.cells.internal/debian.",
      );
