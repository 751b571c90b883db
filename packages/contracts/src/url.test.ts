import { expect, test } from "@jest/globals";
import { parseUrl } from "./url.ts";

test("a URL is a URL however often it is asked about: also once the code is compiled, and with letters beyond ASCII", () => {
  const text = "https://bücher.example/straße";
  let refused = 0;
  for (let count = 0; count < 100_000; count += 1) if (parseUrl(text) === null) refused += 1;
  expect(refused).toBe(0);
  expect(parseUrl(text)?.href).toBe("https://xn--bcher-kva.example/stra%C3%9Fe");
});

test.each(["", "/a", "example.com", "https://", "http://[::1", "https://exa mple.com/"])("%p is none", (text) => {
  expect(parseUrl(text)).toBeNull();
});
