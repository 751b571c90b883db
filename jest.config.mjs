import { availableParallelism } from "node:os";

/** What a test needs stands in its suffix; each kind is a project, so that one kind can be run alone. */
const kinds = {
  unit: { testMatch: ["<rootDir>/**/*.test.ts"], ignore: ["\\.(pg|e2e|failure)\\.test\\.ts$"] },
  pg: { testMatch: ["<rootDir>/**/*.pg.test.ts"], ignore: [] },
  e2e: { testMatch: ["<rootDir>/**/*.e2e.test.ts"], ignore: [] },
  failure: { testMatch: ["<rootDir>/**/*.failure.test.ts"], ignore: [] },
};

const projects = Object.entries(kinds).map(([displayName, { testMatch, ignore }]) => ({
  displayName,
  testMatch,
  testPathIgnorePatterns: ["/node_modules/", "/dist/", ...ignore],
  modulePathIgnorePatterns: ["/dist/"],
  moduleNameMapper: { "^typebox$": "<rootDir>/tests/setup/dist/typebox.js" },
  testEnvironment: "node",
  testEnvironmentOptions: { customExportConditions: ["source", "node"] },
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "^.+\\.ts$": ["@swc/jest", { jsc: { parser: { syntax: "typescript" }, target: "es2023" }, sourceMaps: "inline" }],
  },
}));

export default {
  projects,
  globalSetup: "<rootDir>/tests/setup/global-setup.mjs",
  globalTeardown: "<rootDir>/tests/setup/global-teardown.mjs",
  reporters: ["default", "<rootDir>/tests/setup/tally-reporter.mjs"],
  testSequencer: "<rootDir>/tests/setup/long-first.mjs",
  // One more than there are cores: what fails and recovers is mostly waited for.
  maxWorkers: availableParallelism() + 1,
  // Real processes and a real database start within a few tests; a hung one is ended well before CI's own limit.
  testTimeout: 60_000,
};
