// The servers that redirects are held against, each alone on the server's core.
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findFreePorts, waitFor, watchProcess } from "@linkfence/testkit";
import type { Cores } from "./cores.ts";
import type { Target } from "./rounds.ts";

const SERVERS = fileURLToPath(new URL("servers/", import.meta.url));

export type RunningTarget = Target & { stop: () => Promise<void> };

/**
 * Starts a small server of ours.
 * @param codes file of the codes that it knows, one a line
 * @param added to its environment
 */
export async function startOwnTarget(
  name: "bare" | "fastify" | "express",
  codes: string,
  cores: Cores,
  added: Record<string, string> = {},
): Promise<RunningTarget> {
  const command = ["-c", `${cores.server}`, process.execPath, join(SERVERS, `${name}.mjs`), codes];
  const env = { PATH: process.env.PATH, NODE_ENV: "production", ...added };
  const running = watchProcess(spawn("taskset", command, { env, stdio: ["ignore", "pipe", "pipe"] }));
  const { port } = await running.logged(({ message }) => message === "listening");
  return { name, port: Number(port), pid: running.pid, stop: async () => void (await running.stop()) };
}

const NGINX_CONFIG = (port: number, root: string) => `
worker_processes 1;
daemon off;
master_process off;
pid ${root}/pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${root}/body; proxy_temp_path ${root}/proxy; fastcgi_temp_path ${root}/fastcgi;
  uwsgi_temp_path ${root}/uwsgi; scgi_temp_path ${root}/scgi;
  keepalive_requests 1000000000;
  server {
    listen 127.0.0.1:${port};
    location / {
      add_header Cache-Control no-store always;
      return 302 "https://www.example.com/articles/42?utm_source=newsletter&utm_medium=email";
    }
  }
}
`;

/** Starts nginx with an answer that is always the same; null where it is not installed. */
export async function startNginx(cores: Cores): Promise<RunningTarget | null> {
  const root = await mkdtemp(join(tmpdir(), "linkfence-bench-nginx-"));
  const port = await findFreePorts(1);
  await mkdir(join(root, "body"));
  await writeFile(join(root, "nginx.conf"), NGINX_CONFIG(port, root));
  const path = `${process.env.PATH}:/usr/sbin`;
  const command = ["-c", `${cores.server}`, "nginx", "-p", root, "-c", join(root, "nginx.conf")];
  const running = watchProcess(
    spawn("taskset", command, { env: { ...process.env, PATH: path }, stdio: ["ignore", "pipe", "pipe"] }),
  );
  const remove = () => rm(root, { recursive: true, force: true });
  let ended = false;
  void running.exited.then(() => {
    ended = true;
  });
  await waitFor("nginx listens, or is not there", async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { redirect: "manual" }).catch(() => null);
    return ended || answer?.status === 302;
  });
  if (ended) {
    await remove();
    return null;
  }
  const stop = async () => {
    await running.stop();
    await remove();
  };
  return { name: "nginx", port, pid: running.pid, stop };
}
