// Words that never become a code: every route of the services, what crawlers and operators ask for, and what people
// take for an official page of the operator. Words with a dot are refused by the alphabet already; they stand here so
// that the list remains right should the alphabet grow.

const ROUTES = `
  api v1 v2 links links-batch revocation instances changes stats clicks exports download keys rotation imports errors openapi openapi.json docs
  health healthz livez readyz live ready status ping metrics debug console ops internal`;

const WELL_KNOWN = `
  favicon favicon.ico robots robots.txt humans.txt security security.txt ads.txt sitemap sitemap.xml
  .well-known well-known apple-app-site-association apple-touch-icon manifest manifest.json service-worker
  index index.html static assets public dist css js img images fonts media`;

const OFFICIAL = `
  admin administrator root system linkfence about abuse account accounts auth billing contact dashboard help home
  imprint impressum legal login logout oauth password preview privacy register report revoke search settings
  signin sign-in signout sign-out signup sign-up sso support terms tos user users webhook webhooks www
  null undefined true false`;

const RESERVED: ReadonlySet<string> = new Set(`${ROUTES} ${WELL_KNOWN} ${OFFICIAL}`.trim().split(/\s+/));

/** Every reserved word, in lower case. */
export const RESERVED_WORDS: readonly string[] = [...RESERVED];

/** Says whether a word is reserved. Letter case makes no difference here, although codes are case-sensitive. */
export function isReserved(word: string): boolean {
  return RESERVED.has(word.toLowerCase());
}
