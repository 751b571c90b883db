export { createTestDatabase, databaseUrl, type TestDatabase, terminateConnections, testServerUrl } from "./database.ts";
export { type FaultMode, type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
export { type Exit, type LogRecord, type RunningProcess, spawnProcess } from "./processes.ts";
export { type RunningService, type ServiceName, startService } from "./services.ts";
