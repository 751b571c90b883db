export * from "./clicks.ts";
export * from "./code.ts";
export * from "./import.ts";
export * from "./link.ts";
export * from "./problem.ts";
export * from "./stats.ts";
export * from "./url.ts";
