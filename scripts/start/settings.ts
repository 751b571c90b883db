// What the start command is told by the environment, and the environment each service gets from it.
import { join, resolve } from "node:path";
import { ConfigError, readConfig, setting } from "@linkfence/service-shell";
import { type Static, Type } from "typebox";
import { readIngestConfig } from "../../services/click-ingest/src/config.ts";
import { readRedirectConfig } from "../../services/redirect/src/config.ts";
import { readWriteConfig } from "../../services/write/src/config.ts";

/** Below the data directory, where CLICK_SPOOL_DIR says nothing else. */
const SPOOL_FOLDER = "click-spool";
const EXPORT_FOLDER = "exports";
/** Redirects after the first have ports of their own, ten of them. */
const REDIRECTS_MAX = 11;

export const startSchema = Type.Object({
  LINKFENCE_DATA_DIR: setting.text({
    default: ".data",
    description:
      "where the embedded PostgreSQL, the admin key, the services' shared secret, the clicks on their way and exported files are kept",
  }),
  LINKFENCE_PORT_BASE: setting.integer(1, 65_535 - 39, {
    default: 7000,
    description:
      "first of the ports: +0 redirect, +1 admin API, +2 click-ingest, +10, +11, +12 their ops ports, +20 to +29 and +30 to +39 further redirects and their ops ports",
  }),
  LINKFENCE_REDIRECTS: setting.integer(1, REDIRECTS_MAX, { default: 1, description: "redirect processes" }),
  DATABASE_URL: Type.Optional(
    setting.databaseUrl({ description: "main database; an embedded PostgreSQL is started where it is not set" }),
  ),
  PUBLIC_BASE_URL: Type.Optional(
    setting.httpOrigin({ description: "origin of short URLs; the first redirect's own where it is not set" }),
  ),
  STATS_DATABASE_URL: Type.Optional(
    setting.databaseUrl({ description: "statistics database; the embedded PostgreSQL where it is not set" }),
  ),
  CLICK_SPOOL_DIR: Type.Optional(
    setting.text({
      description:
        "directory of the clicks on their way, in which each redirect process has one of its own, under its name; `click-spool` in LINKFENCE_DATA_DIR where it is not set",
    }),
  ),
});
export type StartConfig = Static<typeof startSchema>;

export type ServicePlan = {
  /** Name in the log. */
  name: string;
  entry: string;
  port: number;
  opsPort: number;
  /** Environment of the service, but for the database URLs. */
  env: Record<string, string>;
};

export type StartPlan = {
  dataDir: string;
  /** Each redirect process has a spool of its own in it, under its name, so that it finds there what it left. */
  spoolDir: string;
  config: StartConfig;
  publicBaseUrl: string;
  adminUrl: string;
  /** In the order in which they start; they stop in the opposite one. */
  services: ServicePlan[];
};

/** Stands for a URL that is not known yet, so that everything else can be judged before anything is started. */
const PLACEHOLDER_URL = "postgres://placeholder@127.0.0.1/placeholder";

/**
 * Reads everything that any part will be told, and refuses all faults at once.
 * @param env the environment; what concerns a service is handed on to it
 * @throws ConfigError
 */
export function planStart(env: NodeJS.ProcessEnv): StartPlan {
  const config = readConfig(startSchema, env);
  refuseUnknown(env);
  const base = config.LINKFENCE_PORT_BASE;
  const publicBaseUrl = config.PUBLIC_BASE_URL ?? `http://127.0.0.1:${base}`;
  const ingestUrl = `http://127.0.0.1:${base + 2}`;
  const handedOn = serviceEnvironment(env);
  const dataDir = resolve(config.LINKFENCE_DATA_DIR);
  const spoolDir = resolve(config.CLICK_SPOOL_DIR ?? join(dataDir, SPOOL_FOLDER));
  const plan = (name: string, folder: string, port: number, opsPort: number): ServicePlan => ({
    name,
    entry: `services/${folder}/dist/main.js`,
    port,
    opsPort,
    env: {
      ...handedOn,
      PORT: String(port),
      OPS_PORT: String(opsPort),
      PUBLIC_BASE_URL: publicBaseUrl,
      CLICK_INGEST_URL: ingestUrl,
    },
  });
  const redirects = Array.from({ length: config.LINKFENCE_REDIRECTS }, (_, index) => {
    const offset = index === 0 ? 0 : 19 + index;
    const name = index === 0 ? "redirect" : `redirect-${index + 1}`;
    const { env, ...rest } = plan(name, "redirect", base + offset, base + offset + 10);
    return { ...rest, env: { ...env, CLICK_SPOOL_DIR: join(spoolDir, name) } };
  });
  const services = [
    exporting(plan("click-ingest", "click-ingest", base + 2, base + 12), join(dataDir, EXPORT_FOLDER)),
    plan("write", "write", base + 1, base + 11),
    ...redirects,
  ];
  refuseFaults(services);
  return { dataDir, spoolDir, config, publicBaseUrl, adminUrl: `http://127.0.0.1:${base + 1}`, services };
}

/** Exports are written here, unless a directory for them is set. */
function exporting({ env, ...rest }: ServicePlan, directory: string): ServicePlan {
  const isSet = env.EXPORT_DIR !== undefined || env.EXPORT_DIR_FILE !== undefined;
  return { ...rest, env: isSet ? env : { ...env, EXPORT_DIR: directory } };
}

/** Everything with our prefix is meant for us: a slip in a name would otherwise start on another directory or port. */
function refuseUnknown(env: NodeJS.ProcessEnv): void {
  const known = Object.keys(startSchema.properties).filter((name) => name.startsWith("LINKFENCE_"));
  const faults = Object.keys(env)
    .filter((name) => name.startsWith("LINKFENCE_") && !known.includes(name.replace(/_FILE$/, "")))
    .map((name) => `${name} is not a setting: there are ${known.join(", ")}`);
  if (faults.length > 0) throw new ConfigError(faults);
}

/** Services get the environment as it is, less what this command decides itself. */
function serviceEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const decided =
    /^((PORT|OPS_PORT|HOST|PUBLIC_BASE_URL|CLICK_INGEST_URL|CLICK_SPOOL_DIR|(STATS_)?DATABASE_URL)(_FILE)?|LINKFENCE_.*|npm_.*)$/;
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined || decided.test(name) ? [] : [[name, value]])),
  );
}

function refuseFaults(services: readonly ServicePlan[]): void {
  const read = { "click-ingest": readIngestConfig, write: readWriteConfig, redirect: readRedirectConfig };
  const faults = new Set<string>();
  for (const { name, env } of services) {
    if (!(name in read)) continue;
    try {
      read[name as keyof typeof read]({ ...env, DATABASE_URL: PLACEHOLDER_URL, STATS_DATABASE_URL: PLACEHOLDER_URL });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const fault of error.faults) faults.add(fault);
    }
  }
  if (faults.size > 0) throw new ConfigError([...faults]);
}
