/** Defaults of a small local server. A caller's `settings` win over these. */
const DEFAULTS: Readonly<Record<string, string>> = {
  max_connections: "100",
  shared_buffers: "128MB",
  // Bounds both the disk taken by the log and the replay after a crash (seconds, not minutes).
  max_wal_size: "512MB",
  timezone: "UTC",
  log_timezone: "UTC",
  // A forgotten transaction holds locks and stops vacuum; 30 s is far above any transaction of the services.
  idle_in_transaction_session_timeout: "30s",
};

/** Settings this package depends on: how it listens, is told apart from other servers, and is understood. */
const RESERVED = new Set([
  "listen_addresses",
  "port",
  "unix_socket_directories",
  "cluster_name",
  "logging_collector",
  "log_destination",
  "lc_messages",
  "data_directory",
  "config_file",
  "hba_file",
  "ident_file",
  "external_pid_file",
]);

const SETTING_NAME = /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/i;

/**
 * Refuses setting names that are malformed or belong to this package.
 * @throws TypeError naming the setting.
 */
export function assertServerSettings(settings: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(settings)) {
    const known = name.toLowerCase();
    if (!SETTING_NAME.test(name) || known.startsWith("linkfence.") || RESERVED.has(known)) {
      throw new TypeError(`settings: "${name}" cannot be set here`);
    }
    if (typeof value !== "string" || value.includes("\0")) {
      throw new TypeError(`settings: the value of "${name}" must be a string without NUL`);
    }
  }
}

export type ServerIdentity = {
  /** Tells servers of this data directory apart from all others; shows in the title of every worker process. */
  mark: string;
  /** The process that started the server, and stops it. */
  ownerPid: number;
};

/**
 * @param listen `pgdata`: the path of the cluster as the server can reach it; `port`: loopback port
 * @returns the server's command line. Nothing secret: every user of the machine can read it.
 */
export function serverArguments(
  listen: { pgdata: string; port: number },
  identity: ServerIdentity,
  settings: Readonly<Record<string, string>>,
): string[] {
  const effective: Record<string, string> = {
    ...DEFAULTS,
    ...settings,
    listen_addresses: "127.0.0.1",
    port: String(listen.port),
    // No Unix socket: its path may have 107 bytes at most (unix(7)), and nothing here needs one.
    unix_socket_directories: "",
    logging_collector: "off",
    log_destination: "stderr",
    lc_messages: "C",
    cluster_name: identity.mark,
    "linkfence.owner_pid": String(identity.ownerPid),
  };
  return ["-D", listen.pgdata, ...Object.entries(effective).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
}
