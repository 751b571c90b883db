export { ConfigError, readConfig, setting } from "./config.ts";
export { type ExchangeOptions, exchange } from "./http-exchange.ts";
export { type HttpServerOptions, listen, type RunningServer } from "./http-server.ts";
export { createLogger, type Logger, type LogLevel, redact } from "./logger.ts";
export { createMetrics, type Metrics } from "./metrics.ts";
export { createOpsHandler, type Readiness } from "./ops-server.ts";
export { createErrorHandler, type ProblemBody, problemBody, sendProblem } from "./problem-response.ts";
export { configOrExit, runService, type Undo } from "./run-service.ts";
export { createValidator } from "./validator.ts";
