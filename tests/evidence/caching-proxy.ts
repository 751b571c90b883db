// nginx in front of a shortener, set up by somebody who wants to save requests: it keeps whatever it may, for an hour.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePorts, watchProcess } from "@linkfence/testkit";
import { programPath } from "./programs.ts";

export type CachingProxy = Awaited<ReturnType<typeof startCachingProxy>>;

/**
 * Starts nginx in the foreground, with everything that it writes in a directory of its own. It obeys `Cache-Control`;
 * what says nothing is kept by status (ngx_http_proxy_module, `proxy_cache_valid`). `X-Cache-Status` tells a hit.
 * @param origin base URL of what stands behind it
 */
export async function startCachingProxy(origin: string) {
  const directory = await mkdtemp(join(tmpdir(), "linkfence-nginx-"));
  const port = await findFreePorts(1);
  const file = join(directory, "nginx.conf");
  await writeFile(file, settings(directory, port, origin));
  const nginx = watchProcess(
    spawn(programPath("nginx"), ["-p", directory, "-c", file, "-e", "stderr"], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  // Its name and version are what it says once it listens.
  await nginx.printed("nginx/");
  return {
    url: `http://127.0.0.1:${port}`,
    version: /nginx\/[\d.]+/.exec(nginx.output())?.[0] ?? "nginx",
    async stop(): Promise<void> {
      await nginx.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** One process, so that ending it ends all of it; as root it would give its workers an account that cannot write here. */
function settings(directory: string, port: number, origin: string): string {
  return `
daemon off;
master_process off;
pid ${directory}/nginx.pid;
error_log stderr notice;
events { worker_connections 128; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  proxy_cache_path ${directory}/cache keys_zone=answers:1m inactive=1h;
  server {
    listen 127.0.0.1:${port};
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
  }
}
`;
}
