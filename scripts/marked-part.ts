/**
 * Replaces what stands between two marker lines of a document.
 * @param name as in `<!-- settings: ... -->` and `<!-- end of settings -->`
 * @throws Error when a marker is missing
 */
export function replaceMarked(document: string, name: string, part: string): string {
  const { from, to } = findMarked(document, name);
  return `${document.slice(0, from)}\n\n${part}\n\n${document.slice(to)}`;
}

/** Returns what stands between the two markers, without the blank lines around it. Throws when a marker is missing. */
export function readMarked(document: string, name: string): string {
  const { from, to } = findMarked(document, name);
  return document.slice(from, to).trim();
}

function findMarked(document: string, name: string): { from: number; to: number } {
  const begin = new RegExp(`<!-- ${name}: [^>]*-->`).exec(document);
  const to = document.indexOf(`<!-- end of ${name} -->`);
  const from = begin ? begin.index + begin[0].length : -1;
  if (from < 0 || to < from) throw new Error(`the document has no place for ${name}: both markers must be there`);
  return { from, to };
}
