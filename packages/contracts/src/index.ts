export * from "./clicks.ts";
export * from "./code.ts";
export * from "./key.ts";
export * from "./link.ts";
export * from "./problem.ts";
export * from "./problem-guide.ts";
export * from "./stats.ts";
export * from "./url.ts";
