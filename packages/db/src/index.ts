export { arrayLiteral, createArrayTypes } from "./array-types.ts";
export { createDatabase, type Database, type DatabaseOptions, type Sql, type TransactionSql } from "./connect.ts";
export { classifyError, DeadlineExceeded, type ErrorKind, errorCode, PoolOverloaded } from "./errors.ts";
