// Writes small files in MaxMind's format (its specification, version 2.0): a tree over the bits of an address, and the
// data that its leaves point to.

/** A value as the data section holds it: a control byte with type and size, then the value. */
function encode(value: string | number | Record<string, unknown> | readonly string[]): Buffer {
  if (typeof value === "string") return Buffer.concat([control(2, Buffer.byteLength(value)), Buffer.from(value)]);
  if (typeof value === "number") {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return Buffer.concat([control(6, 4), bytes]);
  }
  // An array is of type 11, which is written as an extended one: 11 - 7 in a byte of its own.
  if (Array.isArray(value)) return Buffer.concat([Buffer.from([value.length, 4]), ...value.map(encode)]);
  const pairs = Object.entries(value) as [string, string][];
  return Buffer.concat([control(7, pairs.length), ...pairs.flatMap(([key, of]) => [encode(key), encode(of)])]);
}

const control = (type: number, size: number) => Buffer.from([(type << 5) | size]);

/** Makes a file that knows the first half of IPv4 as one country and, of the other, the half of it as another. */
export function makeMmdb(first: string, second: string): Buffer {
  const data = [{ country: { iso_code: first } }, { registered_country: { iso_code: second } }].map(encode);
  const nodes = 2;
  const separator = 16;
  const leaf = (index: number) => nodes + separator + (index === 0 ? 0 : (data[0]?.length ?? 0));
  const records = [leaf(0), 1, leaf(1), nodes];
  const tree = Buffer.concat(records.map((record) => Buffer.from([record >> 16, record >> 8, record])));
  const metadata = encode({
    ...{ binary_format_major_version: 2, binary_format_minor_version: 0, build_epoch: 1, database_type: "Test" },
    ...{ description: { en: "test" }, ip_version: 4, languages: ["en"], node_count: nodes, record_size: 24 },
  });
  const mark = Buffer.from("\xab\xcd\xefMaxMind.com", "latin1");
  return Buffer.concat([tree, Buffer.alloc(separator), ...data, mark, metadata]);
}
