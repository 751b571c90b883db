// Kept connections on which requests are sent one behind the other, without waiting for answers: whatever a process is
// doing, there are requests in its sockets.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { waitFor } from "@linkfence/testkit";

export type PipelinedAnswer = { status: number; location: string | null };
export type RequestPipelines = Awaited<ReturnType<typeof openPipelines>>;

/** Opens `count` connections to a port on loopback. */
export async function openPipelines(port: number, count: number) {
  const pipelines = await Promise.all(Array.from({ length: count }, () => openPipeline(port)));
  return {
    /** Sends `times` requests for a code in one write on each connection. */
    send(code: string, times: number): void {
      for (const pipeline of pipelines) pipeline.send(code, times);
    },
    /** Connections that have been given an answer since the last `send`, and those that have not. */
    answered: () => pipelines.filter(({ heard }) => heard()).length,
    unserved: () => pipelines.filter(({ heard }) => !heard()).length,
    /** Resolves when every request has been answered. Rejects when a connection was closed instead. */
    async settled(): Promise<void> {
      await waitFor("every answer", () => pipelines.every(({ outstanding }) => outstanding() === 0));
    },
    /** The newest answer of each connection. */
    last: () => pipelines.map(({ answers }) => answers().at(-1) ?? { status: 0, location: null }),
    close(): void {
      for (const pipeline of pipelines) pipeline.close();
    },
  };
}

async function openPipeline(port: number) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const answers = collectAnswers(socket);
  let sent = 0;
  let heardBefore = 0;
  return {
    send(code: string, times: number): void {
      heardBefore = answers().length;
      sent += times;
      socket.write(`GET /${code} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times));
    },
    answers,
    heard: () => answers().length > heardBefore,
    outstanding(): number {
      if (socket.destroyed) throw new Error("the process closed a kept connection");
      return sent - answers().length;
    },
    close: () => socket.destroy(),
  };
}

/** Parses what arrives. Every answer of a redirect says how long its body is. */
function collectAnswers(socket: Socket): () => readonly PipelinedAnswer[] {
  const answers: PipelinedAnswer[] = [];
  let rest = "";
  socket.setEncoding("latin1").on("data", (chunk) => {
    rest += String(chunk);
    for (;;) {
      const headEnd = rest.indexOf("\r\n\r\n");
      const head = rest.slice(0, headEnd);
      const bodyLength = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      const end = headEnd + 4 + bodyLength;
      if (headEnd < 0 || rest.length < end) return;
      answers.push({ status: Number(head.slice(9, 12)), location: /^location: (.*)$/im.exec(head)?.[1] ?? null });
      rest = rest.slice(end);
    }
  });
  socket.on("error", () => {}); // it is destroyed then, which `outstanding` tells
  return () => answers;
}
