// README's tables of settings, made from the schemas that the services judge their environment by.
import type { TObject, TSchema } from "typebox";
import { configSchema as ingest } from "../services/click-ingest/src/config.ts";
import { configSchema as redirect } from "../services/redirect/src/config.ts";
import { configSchema as write } from "../services/write/src/config.ts";
import { replaceMarked } from "./marked-part.ts";
import { startSchema } from "./start/settings.ts";

const SECTIONS: readonly [string, TObject][] = [
  ["The start command (`npm start`)", startSchema],
  ["`services/redirect`", redirect],
  ["`services/write`", write],
  ["`services/click-ingest`", ingest],
];

/** Replaces the tables of settings. Throws when a marker is missing. */
export function withSettings(readme: string): string {
  return replaceMarked(
    readme,
    "settings",
    SECTIONS.map(([title, schema]) => `**${title}**\n\n${table(schema)}`).join("\n\n"),
  );
}

function table(schema: TObject): string {
  const rows = Object.entries(schema.properties).map(([name, property]) => {
    const { description = "", ...rest } = property as TSchema & { description?: string };
    return `| \`${name}\` | ${shownDefault(name, rest, schema)} | ${rule(rest)} | ${sentence(description)} |`;
  });
  return ["| variable | default | value | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function shownDefault(name: string, property: Record<string, unknown>, schema: TObject): string {
  if ("default" in property) return `\`${String(property.default)}\``;
  return schema.required?.includes(name) ? "required" : "none";
}

function rule(property: Record<string, unknown>): string {
  if (Array.isArray(property.enum)) return property.enum.map((word) => `\`${String(word)}\``).join(", ");
  if (property.type === "integer") return `${String(property.minimum)} to ${String(property.maximum)}`;
  if (property.type === "boolean") return "`true`, `false`";
  return typeof property.format === "string" ? property.format.replaceAll("-", " ").replace(/url$/, "URL") : "text";
}

/** One style for all: no capital, no full stop, no bar that would end the cell. */
function sentence(text: string): string {
  const bare = text.replace(/\.$/, "").replaceAll("|", "\\|");
  return /^[A-Z][a-z]/.test(bare) ? bare.charAt(0).toLowerCase() + bare.slice(1) : bare;
}
