import type { ExportJob } from "@linkfence/contracts";

/**
 * The name under which a browser keeps the file of an export: whose clicks, from when to when, and the beginning of its id,
 * so that two of a day are two files. It may have any
 * character that an owner's name may have; what of it goes into a header field, and how, is RFC 6266's.
 */
export function nameExport({ id, owner, from, to, format, gzip }: ExportJob): string {
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const period = from === null ? `until ${day(to)}` : `${day(from)} to ${day(to)}`;
  // What no file system takes as a part of a name, and what is not seen.
  const whose = owner.replaceAll(/[\p{C}\p{Z}/\\:*?"<>|]+/gu, "-").replace(/^\.+/, "");
  return `clicks ${whose} ${period} ${id.slice(0, 8)}.${format}${gzip ? ".gz" : ""}`.replaceAll(" ", "-");
}
