// A program that follows a stream with a client that others wrote, and prints a line for each request and each change.
import { checkFetched } from "@linkfence/testkit";
import { EventSource } from "eventsource";

const { STREAM_URL = "", STREAM_KEY = "" } = process.env;
const print = (record: Record<string, unknown>) => console.log(JSON.stringify(record));

const source = new EventSource(STREAM_URL, {
  async fetch(input, init) {
    const headers = new Headers({ ...init.headers, Authorization: `Bearer ${STREAM_KEY}` });
    print({ message: "asks", lastEventId: headers.get("last-event-id") });
    const response = await fetch(input, { ...init, headers });
    await checkFetched("GET", "/v1/changes", response).catch((error) =>
      print({ message: "fault", error: String(error) }),
    );
    return response;
  },
});
source.addEventListener("open", () => print({ message: "open" }));
source.addEventListener("revoked", ({ data }) => print({ message: "revoked", code: JSON.parse(data).code }));
