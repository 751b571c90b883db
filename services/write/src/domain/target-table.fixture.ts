// Targets that people really sent, and what becomes of each. `RULES` are those of a product at https://sho.example.
import { ownHostOf, type TargetRule, type TargetRules } from "./target.ts";

export const RULES: TargetRules = { ownHosts: [ownHostOf("https://sho.example")], privateHosts: "allow" };

const LONGEST = `https://example.com/${"a".repeat(8192 - 20)}`;
const LONG = `https://example.com/${"a".repeat(2100)}`;

/** Differ from their canonical form by spelling alone: as typed, and as stored. */
export const RESPELLED: readonly (readonly [typed: string, stored: string])[] = [
  ["https://example.com", "https://example.com/"],
  ["HTTPS://Example.COM/Path?Q=1#Frag", "https://example.com/Path?Q=1#Frag"],
  ["https://example.com:443/a", "https://example.com/a"],
  ["https://example.com:/", "https://example.com/"],
  ["https://example.com/a b?c d#e f", "https://example.com/a%20b?c%20d#e%20f"],
  ["https://bücher.example/straße?q=ü", "https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC"],
  ["https://☃.example/", "https://xn--n3h.example/"],
  ["https://example.com/😀?x=😀#😀", "https://example.com/%F0%9F%98%80?x=%F0%9F%98%80#%F0%9F%98%80"],
  ["https://example.com/a/./b/../c", "https://example.com/a/c"],
  [
    'https://example.com/"><img src=x onerror=alert(1)>',
    "https://example.com/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
  ],
  ["https://example.com/é", "https://example.com/%C3%A9"],
];

/** Stored byte for byte. */
export const KEPT: readonly string[] = [
  "http://example.com:443/a",
  "https://example.com:65535/",
  "http://[2001:db8::1]:8080/x",
  "https://example.com/?c\\d",
  "https://example.com/?abc#123",
  "https://example.com/?a&b=&=c",
  "https://example.com/?a=1&a=2",
  "https://example.com/??x",
  "https://example.com/r?u=https%3A%2F%2Fx.example%2F%3Fa%3D1%2526b%3D2&m=a%2Bb%40c.example&a&b=&=c&a=1&a=2",
  "https://example.com/a%2Fb",
  "https://example.com/?",
  "https://example.com/#",
  "https://example.com/?#",
  "https://example.com/#a#b",
  "https://example.com//a//",
  "https://example.com/?q={x}",
  "https://notsho.example/",
  "https://go.sho.example/",
  LONG,
  LONGEST,
];

/** Refused, by the rule that they break. */
export const REFUSED: readonly (readonly [TargetRule, readonly string[]])[] = [
  [
    "unparsable",
    [
      ...["https://example.com:65536/", "https://example.com:99999/", "https://example.com:8 0/"],
      ...["https://example.com:-1/", "https://example.com:b/", "https://", "https://?q", "https://#x", "https:///"],
      ...["//example.com/a", "/a", "example.com", "www.example.com/a", "", "https://exa mple.com/"],
      ...["http://[::1", "http://::1/", "http://[]", "http://[fe80::1%25eth0]/", "http://192.168.0.257/"],
      ...["http://1.2.3.4.5/", "http://256.1.1.1/", 'http;//" onmousemove="alert(1)'],
    ],
  ],
  [
    "slashes",
    [...["http:example.com", "https:/example.com", "https:///example.com", "https:///nohost"], "https:////example.com"],
  ],
  ["outer-blank", [" https://example.com/", "https://example.com/ ", "   ", "\u00a0https://example.com/"]],
  [
    "control-character",
    [
      ...["https://exam\tple.com/", "https://example.com/a\r\nSet-Cookie:x=1", "https://example.com/x\u0000"],
      ...["https://example.com/\u0085", "https://example.com/\u001b[31m", "\nhttps://example.com/"],
    ],
  ],
  [
    "backslash",
    [
      ...["https:\\\\example.com\\a", "https:/\\example.com", "https://example.com\\@evil.example/"],
      "https://example.com/a\\b?c\\d",
    ],
  ],
  [
    "scheme",
    [
      ...["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,<b>x", "data:,x", "file:///secret.txt"],
      ...["ftp://example.com/", "mailto:a@example.com", "about:blank", "blob:https://example.com/1"],
      ...["ws://example.com/", "intent://example.com/#Intent;end"],
    ],
  ],
  ["surrogate", ["https://example.com/\ud800", "https://example.com/?q=\udfff"]],
  [
    "userinfo",
    [
      ...["https://user:pw@example.com/", "https://example.com@evil.example/", "https://@example.com/"],
      "https://:@example.com/",
    ],
  ],
  ["host-escape", ["https://ex%61mple.com/"]],
  // A soft hyphen, a zero-width space, full-width letters, and an ideographic full stop.
  [
    "host-character",
    [
      ...["https://exam\u00adple.com/", "https://exam\u200bple.com/", "https://ｅｘａｍｐｌｅ.com/"],
      "https://example。com/",
    ],
  ],
  // In hexadecimal, as one number, short, and in octal.
  ["host-number", ["http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://010.0.0.1/"]],
  ["host-label", ["http://.example.com/", "http://example..com/"]],
  ["port", ["https://example.com:0443/"]],
  [
    "own-host",
    [
      ...["https://sho.example/b", "https://sho.example", "http://sho.example/", "https://sho.example:8443/"],
      ...["https://SHO.example/", "https://sho.example./"],
    ],
  ],
  // The second one only in its canonical form.
  ["length", [`${LONGEST}a`, `https://example.com/${"ü".repeat(1400)}`]],
];

/** Hosts that are not on the public internet: accepted by default, refused where the switch says so. */
export const PRIVATE: readonly string[] = [
  ...["127.0.0.1", "127.8.9.1", "10.0.0.5", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254"],
  ...["0.0.0.0", "100.64.0.1", "[::1]", "[::]", "[fd00::1]", "[fe80::1]", "localhost", "sub.localhost"],
];
