export { findLocalPostgres } from "./find-running.ts";
export { LocalPostgresError, type LocalPostgresErrorCode } from "./local-postgres-error.ts";
export { makeDirectories } from "./make-directories.ts";
export type { LocalPostgresLogger, LocalPostgresOptions } from "./options.ts";
export { createProcessTable, type ProcessFacts, type ProcessTable } from "./process-table.ts";
export type { ServerExit } from "./server-process.ts";
export { type LocalPostgres, startLocalPostgres } from "./start.ts";
