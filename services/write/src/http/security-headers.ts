import helmet from "helmet";

/**
 * What every answer tells browsers: it is data, to be run, framed, sniffed and read across origins by nobody. A call that
 * serves a page says so by a `Content-Security-Policy` of its own among the headers of its reply.
 * `Strict-Transport-Security` is for the one who terminates TLS: this service speaks plain HTTP.
 */
export const setSecurityHeaders = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], baseUri: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"] },
  },
  crossOriginOpenerPolicy: { policy: "same-origin" },
  crossOriginResourcePolicy: { policy: "same-origin" },
  referrerPolicy: { policy: "no-referrer" },
  xFrameOptions: { action: "deny" },
  strictTransportSecurity: false,
  // For browsers of long ago, or without a meaning here.
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
});
