/** sysexits.h: EX_USAGE. */
const EX_USAGE = 64;

/**
 * For a command that takes no arguments: answers `--help` and refuses anything else, ending the process either way.
 * @param what one sentence: what the command does
 */
export function allowOnlyHelp(name: string, what: string): void {
  const [argument] = process.argv.slice(2);
  if (argument === undefined) return;
  const help = `${what}\n\nUsage: pnpm ${name}\n`;
  if (argument === "--help") {
    process.stdout.write(help);
    process.exit(0);
  }
  process.stderr.write(`unknown argument ${argument}\n\n${help}`);
  process.exit(EX_USAGE);
}
