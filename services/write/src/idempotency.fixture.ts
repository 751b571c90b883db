// A creation with a key, for the tests: what is sent to the byte, and what of the answer counts.
import { type HttpClient, sendChecked } from "@linkfence/testkit";

export const SINGLE = "/v1/links";
export const BATCH = "/v1/links:batch";
export const LINK = '{"target":"https://example.com/"}';
export const LINKS =
  '{"links":[{"target":"https://a.example/"},{"target":"nonsense"},{"target":"https://b.example/"}]}';

export type Told = {
  status: number;
  location: string | undefined;
  replayed: string | undefined;
  retryAfter: string | undefined;
  body: string;
};

/** What answers to one key have in common. */
export const common = ({ status, location, body }: Told) => ({ status, location, body });

/** Creates the sender of creations to a service. */
export function createKeyedPost(http: HttpClient, url: string, apiKey: string) {
  return async (key: string | null, body = LINK, path = SINGLE): Promise<Told> => {
    const headers = {
      Authorization: `Bearer ${apiKey}`,
      "Content-Type": "application/json",
      ...(key === null ? {} : { "Idempotency-Key": key }),
    };
    const answer = await sendChecked(http, url, path, { method: "POST", headers, body });
    return {
      status: answer.status,
      location: answer.headers.location,
      replayed: answer.headers["idempotency-replayed"] as string | undefined,
      retryAfter: answer.headers["retry-after"],
      body: answer.body,
    };
  };
}
