export type PageContent = {
  title: string;
  text: string;
  /** Shown as text and as a link. */
  target?: string;
  /** What a program gets instead of the page, where it is not the title and the text. */
  plain?: string;
};

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Makes a text safe inside an element and inside a quoted attribute. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "");
}

/** A page that needs nothing from anywhere else. */
export function pageHtml({ title, text, target }: PageContent): string {
  const link =
    target === undefined
      ? ""
      : `<p><a rel="noopener noreferrer nofollow" href="${escapeHtml(target)}">${escapeHtml(target)}</a></p>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto 0; padding: 0 1rem; }
a { overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; } a { color: #8cf; } }
</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
${link}</main>
</body>
</html>
`;
}
