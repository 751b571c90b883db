type Fields = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Whether a request only fetches ahead (`prefetch`, `prefetch;prerender`) or shows a page small (`preview`), by the field in
 * which browsers say so today, and by those of older ones.
 * @param fields header fields by their names in lower case
 */
export function isPrefetch(fields: Fields): boolean {
  return (
    saysSo(fields["sec-purpose"]) || saysSo(fields.purpose) || saysSo(fields["x-moz"]) || saysSo(fields["x-purpose"])
  );
}

function saysSo(value: string | string[] | undefined): boolean {
  return value !== undefined && /prefetch|preview/i.test(String(value));
}
