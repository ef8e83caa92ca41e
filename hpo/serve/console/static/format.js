/** Values as short texts. */

import { h } from "./dom.js";

/** @param {any} value @param {number} [digits] */
export function number(value, digits = 5) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(digits)));
}

/** @param {any} value of a hyperparameter */
export function plain(value) {
  if (value === null) return "null";
  return typeof value === "number" ? number(value) : typeof value === "string" ? value : JSON.stringify(value);
}

/** A bill without prices: seconds of workers are no time that passed. @param {number | null | undefined} seconds */
export const workerSeconds = (seconds) => `${number(seconds, 4)} worker-s`;

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${number(seconds, 3)} s`;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  const [large, small] = days ? [`${days} d`, hours && `${hours} h`] : hours ? [`${hours} h`, minutes && `${minutes} min`] : [`${minutes} min`, whole % 60 && `${whole % 60} s`];
  return small ? `${large} ${small}` : large;
}

/** @param {string | null | undefined} iso */
export function when(iso) {
  if (!iso) return "–";
  return new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** @param {string | null | undefined} begin @param {string | null | undefined} end */
export function between(begin, end) {
  if (!begin) return null;
  return ((end ? Date.parse(end) : Date.now()) - Date.parse(begin)) / 1000;
}

/** @type {Record<string, string>} */
const MARKS = {
  InProgress: "▶", Running: "▶", Completed: "✓", Stopped: "■", Stopping: "■", Failed: "✕", Diverged: "≁", Paused: "❚❚", Pending: "○",
  DEPLOYING: "▶", RUNNING: "✓", UNREACHABLE: "✕", DEPLOY_FAILED: "✕",
};
/** @type {Record<string, string>} */
const WORDS = { InProgress: "in progress", DEPLOY_FAILED: "failed", UNREACHABLE: "does not answer" };

/** @param {string} status */
export function chip(status) {
  const mark = h("span", { "aria-hidden": "true" }, MARKS[status] || "·");
  return h("span", { class: "chip", "data-status": status }, mark, ` ${WORDS[status] || status.toLowerCase()}`);
}

/** @param {string} name @param {string} [trial] */
export function address(name, trial) {
  return `#/jobs/${encodeURIComponent(name)}${trial ? `/trials/${encodeURIComponent(trial)}` : ""}`;
}
