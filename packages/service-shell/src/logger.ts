// One JSON record a line. Whatever a visitor sent stays inside its own field: JSON escapes the C0 control characters,
// and the line separators it leaves alone are escaped here, so that no reader of the log sees a line we did not write.
import winston from "winston";

/** A field longer than this is cut: a log line is for reading, and an attacker chooses some of these texts. */
const FIELD_MAX = 2048;

export type LogLevel = "error" | "warn" | "info" | "debug";
type Fields = Record<string, unknown> | undefined;
export type Logger = Record<LogLevel, (message: string, fields?: Record<string, unknown>) => void>;

/**
 * Takes out keys of this product and passwords in URLs, wherever they turn up. Every repetition is bounded, so that a
 * long text from outside costs no more than its length.
 */
export function redact(text: string): string {
  return text
    .replace(/linkfence_([A-Za-z0-9]{1,32})_[A-Za-z0-9_-]+/g, "linkfence_$1_[redacted]")
    .replace(/\b([a-z][a-z0-9+.-]{0,30}:\/\/[^\s:/@]{0,200}):[^\s@]{0,500}@/gi, "$1:[redacted]@");
}

/**
 * Creates the logger of one process; writes to standard output.
 * @param service name that stands in each record
 * @param level least important level that is written
 */
export function createLogger(service: string, level: LogLevel): Logger {
  const logger = winston.createLogger({
    level,
    format: winston.format.combine(
      winston.format.timestamp(),
      winston.format.printf(({ timestamp, level: at, message, fields }) =>
        renderRecord({
          time: String(timestamp),
          level: at,
          service,
          message: String(message),
          fields: fields as Fields,
        }),
      ),
    ),
    transports: [new winston.transports.Console()],
  });
  const write = (at: LogLevel) => (message: string, fields?: Record<string, unknown>) => {
    logger.log(at, message, { fields });
  };
  return { error: write("error"), warn: write("warn"), info: write("info"), debug: write("debug") };
}

export type LogEntry = { time: string; level: string; service: string; message: string; fields: Fields };

/** Renders one record as one line of JSON, without its line break. */
export function renderRecord({ time, level, service, message, fields }: LogEntry): string {
  return escapeSeparators(
    JSON.stringify({ time, level, service, message: cut(message), ...plainFields(fields ?? {}) }),
  );
}

/** DEL, the C1 controls (NEL among them), and the line and paragraph separators: legal in JSON, line breaks to some. */
function escapeSeparators(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Errors become message and code; nothing else of them is written, since drivers attach queries and parameters. */
function plainFields(fields: Record<string, unknown>): Record<string, unknown> {
  const reserved = new Set(["time", "level", "service", "message"]);
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => !reserved.has(name))
      .map(([name, value]) => [name, plainValue(value)]),
  );
}

function plainValue(value: unknown): unknown {
  if (value instanceof Error) {
    const code = "code" in value && typeof value.code === "string" ? ` (${value.code})` : "";
    return cut(`${value.name}: ${value.message}${code}`);
  }
  if (typeof value === "string") return cut(value);
  if (typeof value === "number" || typeof value === "boolean" || value === null || value === undefined) return value;
  return cut(JSON.stringify(value) ?? String(value));
}

/** What is looked through is bounded too: of a text without end, the end is of no interest. */
function cut(text: string): string {
  const safe = redact(text.slice(0, FIELD_MAX * 8));
  return safe.length > FIELD_MAX ? `${safe.slice(0, FIELD_MAX)}…` : safe;
}
