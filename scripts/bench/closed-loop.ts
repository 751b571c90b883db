// Clients that send the next request when the last one was answered, on a connection each. They read of an answer what
// tells where it ends and whether it is good, and nothing else: beside the service that they share two cores with, a real
// HTTP client would be half of what is measured.
import { once } from "node:events";
import { connect } from "node:net";

export type ClosedLoop = {
  url: string;
  clients: number;
  seconds: number;
  /** The next request, to the byte; its answer has a Content-Length. */
  next: () => string;
  /** The status that it is to have. */
  status: number;
  /** Told how long each answer took, in ms. */
  onAnswer?: (ms: number) => void;
};

/** Of a machine that is busy otherwise a database call may miss its deadline; more than this share is no measurement. */
const REFUSED_MAX = 0.01;

const HEAD_END = "\r\n\r\n";

/** Writes a POST of JSON as it goes over the wire. */
export function writePost(path: string, key: string, body: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

/** Returns requests answered as they should be in a second. Rejects where more than a few were not. */
export async function runClosedLoop({ url, clients, seconds, next, status, onAnswer }: ClosedLoop): Promise<number> {
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;
  let answered = 0;
  const refused: string[] = [];
  const client = async () => {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const failed = once(socket, "close").then(() => Promise.reject(new Error("the service closed a connection")));
    failed.catch(() => {}); // told by whoever waits for an answer
    let told: (head: string) => void = () => {};
    let received = "";
    let missing = 0;
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      received += chunk;
      const end = received.indexOf(HEAD_END);
      if (end === -1) return;
      if (missing === 0) missing = end + HEAD_END.length + Number(/\ncontent-length: (\d+)/i.exec(received)?.[1]);
      if (received.length >= missing) told(received);
    });
    while (performance.now() < endsAt) {
      [received, missing] = ["", 0];
      const answer = new Promise<string>((resolve) => {
        told = resolve;
      });
      const sentAt = performance.now();
      socket.write(next());
      const text = await Promise.race([answer, failed]);
      onAnswer?.(performance.now() - sentAt);
      if (text.startsWith(`HTTP/1.1 ${status}`)) answered += 1;
      else refused.push(text);
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: clients }, client));
  if (refused.length > REFUSED_MAX * answered)
    throw new Error(`${refused.length} refused: ${refused[0]?.slice(0, 600)}`);
  return (answered * 1000) / (performance.now() - startedAt);
}
