import { Problem } from "@linkfence/contracts";
import { Type } from "typebox";
import { openCall, type Reply, type Routes } from "../http/call.ts";
import { PAGE, PAGE_POLICY, readPageFile } from "./docs-page.ts";
import { describeApi, printDocument } from "./document.ts";

const OpenApiDocument = Type.Object({
  openapi: Type.String(),
  info: Type.Object({}),
  paths: Type.Object({}),
  components: Type.Object({}),
});

/** A browser may keep the files of the page for an hour: they change with a release only. */
const KEPT_AN_HOUR = "public, max-age=3600";

/**
 * The calls that describe the others, for everybody.
 * @param routes every call of the API; asked at the first request, once
 */
export function documentRoutes(routes: () => Routes): Routes {
  let text: string | undefined;

  const showDocument = openCall({
    describe: {
      operationId: "getOpenApiDocument",
      summary: "Show this description",
      group: "Description",
      answers: { 200: { description: "This document", schema: OpenApiDocument } },
      problems: [],
    },
    async handle() {
      text ??= printDocument(describeApi(routes()));
      return { status: 200, text };
    },
  });

  return { "/openapi.json": { get: showDocument }, "/docs": { get: showPage }, "/docs/:file": { get: showPageFile } };
}

const showPage = openCall({
  describe: {
    operationId: "getDocsPage",
    summary: "Show this description as a page",
    group: "Description",
    answers: {
      200: {
        description: "A page for people, which loads nothing from anywhere else",
        schema: Type.String(),
        mediaType: "text/html",
        headers: { "Content-Security-Policy": { description: "What the page may load and do", always: true } },
      },
    },
    problems: [],
  },
  async handle() {
    return { status: 200, text: PAGE, type: "html", headers: { "Content-Security-Policy": PAGE_POLICY } };
  },
});

const showPageFile = openCall({
  describe: {
    operationId: "getDocsFile",
    summary: "Show a file that the page is made of",
    group: "Description",
    answers: { 200: { description: "A script or a style sheet", schema: Type.String(), mediaType: "text/*" } },
    problems: ["not-found"],
  },
  async handle(request): Promise<Reply> {
    const file = await readPageFile(String(request.params.file));
    if (!file) throw new Problem("not-found", "the page has no such file");
    return { status: 200, text: file.text, type: file.type, headers: { "Cache-Control": KEPT_AN_HOUR } };
  },
});
