// A load of our own, for want of wrk: sockets that ask, count what tells that an answer is complete, and ask again. Of a
// closed loop each is timed from its sending; of an open one from when it could be sent, since nothing is held back by an
// answer but what finds no connection free, and that counts from when it was due.
import { readFileSync } from "node:fs";
import { connect } from "node:net";

const { port, connections, seconds, rate, status, paths, headers } = JSON.parse(process.argv[2] ?? "{}");
/** Room for half a minute of a hundred thousand a second; what comes later is counted and not timed. */
const SAMPLES_MAX = 3_000_000;
/** Answers are a few hundred bytes; larger ones come in several pieces. */
const READ_BYTES = 65_536;
/** A timer's own resolution. */
const TICK_MS = 1;

const head = Object.entries({ Host: `127.0.0.1:${port}`, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
const requests = readFileSync(paths, "utf8")
  .split("\n")
  .filter((path) => path !== "")
  .map((path) => Buffer.from(`GET ${path} HTTP/1.1\r\n${head.join("")}\r\n`));
const GOOD = [status].flat().map((each) => Buffer.from(`HTTP/1.1 ${each} `));
const HEAD_END = Buffer.from("\r\n\r\n");
const samples = new Float64Array(SAMPLES_MAX);
const idle = [];
const waiting = [];
let answered = 0;
let failed = 0;
let asked = 0;
let under = 0;
let endsAt = Number.POSITIVE_INFINITY;

function ask(client, dueAt) {
  client.sentAt = dueAt;
  under += 1;
  client.socket.write(requests[asked++ % requests.length]);
}

/** Bytes of the answer that begins the buffer; 0 while its head is not complete. */
function lengthOf(buffer) {
  const end = buffer.indexOf(HEAD_END);
  if (end === -1) return 0;
  const told = /\ncontent-length: *(\d+)/i.exec(buffer.latin1Slice(0, end));
  return end + HEAD_END.length + Number(told?.[1] ?? 0);
}

function received(client, length, buffer) {
  const rest =
    client.rest === null ? buffer.subarray(0, length) : Buffer.concat([client.rest, buffer.subarray(0, length)]);
  // Answers of one kind are alike to the byte: the same length and the same end save a look at the head.
  const known = rest.length === client.known && rest.indexOf(HEAD_END) === client.headEnd;
  const needed = known ? rest.length : lengthOf(rest);
  if (needed === 0 || rest.length < needed) {
    client.rest = Buffer.from(rest);
    return;
  }
  client.rest = null;
  client.known = rest.length;
  client.headEnd = known ? client.headEnd : rest.indexOf(HEAD_END);
  under -= 1;
  const now = performance.now();
  if (now > endsAt && rate === null) return;
  if (rest.length === needed && GOOD.some((good) => good.equals(rest.subarray(0, good.length)))) {
    if (answered < SAMPLES_MAX) samples[answered] = now - client.sentAt;
    answered += 1;
  } else failed += 1;
  if (rate === null) ask(client, now);
  else if (waiting.length > 0) ask(client, waiting.shift());
  else idle.push(client);
}

function open() {
  const client = { socket: null, sentAt: 0, rest: null, known: 0, headEnd: -1 };
  return new Promise((resolve, reject) => {
    client.socket = connect({
      ...{ host: "127.0.0.1", port, noDelay: true },
      onread: {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback(length, buffer) {
          received(client, length, buffer);
          return true;
        },
      },
    })
      .once("connect", () => resolve(client))
      .once("error", reject)
      .once("close", () => finish(new Error("the server closed a connection")));
  });
}

let finished = false;

function finish(error) {
  if (finished) return;
  finished = true;
  if (error) throw error;
  const timed = samples.subarray(0, Math.min(answered, SAMPLES_MAX)).sort();
  const at = (share) => timed[Math.max(0, Math.ceil(timed.length * share) - 1)] ?? 0;
  const ms = rate === null ? seconds * 1000 : performance.now() - startedAt;
  failed += rate === null ? 0 : under + waiting.length;
  process.stdout.write(`${JSON.stringify({ answered, ms, failed, p50: at(0.5), p99: at(0.99) })}\n`, () =>
    process.exit(),
  );
}

const clients = await Promise.all(Array.from({ length: connections }, open));
const startedAt = performance.now();
endsAt = startedAt + seconds * 1000;
if (rate === null) {
  for (const client of clients) ask(client, performance.now());
  setTimeout(finish, seconds * 1000);
} else {
  idle.push(...clients);
  let sent = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    const due = Math.min(Math.floor(((now - startedAt) * rate) / 1000), rate * seconds);
    for (; sent < due; sent += 1) {
      const client = idle.shift();
      if (client) ask(client, performance.now());
      else waiting.push(now);
    }
    // What is answered later than a second after the last was sent has failed.
    if (now > endsAt + 1000 || (sent === rate * seconds && under === 0 && waiting.length === 0)) {
      clearInterval(timer);
      finish();
    }
  }, TICK_MS);
}
