import type { DropReport } from "@linkfence/contracts";
import { FRAME_HEAD } from "../spool/frame.ts";

const END = Buffer.from("]}");
/** A comma and three spaces, and four spaces, as numbers of four bytes, least significant first. */
const COMMA = 0x20_20_20_2c;
const SPACES = 0x20_20_20_20;
/** Batches differ a little in size. */
const ROUND = 65_536;

/**
 * Creates the function that makes a batch of clicks that are JSON already, out of whole frames as they lie in memory: each is
 * copied as it is, and where it had its length and its sum there is a comma, and spaces, which JSON has for nothing (RFC 8259
 * section 2). So there is one copy for a group of clicks, and no object for each of them.
 * @param sender name under which the ingest's log speaks of this process
 */
export function createBatchBody(sender: string) {
  /** `room`: memory that nobody else uses until the batch is sent; it is taken where it is large enough. */
  return (frames: readonly Buffer[], dropped: DropReport, room?: Buffer): Buffer => {
    const head = Buffer.from(`${JSON.stringify({ sender, dropped }).slice(0, -1)},"clicks":[`);
    const size = frames.reduce((sum, { length }) => sum + length, head.length + END.length);
    const fits = room !== undefined && room.length >= size;
    // In memory of its own, which the next one may use: of small ones, several would be in one piece.
    const body = (fits ? room : Buffer.allocUnsafeSlow(Math.ceil(size / ROUND) * ROUND)).subarray(0, size);
    let at = head.copy(body);
    for (const group of frames) {
      group.copy(body, at);
      for (let frame = 0; frame < group.length; ) {
        body.writeUInt32LE(COMMA, at + frame);
        body.writeUInt32LE(SPACES, at + frame + 4);
        frame += FRAME_HEAD + group.readUInt32LE(frame);
      }
      at += group.length;
    }
    // Before the first there is none.
    body.writeUInt32LE(SPACES, head.length);
    END.copy(body, at);
    return body;
  };
}
