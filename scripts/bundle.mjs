// Makes one file of each program that runs as a process of its own, packages and all: Node then opens one file where it
// opened nine hundred, and a service starts in half the time. Types are checked by `tsc`, which runs before.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const PROGRAMS = [
  ["services/write", "src/main"],
  ["services/write", "src/admin-key"],
  ["services/redirect", "src/main"],
  ["services/click-ingest", "src/main"],
  ["packages/local-postgres", "src/starter.fixture"],
  ["tests", "evidence/redirect.fixture"],
  ["scripts", "start"],
  ["scripts", "dead-clicks"],
];

/** CommonJS packages ask for Node's own modules by `require`, which a module does not have by itself. */
const REQUIRE = `import { createRequire as $createRequire } from "node:module"; const require = $createRequire(import.meta.url);`;

/** pg-format names a file of its own by a computed path, which no bundler can follow. */
const pgFormat = {
  name: "pg-format",
  setup: ({ onLoad }) =>
    onLoad({ filter: /pg-format[\\/]lib[\\/]index\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace("require(__dirname + '/reserved.js')", "require('./reserved.js')");
      if (contents === text)
        throw new Error(`${path} does not ask for its words as it did: see whether this is still needed`);
      return { contents };
    }),
};

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** A text of more than these letters takes two bytes each in memory, for as long as the process lives: 3 MB for a dash. */
const BEYOND_ASCII = /[^\0-\x7f]/gu;

await Promise.all(
  PROGRAMS.map(async ([directory, program]) => {
    const { outputFiles } = await build({
      absWorkingDir: ROOT,
      entryPoints: [`${directory}/${program}.ts`],
      outfile: `${directory}/dist/${basename(program)}.js`,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      // The sources of the workspace, so that nothing hangs on what was built before.
      conditions: ["source"],
      banner: { js: REQUIRE },
      plugins: [pgFormat],
      // They look for what belongs to them beside themselves: a compiled part, the server's programs, the migrations.
      external: ["fs-native-extensions", "@linkfence/local-postgres", "@linkfence/db/migrate"],
      logLevel: "warning",
      write: false,
    });
    // In code they are escaped (esbuild, charset): what is left is in comments.
    for (const { path, text } of outputFiles) {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text.replace(BEYOND_ASCII, "?"));
    }
  }),
);

// The tests load the packages anew for each of their files, and this one alone has hundreds of its own.
await build({
  absWorkingDir: `${ROOT}packages/contracts`,
  entryPoints: ["typebox"],
  outfile: `${ROOT}tests/setup/dist/typebox.js`,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  logLevel: "warning",
});
