/** The HTTP API, with the session of this browser. Paths and parameters are checked by its document. */

import createClient from "openapi-fetch";

import type { Session } from "../model/types";
import { describePreview, type Preview, type PreviewLine } from "../model/preview";
import type { paths } from "./schema";

/** A refusal by the server, in its own words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly mistakes: Mistake[] = [],
  ) {
    super(detail);
  }
}

export interface Mistake {
  field?: string;
  detail?: string;
  message?: string;
  line?: number;
  column?: number;
}

const session: { proof: string | undefined } = { proof: undefined };

export const api = createClient<paths>({ baseUrl: location.origin, credentials: "same-origin" });

api.use({
  onRequest({ request }) {
    if (request.method !== "GET" && session.proof) {
      request.headers.set("X-Holdfast-CSRF", session.proof);
    }
    return request;
  },
});

interface Answered {
  data?: unknown;
  error?: unknown;
  response: Response;
}

/** What an answer holds; a refusal is thrown. */
export async function unwrap<T>(call: Promise<Answered>): Promise<T> {
  const { data, error, response } = await call;
  if (response.ok) return data as T;
  throw readProblem(response.status, error);
}

function readProblem(status: number, told: unknown): ApiError {
  if (told && typeof told === "object") {
    const { code, detail, mistakes } = told as Record<string, unknown>;
    return new ApiError(
      status,
      typeof code === "string" ? code : "refused",
      typeof detail === "string" ? detail : `the server answered with ${status}`,
      Array.isArray(mistakes) ? (mistakes as Mistake[]) : [],
    );
  }
  return new ApiError(status, "refused", `the server answered with ${status}`);
}

export async function fetchSession(): Promise<Session> {
  const told = await unwrap<Session>(api.GET("/api/v1/session"));
  session.proof = told.csrf;
  return told;
}

/** What a change would do, asked of the server; nothing is changed. */
export async function previewChange(path: string, body?: unknown): Promise<PreviewLine[]> {
  return describePreview(await change<Preview>(`${path}?dry_run=true`, body));
}

/** A definition as YAML, to be checked or kept. */
export async function sendDefinition<T>(path: string, text: string): Promise<T> {
  return send<T>(path, { method: "POST", body: text }, { "Content-Type": "application/yaml" });
}

/** A change, by the path of its call: `/tasks/t_1/approve`. */
export async function change<T = Record<string, unknown>>(
  path: string,
  body?: unknown,
  method = "POST",
  headers: Record<string, string> = {},
): Promise<T> {
  const asked = { method, body: body === undefined ? null : JSON.stringify(body) };
  return send<T>(path, asked, { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers });
}

async function send<T>(path: string, asked: RequestInit, headers: Record<string, string>): Promise<T> {
  const response = await fetch(`/api/v1${path}`, {
    ...asked,
    credentials: "same-origin",
    headers: { ...(session.proof ? { "X-Holdfast-CSRF": session.proof } : {}), ...headers },
  });
  const told: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw readProblem(response.status, told);
  return told as T;
}
