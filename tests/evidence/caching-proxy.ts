// nginx in front of a shortener, set up by somebody who wants to save requests: it keeps whatever it may, for an hour.
import { startNginx } from "./nginx.ts";

export type CachingProxy = Awaited<ReturnType<typeof startCachingProxy>>;

/**
 * Starts nginx as a cache. It obeys `Cache-Control`; what says nothing is kept by status (ngx_http_proxy_module,
 * `proxy_cache_valid`). `X-Cache-Status` tells a hit.
 * @param origin base URL of what stands behind it
 */
export const startCachingProxy = (origin: string) =>
  startNginx(
    (directory, address) => `
  proxy_cache_path ${directory}/cache keys_zone=answers:1m inactive=1h;
  server {
    listen ${address};
    location / {
      proxy_pass ${origin};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_cache answers;
      proxy_cache_valid any 1h;
      proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504 http_404;
      add_header X-Cache-Status $upstream_cache_status always;
    }
  }`,
  );
