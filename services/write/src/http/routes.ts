import { Problem } from "@linkfence/contracts";
import { sendProblem } from "@linkfence/service-shell";
import type { Express, RequestHandler, Response } from "express";
import type { Audit } from "./audit.ts";
import type { Call, Method, Reply, Routes } from "./call.ts";
import type { Guard } from "./guard.ts";

/** Told about each finished request: the route's own pattern, never the path, which anybody may choose. */
export type OnRequest = (route: string, statusClass: string) => void;

/** What stands in front of every call: who may come in, and what is written down of it. */
export type Gate = { admit: Guard; audit: Audit };

/** Adds routes to an app. A method that a path does not have is answered 405 (RFC 9110 section 15.5.6). */
export function addRoutes(app: Express, routes: Routes, gate: Gate): void {
  for (const [pattern, calls] of Object.entries(routes)) {
    const route = app.route(pattern);
    for (const [method, call] of Object.entries(calls) as [Method, Call][])
      route[method](nameRoute(`${method.toUpperCase()} ${pattern.replaceAll("\\", "")}`), answer(method, call, gate));
    const allow = allowedMethods(Object.keys(calls));
    route.all((request, response) => {
      response.setHeader("Allow", allow);
      throw new Problem("method-not-allowed", `${request.method} is not possible here; possible are ${allow}`);
    });
  }
}

/** Counts each request when its answer is through, or its client gone. */
export function countRequests(onRequest: OnRequest): RequestHandler {
  return (_request, response, next) => {
    response.once("close", () => {
      const statusClass = response.writableFinished ? `${Math.floor(response.statusCode / 100)}xx` : "aborted";
      onRequest(routeOf(response), statusClass);
    });
    next();
  };
}

function nameRoute(name: string): RequestHandler {
  return (_request, response, next) => {
    response.locals.route = name;
    next();
  };
}

function routeOf(response: Response): string {
  return typeof response.locals.route === "string" ? response.locals.route : "none";
}

function answer(method: Method, call: Call, { admit, audit }: Gate): RequestHandler {
  return async (request, response) => {
    const run = async () => {
      if (call.scope === null) return call.handle(request);
      return call.handle(request, await admit(request, response, call.scope));
    };
    await reply(response, await audit({ method, call }, { request, response }, run));
  };
}

async function reply(response: Response, { status, headers = {}, ...content }: Reply): Promise<void> {
  // Answered by the server, since the rest of the body was none, or did not come in time.
  if (response.headersSent) return;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.status(status);
  if ("problem" in content) sendProblem(response, content.problem);
  else if ("send" in content) await content.send(response);
  else if ("text" in content) response.type(content.type ?? "json").send(content.text);
  else response.json(content.body);
}

function allowedMethods(methods: readonly string[]): string {
  return methods
    .map((method) => method.toUpperCase())
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
    .join(", ");
}
