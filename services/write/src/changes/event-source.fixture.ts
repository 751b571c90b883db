// A program that follows a stream with a client that others wrote, and prints a line for each request and each change.
import { EventSource } from "eventsource";

const { STREAM_URL = "", STREAM_KEY = "" } = process.env;
const print = (record: Record<string, unknown>) => console.log(JSON.stringify(record));

const source = new EventSource(STREAM_URL, {
  fetch(input, init) {
    const headers = new Headers({ ...init.headers, Authorization: `Bearer ${STREAM_KEY}` });
    print({ message: "asks", lastEventId: headers.get("last-event-id") });
    return fetch(input, { ...init, headers });
  },
});
source.addEventListener("open", () => print({ message: "open" }));
source.addEventListener("revoked", ({ data }) => print({ message: "revoked", code: JSON.parse(data).code }));
