/** How an image may be called: it names a directory and stands in a URL, so nothing in it can lead elsewhere. */
const form = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

export const isImageName = (name: string): boolean => form.test(name);

/** What would be right, for the end of a sentence that refuses a name. */
export const imageNameRule = "letters, digits, `.`, `_` and `-`, at most 63, the first a letter or a digit";

/** Images of services are the root cell's alone, and no other cell is told of them. */
export const isServiceImage = (name: string): boolean => /^service(?:-|$)/.test(name);
