// How clicks lie in a segment: frame after frame, each of a length (4 bytes, least significant first), the CRC32C of the
// payload (4 bytes, the same) and the payload, which is the click's JSON. A payload has no NUL byte, as JSON escapes it,
// and the length of a frame has two: so no part of a payload is ever taken for the beginning of a frame, whatever a
// visitor sends, and reading can go on behind damage.
import { crc32c } from "./crc32c.ts";

/** Length and sum. */
export const FRAME_HEAD = 8;
/** The longest click has about 2,500 bytes; anything below 65,536 leaves two NUL bytes in every length. */
export const PAYLOAD_MAX = 16_384;
/** The shortest JSON object. A stretch of zeros, as a power loss leaves it, is no frame. */
const PAYLOAD_MIN = 2;

/** Room for the head of a frame, in a text. */
const GAP = "\0".repeat(FRAME_HEAD);

/** Encodes each payload once, for the file and for memory. Throws a RangeError for one that could not be read again. */
export function encodeFrames(payloads: readonly string[]): Buffer {
  if (payloads.length === 0) return Buffer.alloc(0);
  // All of them by one call: a call for each costs as much as all that is done to its letters.
  const text = GAP + payloads.join(GAP);
  const frames = Buffer.from(text);
  const isAscii = frames.length === text.length;
  let at = 0;
  for (const payload of payloads) {
    const length = isAscii ? payload.length : Buffer.byteLength(payload);
    if (!isLength(length)) throw new RangeError(`a payload of ${length} bytes fits no frame`);
    frames.writeUInt32LE(length, at);
    frames.writeUInt32LE(crc32c(frames, at + FRAME_HEAD, at + FRAME_HEAD + length), at + 4);
    at += FRAME_HEAD + length;
  }
  return frames;
}

/** The payloads of whole frames: those that were encoded by this process, or were found. Nothing is checked. */
export function splitFrames(frames: Buffer): Buffer[] {
  const payloads: Buffer[] = [];
  for (let at = 0; at < frames.length; ) {
    const end = at + FRAME_HEAD + frames.readUInt32LE(at);
    payloads.push(frames.subarray(at + FRAME_HEAD, end));
    at = end;
  }
  return payloads;
}

export type FramesFound = {
  /** Whole and right frames, in order, in stretches without damage. They share their memory with the bytes that were read. */
  runs: Buffer[];
  /** How many frames they are. */
  count: number;
  /** How far was read: the next part begins there. */
  used: number;
  /** Stretches that are no frame. Each stands for one click at the least; how many there were nobody can tell. */
  damaged: number;
};

export type FramesToRead = {
  /** Nothing follows: what is no whole frame at the end is damage, and not to be read again with what follows. */
  last: boolean;
  /** Frames at the most. */
  limit?: number;
};

/**
 * Finds frames from the beginning of `bytes`, and goes on behind whatever is none. Never throws, and makes no object for a
 * frame: of a thousand in a batch the collector would have to carry each along.
 * Where more follows, `bytes` has to be longer than one frame for `used` to be more than 0.
 */
export function findFrames(bytes: Buffer, { last, limit = Number.POSITIVE_INFINITY }: FramesToRead): FramesFound {
  const runs: Buffer[] = [];
  let count = 0;
  let used = 0;
  let damaged = 0;
  /** Where the stretch began that goes on; null before the first frame and in damage. */
  let runFrom: number | null = null;
  let inDamage = false;
  const endRun = () => {
    if (runFrom !== null) runs.push(bytes.subarray(runFrom, used));
    runFrom = null;
  };
  while (used < bytes.length && count < limit) {
    const end = findEnd(bytes, used);
    if (end !== null && end > bytes.length && !last) break;
    if (end !== null && isWhole(bytes, used, end)) {
      runFrom ??= used;
      count += 1;
      used = end;
      inDamage = false;
      continue;
    }
    endRun();
    if (!inDamage) damaged += 1;
    inDamage = true;
    used = findNext(bytes, used);
  }
  endRun();
  return { runs, count, used, damaged };
}

/** The same, and the payload of each frame, in the same memory. */
export function readFrames(bytes: Buffer, how: FramesToRead): FramesFound & { payloads: Buffer[] } {
  const found = findFrames(bytes, how);
  return { ...found, payloads: found.runs.flatMap((run) => splitFrames(run)) };
}

/** The next place behind `start` where a frame can begin, which takes two NUL bytes; where what is there may go on. */
function findNext(bytes: Buffer, start: number): number {
  const nul = bytes.indexOf(0, start + 3);
  return Math.max(start + 1, Math.min(nul < 0 ? bytes.length : nul - 2, bytes.length - FRAME_HEAD));
}

/** Where a frame that begins at `start` ends, perhaps beyond what is there; null where none can begin. */
function findEnd(bytes: Buffer, start: number): number | null {
  if (start + FRAME_HEAD > bytes.length) return bytes.length + 1;
  const length = bytes.readUInt32LE(start);
  return isLength(length) ? start + FRAME_HEAD + length : null;
}

/**
 * The look for a NUL byte comes first: the beginnings of two frames that overlap have one in the payload of the former, so no
 * bytes, whoever made them, are summed more than a few times.
 */
function isWhole(bytes: Buffer, start: number, end: number): boolean {
  if (end > bytes.length) return false;
  const nul = bytes.indexOf(0, start + FRAME_HEAD);
  return (nul < 0 || nul >= end) && bytes.readUInt32LE(start + 4) === crc32c(bytes, start + FRAME_HEAD, end);
}

const isLength = (length: number) => length >= PAYLOAD_MIN && length <= PAYLOAD_MAX;
