// The frame of a command: its arguments, its help, and what it ends with.
import { type ParseArgsConfig, parseArgs } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<O extends Options> = ReturnType<typeof parseArgs<{ options: O; allowPositionals: true }>>["values"];

/** Wrong arguments (EX_USAGE of sysexits(3)). */
const EX_USAGE = 64;

/** Arguments that cannot be carried out. The message says what is wrong with them; the help is shown below it. */
export class UsageError extends Error {}

export type Command<O extends Options> = {
  /** Ends in a line feed. `--help` prints it, and every command has that option. */
  help: string;
  options: O;
  /**
   * Does the work. It resolves with the exit status, and throws a UsageError where the arguments are wrong.
   * @param names arguments that are no options
   */
  run: (values: Values<O>, names: readonly string[]) => Promise<number>;
};

/**
 * Runs a command on the arguments of this process, and sets its exit status. Where nobody reads its output any more, or
 * there is no room for it, the command is ended as by SIGTERM, so that it puts its things away as then.
 */
export async function runCommand<const O extends Options>({ help, options, run }: Command<O>) {
  process.stdout.on("error", endForWantOfOutput);
  try {
    if (process.argv.slice(2).includes("--help")) {
      process.stdout.write(help);
      return;
    }
    const { values, positionals } = readArguments(options);
    process.exitCode = await run(values, positionals);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${help}`);
    process.exitCode = EX_USAGE;
  }
}

type Bounds = {
  min: number;
  max: number;
  /** False where there may be decimals, up to three of them. */
  whole?: boolean;
};

/** Reads the number that an option was given. Throws a UsageError where it is none, or out of bounds. */
export function readNumber(name: string, text: string, bounds: Bounds): number {
  return readArgument(`--${name}`, text, bounds);
}

/**
 * Reads a number from any place among the arguments.
 * @param what names it in a refusal
 * @throws UsageError where it is none, or out of bounds
 */
export function readArgument(what: string, text: string, { min, max, whole = true }: Bounds): number {
  const value = (whole ? /^\d{1,10}$/ : /^\d{1,5}(\.\d{1,3})?$/).test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${what} must be a ${whole ? "whole " : ""}number from ${min} to ${max}`);
}

let ending = false;

function endForWantOfOutput(error: Error): void {
  if (ending) return;
  ending = true;
  process.stderr.write(`ended, as the output cannot be written: ${error.message}\n`);
  process.kill(process.pid, "SIGTERM");
}

function readArguments<const O extends Options>(options: O) {
  try {
    return parseArgs<{ options: O; allowPositionals: true }>({ options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
