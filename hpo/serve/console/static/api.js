/** The REST API and its events. */

export class ApiError extends Error {
  /** @param {number} status @param {{type?: string, message?: string, field?: string, fields?: {field: string, message: string}[]}} error */
  constructor(status, error) {
    super(error.message || `the server answered ${status}`);
    this.status = status;
    this.type = error.type || "";
    this.field = error.field || "";
    this.fields = error.fields || [];
  }
}

/** @type {Promise<{name: string, rights: string, csrf?: string}> | null} */
let known = null;

/** Who one is, and what one may do. */
export function session() {
  known ??= ask("GET", "/session").catch((error) => {
    known = null;
    throw error;
  });
  return known;
}

/** @param {string} path behind /api */
export const get = (path) => ask("GET", path);

/** @param {string} path @param {any} [body] text is sent as it is, all else as JSON */
export const post = (path, body) => ask("POST", path, body);

/** @param {string} path */
export const del = (path) => ask("DELETE", path);

/** @param {string} method @param {string} path @param {any} [body] */
async function ask(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = method === "GET" ? {} : { "X-CSRF-Token": (await session()).csrf || "" };
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  let response;
  try {
    response = await fetch(`/api${path}`, { method, headers, body: text });
  } catch {
    throw new ApiError(0, { message: "the server does not answer; it may be restarting" });
  }
  if (response.status === 401) location.assign("/login");
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, found.error || {});
  return found;
}

/** @param {...string} parts of a path, each of which may hold any character */
export const path = (...parts) => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

/** Kinds of the server's events; `open` and `lost` tell of the connection. */
export const KINDS = [
  "hello", "reset", "end", "away", "back", "gone", "job", "jobs", "trials", "reports", "lines", "ledger", "additions", "acts",
];

/**
 * Follows events across restarts of the server, each from the last that came.
 * @param {string} where path behind /api
 * @param {(kind: string, value: any) => void} tell
 * @returns {() => void} ends it
 */
export function follow(where, tell) {
  let last = "";
  let wait = 500;
  let timer = 0;
  /** @type {EventSource} */
  let source;
  const begin = () => {
    source = new EventSource(`/api${where}${last ? `?after=${encodeURIComponent(last)}` : ""}`);
    source.onopen = () => {
      wait = 500;
      tell("open", null);
    };
    source.onerror = () => {
      tell("lost", null);
      if (source.readyState !== EventSource.CLOSED) return; // The browser comes back on its own.
      timer = window.setTimeout(begin, wait);
      wait = Math.min(2 * wait, 5000);
    };
    for (const kind of KINDS) {
      source.addEventListener(kind, (/** @type {MessageEvent} */ event) => {
        last = event.lastEventId || last;
        tell(kind, JSON.parse(event.data));
      });
    }
  };
  begin();
  return () => {
    window.clearTimeout(timer);
    source.close();
  };
}
