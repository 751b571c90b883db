export { addApiKey, makeAdminKey, type NewKey } from "./api-keys.ts";
export { checkFetched, checkRaw, isEventStream } from "./checked-answers.ts";
export {
  type CheckedDocument,
  type ContractCheck,
  createContractCheck,
  readDocument,
  sharedContractCheck,
} from "./contract-check.ts";
export { createTestDatabase, databaseUrl, type TestDatabase, terminateConnections, testServerUrl } from "./database.ts";
export { type FaultMode, type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
export { findFreePorts } from "./free-ports.ts";
export {
  createApiClient,
  createHttpClient,
  type HttpAnswer,
  type HttpClient,
  type HttpRequest,
  mapConcurrently,
  sendChecked,
} from "./http-client.ts";
export { type Pooler, type PoolerMode, startPooler } from "./pooler.ts";
export {
  type Exit,
  killStartedProcesses,
  type LogRecord,
  type RunningProcess,
  spawnProcess,
  watchProcess,
} from "./processes.ts";
export { runRights } from "./rights.ts";
export { findRollupFaults } from "./rollup-faults.ts";
export { PATIENT, type RunningService, type ServiceName, startService, WITHOUT_STATISTICS } from "./services.ts";
export { readMetric, type Stack, type StackOptions, startStack, waitUntilReady } from "./stack.ts";
export { keepOn, meanwhile, until, waitFor } from "./waiting.ts";
