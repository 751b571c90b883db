// What links and revocations look like in answers.
import type { Link, RevokeResult } from "@linkfence/contracts";
import type { StoredLink } from "../store/link-rows.ts";
import type { RevokedCode } from "../store/links.ts";

export type PresentLink = (link: StoredLink) => Link;

/** @param publicBaseUrl configured origin of short URLs; nothing a request says has a part in them */
export function createLinkPresenter(publicBaseUrl: string): PresentLink {
  const { origin } = new URL(publicBaseUrl);
  return ({ code, ...link }) => ({ code, shortUrl: `${origin}/${code}`, ...link });
}

export function presentRevocation(
  revoked: Exclude<RevokedCode, { outcome: "not-found" }>,
): Omit<RevokeResult, "effective"> {
  const { code, outcome, version, seq } = revoked;
  return { code, outcome, version, seq };
}
