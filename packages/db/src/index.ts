export { arrayLiteral, createArrayTypes } from "./array-types.ts";
export { createDatabase, type Database, type DatabaseOptions, type Sql, type TransactionSql } from "./connect.ts";
export { classifyError, DeadlineExceeded, type ErrorKind, errorCode, isServerError, PoolOverloaded } from "./errors.ts";
export { quoteLiteral, type Snapshot, type SnapshotOptions, withSnapshot } from "./snapshot.ts";
