// The container engine, through its command line. Every command has a deadline.
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const FILE = fileURLToPath(new URL("../compose.yaml", import.meta.url));
/** A build from nothing downloads and compiles everything. */
const DEADLINE_MS = 900_000;

/** Runs a program and returns its exit status and what it printed. `show` passes its output on as well. */
export function run(program, args, { input = "", env = {}, show = false } = {}) {
  const done = spawnSync(program, args, {
    input,
    encoding: "utf8",
    timeout: DEADLINE_MS,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, ...env },
    stdio: show ? ["pipe", "inherit", "inherit"] : "pipe",
  });
  return { status: done.status ?? 1, out: done.stdout ?? "", err: done.stderr ?? String(done.error ?? "") };
}

export const docker = (args, options) => run("docker", args, options);

/** Stops a container while the caller goes on; resolves with the exit status of its process 1. */
export async function stopContainer(id) {
  const stop = spawn("docker", ["stop", "--time", "30", id], { stdio: "ignore" });
  await new Promise((resolve) => stop.once("close", resolve));
  return JSON.parse(docker(["inspect", id]).out)[0].State.ExitCode;
}

/**
 * Compose for one project of its own, so that the data of another one on this machine is never touched.
 * Uses `docker compose`, or `docker-compose` where the plugin is missing.
 */
export function createCompose(project, env) {
  const plugin = docker(["compose", "version"]).status === 0;
  const [program, first] = plugin ? ["docker", ["compose"]] : ["docker-compose", []];
  const compose = (args, options = {}) =>
    run(program, [...first, "-p", project, "-f", FILE, ...args], { ...options, env });
  const containers = (service) =>
    compose(["ps", "-q", ...(service ? [service] : [])])
      .out.split("\n")
      .filter(Boolean);
  const inspect = (ids) => (ids.length === 0 ? [] : JSON.parse(docker(["inspect", ...ids]).out));

  return {
    command: plugin ? "docker compose" : "docker-compose",
    compose,
    containers,
    /** What the engine knows of every running container. */
    inspectAll: () => inspect(containers()),
    /** Whatever the project still has: containers, volumes and networks. */
    leftovers: () =>
      [
        ["ps", "-aq"],
        ["volume", "ls", "-q"],
        ["network", "ls", "-q"],
      ].flatMap((list) =>
        docker([...list, "--filter", `label=com.docker.compose.project=${project}`])
          .out.split("\n")
          .filter(Boolean),
      ),
  };
}
