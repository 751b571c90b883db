// A real nginx in front of a service.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFreePorts, watchProcess } from "@linkfence/testkit";
import { programPath } from "./programs.ts";

/**
 * Starts nginx in the foreground, with everything that it writes in a directory of its own.
 * @param http what stands in its `http` block; told the directory and the address to listen on
 */
export async function startNginx(http: (directory: string, address: string) => string) {
  const directory = await mkdtemp(join(tmpdir(), "linkfence-nginx-"));
  const address = `127.0.0.1:${await findFreePorts(1)}`;
  const file = join(directory, "nginx.conf");
  await writeFile(file, settings(directory, http(directory, address)));
  const nginx = watchProcess(
    spawn(programPath("nginx"), ["-p", directory, "-c", file, "-e", "stderr"], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  // Its name and version are what it says once it listens.
  await nginx.printed("nginx/");
  return {
    url: `http://${address}`,
    version: /nginx\/[\d.]+/.exec(nginx.output())?.[0] ?? "nginx",
    async stop(): Promise<void> {
      await nginx.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** One process, so that ending it ends all of it; as root it would give its workers an account that cannot write here. */
function settings(directory: string, http: string): string {
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
  ${http}
}
`;
}
