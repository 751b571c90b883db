// Configuration from environment variables, judged whole before anything starts: every fault is listed at once, each
// names its variable and the rule, and none repeats the value, which may be a secret.
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { parseUrl } from "@linkfence/contracts";
import { Ajv, type ErrorObject } from "ajv";
import { type Static, type TObject, type TSchema, Type } from "typebox";

/** Thrown when the environment does not fit; `faults` has one sentence a variable. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`Configuration refused:\n${faults.map((fault) => `  - ${fault}`).join("\n")}`);
    this.name = "ConfigError";
    this.faults = faults;
  }
}

type Described<T> = { default?: T; description: string };

/** Building blocks for a service's schema; each carries the sentence that the documentation prints. */
export const setting = {
  /** TCP port; 0 lets the system choose. */
  port: (about: Described<number>) => Type.Integer({ minimum: 0, maximum: 65535, ...about }),
  /** Whole number between two bounds, both allowed. */
  integer: (minimum: number, maximum: number, about: Described<number>) => Type.Integer({ minimum, maximum, ...about }),
  /** `true` or `false`, nothing else. */
  flag: (about: Described<boolean>) => Type.Boolean(about),
  /** One of several words. */
  choice: <const T extends string[]>(words: readonly [...T], about: Described<T[number]>) =>
    Type.Enum([...words], about),
  text: (about: Described<string>) => Type.String({ maxLength: 1024, ...about }),
  /** `http://` or `https://` URL without credentials, query and fragment. */
  httpUrl: (about: Described<string>) => Type.String({ format: "http-url", ...about }),
  /** As `httpUrl`, and without a path: what paths can be appended to. */
  httpOrigin: (about: Described<string>) => Type.String({ format: "http-origin", ...about }),
  /** Addresses and networks of proxies, parted by commas; see `isProxyList`. */
  proxyList: (about: Described<string>) => Type.String({ format: "proxy-list", maxLength: 4096, ...about }),
  /** Name of a header field. */
  headerName: (about: Described<string>) => Type.String({ format: "header-name", maxLength: 64, ...about }),
  /** Fits into an `Authorization` field as it is, and is too long to be guessed. Its value is never printed. */
  secret: (about: Described<string>) => Type.String({ format: "secret", ...about }),
  /** PostgreSQL connection URL. Secret: its value is never printed. */
  databaseUrl: (about: Described<string>) => Type.String({ format: "database-url", ...about }),
};

const RULES: Record<string, string> = {
  "http-url": "must be an http:// or https:// URL without credentials, query and fragment",
  "http-origin": "must be an http:// or https:// URL without credentials, path, query and fragment",
  "proxy-list":
    "must name proxies, parted by commas: addresses, networks as 10.0.0.0/8 or 2001:db8::/32, or loopback, linklocal, uniquelocal",
  "header-name": "must be the name of a header field",
  secret: "must be 32 to 256 letters, digits and -._~+/=",
  "database-url":
    "must be a postgres:// URL with a host and a database; percent-encode # ? / @ : and % in the user name and the password",
};

/**
 * Reads a service's configuration.
 * @param schema flat object schema whose property names are the variables
 * @param env the environment; `NAME_FILE` stands for `NAME` and names a file that holds the value (for secrets)
 * @throws ConfigError that lists every fault
 */
export function readConfig<T extends TObject>(schema: T, env: NodeJS.ProcessEnv): Static<T> {
  const faults: string[] = [];
  const data: Record<string, string> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const text = readVariable(name, env, faults);
    if (text === undefined) continue;
    const fault = textFault(text, property);
    if (fault) faults.push(`${name} ${fault}`);
    else data[name] = text;
  }
  const ajv = createAjv();
  const fits = ajv.validate(schema, data);
  if (fits && faults.length === 0) return data as Static<T>;
  // A variable whose text was refused above is missing below: its first fault is the one to tell.
  const told = new Set(faults.map((fault) => fault.split(/ |_FILE/, 1)[0]));
  faults.push(...schemaFaults(ajv.errors ?? []).filter((fault) => !told.has(fault.split(" ", 1)[0])));
  throw new ConfigError(faults);
}

function readVariable(name: string, env: NodeJS.ProcessEnv, faults: string[]): string | undefined {
  const path = env[`${name}_FILE`];
  if (path === undefined) return env[name];
  if (env[name] !== undefined) {
    faults.push(`${name} and ${name}_FILE are both set: keep one`);
    return undefined;
  }
  try {
    return readFileSync(path, "utf8").replace(/\r?\n$/, "");
  } catch {
    faults.push(`${name}_FILE names a file that cannot be read`);
    return undefined;
  }
}

/** Coercion would take "0x1F", "1e3" and " 8 " for numbers and an empty text for "not set": none of them is meant. */
function textFault(text: string, property: TSchema): string | undefined {
  if (text === "") return "must not be empty: leave it out for the default";
  const type = "type" in property ? property.type : undefined;
  if (type === "integer" && !/^-?\d{1,15}$/.test(text)) return "must be a whole number";
  if (type === "boolean" && text !== "true" && text !== "false") return "must be true or false";
  return undefined;
}

/** The schemas are the services' own: whether they are schemas is the compiler's business, and costs a start a tenth of its time. */
function createAjv(): Ajv {
  const ajv = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true, strict: false, validateSchema: false });
  ajv.addFormat("http-url", (text) => isHttpUrl(text));
  ajv.addFormat("http-origin", (text) => isHttpUrl(text) && new URL(text).pathname === "/");
  ajv.addFormat("database-url", (text) => isDatabaseUrl(text));
  // A token (RFC 9110 section 5.6.2).
  ajv.addFormat("header-name", (text) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text));
  ajv.addFormat("secret", (text) => /^[A-Za-z0-9\-._~+/=]{32,256}$/.test(text));
  ajv.addFormat("proxy-list", (text) => isProxyList(text));
  return ajv;
}

function isHttpUrl(text: string): boolean {
  const url = parseUrl(text);
  if (!url) return false;
  const plain = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  return plain && (url.protocol === "http:" || url.protocol === "https:") && !/[?#\s]/.test(text);
}

function isDatabaseUrl(text: string): boolean {
  const match = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)\/([^/?#]+)(?:\?[^#]*)?$/.exec(text);
  const [, credentials = "", hosts = "", database = ""] = match ?? [];
  if (!match || /[\s]/.test(text) || credentials.split(":").length > 2) return false;
  if (![...credentials.split(":"), database].every(isDecodable)) return false;
  return hosts.split(",").every((host) => {
    const { hostname = "", pathname = "" } = parseUrl(`tcp://${host}`) ?? {};
    return hostname !== "" && (pathname === "" || pathname === "/");
  });
}

/** Express' names for networks that no packet from outside comes from. */
const PROXY_WORDS = new Set(["loopback", "linklocal", "uniquelocal"]);

/**
 * Judges a list of proxies whose `X-Forwarded-For` is believed. A number of hops, `true` and networks of everybody are
 * refused: with them callers could say who they are.
 */
function isProxyList(text: string): boolean {
  return text.split(",").every((part) => {
    const [address = "", prefix, ...rest] = part.trim().split("/");
    if (PROXY_WORDS.has(address)) return prefix === undefined;
    const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
    if (bits === 0 || address.includes("%") || rest.length > 0) return false;
    return prefix === undefined || (/^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= bits);
  });
}

/** The drivers decode these parts, and an escape that is none, or no UTF-8, would stop them half way through a start. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function schemaFaults(errors: readonly ErrorObject[]): string[] {
  const sentences = errors.map(({ instancePath, keyword, message = "is not valid", params }) => {
    if (keyword === "required") return `${String(params.missingProperty)} is required`;
    const name = instancePath.slice(1);
    if (keyword === "format") return `${name} ${RULES[String(params.format)] ?? message}`;
    if (keyword === "enum") return `${name} must be one of ${(params.allowedValues as string[]).join(", ")}`;
    return `${name} ${message}`;
  });
  return [...new Set(sentences)];
}
