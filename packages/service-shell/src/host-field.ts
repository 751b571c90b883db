import type { IncomingMessage } from "node:http";

/**
 * Says whether a request names its host once. HTTP/1.0 knows no Host; from 1.1 on a request with none or with several is
 * to be refused (RFC 9112 section 3.2). Node shows the first of several, and whatever stands in front may have gone by
 * the last.
 */
export function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0");
}
