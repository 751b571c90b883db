// The house rules that no linter of ours knows: what stands at the top, who may import whom, how long a file may be.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MAX_LINES = 300;

/** Lower levels never import higher ones; within a level nobody imports anybody. */
const LEVELS = [
  ["contracts", "local-postgres"],
  ["db", "service-shell", "testkit"],
  ["link-feed"],
  ["write", "redirect", "click-ingest"],
  ["scripts", "tests"],
];
/**
 * Experiments and the simulator weaken one part of a service at a time, which takes composition roots of their own; bounds
 * that are asserted are computed by the product's own functions.
 */
const REACHES_OUT = /^(scripts|tests\/(evidence|simulation|nemesis))\//;
const TEST_ONLY = new Set(["testkit"]);

const TOP = new Set([
  ...["package.json", "pnpm-workspace.yaml", "services", "packages", "infra", "scripts", "tests"],
  ...["README.md", "LICENSE", "CHANGELOG.md", "pnpm-lock.yaml", ".ci"],
  ...["biome.json", "jest.config.mjs", "knip.json", ".gitignore", ".gitattributes", ".editorconfig", ".dockerignore"],
]);

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\n")
  // A file that was just removed is still listed until that is committed.
  .filter((file) => file !== "" && existsSync(join(ROOT, file)));
const sources = files.filter((file) => /\.m?ts$/.test(file));
const manifests = files.filter((file) =>
  /^(packages|services)\/[^/]+\/package\.json$|^(scripts|tests)\/package\.json$/.test(file),
);

type Manifest = { dependencies?: Record<string, string>; devDependencies?: Record<string, string> };
const shortName = (path: string) => dirname(path).split("/").at(-1) ?? "";
const own = (names: Record<string, string> = {}) =>
  Object.keys(names).flatMap((name) => (name.startsWith("@linkfence/") ? [name.slice("@linkfence/".length)] : []));
const levelOf = (name: string) => LEVELS.findIndex((level) => level.includes(name));

describe("the layout", () => {
  test("has nothing at the top but what belongs there", () => {
    const top = new Set(files.map((file) => file.split("/", 1)[0] ?? ""));
    expect([...top].filter((name) => !TOP.has(name))).toEqual([]);
  });

  test.each(manifests)("%s depends on lower levels only", (path) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, path), "utf8")) as Manifest;
    const level = levelOf(shortName(path));
    expect(level).toBeGreaterThanOrEqual(0);
    const used = own(manifest.dependencies).filter((name) => levelOf(name) >= level);
    const usedByTests = own(manifest.devDependencies).filter((name) => levelOf(name) >= level && !TEST_ONLY.has(name));
    expect([...used, ...usedByTests]).toEqual([]);
  });

  test("no source reaches into another package by a path, but for the scripts, which read settings, and experiments and the simulator, which put parts together", () => {
    const crossing = sources.flatMap((file) => {
      const home =
        file.startsWith("services/") || file.startsWith("packages/")
          ? file.split("/").slice(0, 2).join("/")
          : file.split("/")[0];
      const text = readFileSync(join(ROOT, file), "utf8");
      return [...text.matchAll(/from "(\.[^"]+)"/g)].flatMap(([, path = ""]) => {
        const target = relative(ROOT, resolve(ROOT, dirname(file), path))
          .split(sep)
          .join("/");
        return target.startsWith(`${home}/`) || REACHES_OUT.test(file) ? [] : [`${file} -> ${target}`];
      });
    });
    expect(crossing).toEqual([]);
  });

  test("the scripts take nothing from a service but its settings, what its calls say of themselves, and what an operator works at; benchmarks also take what they measure", () => {
    const described = [
      "/src/config.ts",
      "/src/store/dead-click-desk.ts",
      "/src/http/api-routes.ts",
      "/src/openapi/document.ts",
    ];
    const reached = sources
      .filter((file) => file.startsWith("scripts/") && !file.startsWith("scripts/bench/"))
      .flatMap((file) => [...readFileSync(join(ROOT, file), "utf8").matchAll(/from "(\.[^"]*services\/[^"]+)"/g)])
      .map(([, path = ""]) => path);
    expect(reached.length).toBeGreaterThan(0);
    expect(reached.filter((path) => !described.some((end) => path.endsWith(end)))).toEqual([]);
  });

  test("whatever shows a key to the admin API holds the answer against the document, but for a limit's own little server", () => {
    const checks = /\b(sendChecked|checkFetched|checkRaw|sharedContractCheck|createContractCheck|world\.raw)\b/;
    const careless = sources
      .filter((file) => /\.(test|fixture)\.ts$|^tests\/|^packages\/testkit\//.test(file))
      .filter((file) => {
        const text = readFileSync(join(ROOT, file), "utf8");
        return /\bBearer \$\{|\bauthorized\(/.test(text) && !checks.test(text);
      });
    expect(careless).toEqual(["services/write/src/http/rate-limits.test.ts"]);
  });

  test("no source asks a URL parser that is wrong once it is compiled (see contracts/src/url.ts)", () => {
    const asking = sources.filter((file) => readFileSync(join(ROOT, file), "utf8").includes("URL.can" + "Parse("));
    expect(asking).toEqual([]);
  });

  test("no file is longer than 300 lines", () => {
    const long = sources.filter((file) => readFileSync(join(ROOT, file), "utf8").split("\n").length > MAX_LINES + 1);
    expect(long).toEqual([]);
  });
});
