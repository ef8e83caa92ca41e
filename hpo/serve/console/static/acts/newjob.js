/** A new job: its file as a form and, beside it, as text; a check shows its plan before it starts. */

import { fill, h } from "../dom.js";
import * as api from "../api.js";
import { schemaForm, tell } from "./form.js";

/** @type {import("../main.js").PageMaker} */
export function newPage(frame, cloneOf = "") {
  frame.title(cloneOf ? `Clone of ${cloneOf}` : "New job");
  fill(frame.main, newJob(cloneOf));
  return () => {};
}

/** @param {string} cloneOf the job that it begins as a copy of; empty is none */
function newJob(cloneOf) {
  const place = h("div", {}, h("p", { class: "quiet" }, "Reading the schema…"));
  Promise.all([api.get("/schema"), api.session(), cloneOf ? api.get(`${api.path("jobs", cloneOf)}/file`) : { file: { trainer: { type: "xgboost" }, tuning: {} }, missing: [] }]).then(
    ([schema, who, begun]) => fill(place, page(schema, who.rights === "act", begun, cloneOf)),
    (error) => fill(place, h("p", { class: "problem" }, error.message)));
  return place;
}

/** @param {any} schema @param {boolean} may @param {any} begun @param {string} cloneOf */
function page(schema, may, begun, cloneOf) {
  const context = { schema, value: begun.file, changed: () => { outdated(); } };
  const form = h("div", { class: "form" });
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea", { spellcheck: "false", rows: "24", "aria-label": "The job file, as JSON or YAML" }));
  const state = h("p", { class: "hint", role: "status" });
  const message = h("div", { role: "alert" });
  const plan = h("div", { "aria-live": "polite" });
  const check = /** @type {HTMLButtonElement} */ (h("button", { type: "button", on: { click: () => send(true) } }, "Check"));
  const start = /** @type {HTMLButtonElement} */ (h("button", { type: "button", class: "primary", disabled: true, title: "Check it first", on: { click: () => send(false) } }, "Start"));
  let version = 0;

  const stale = () => {
    version += 1;
    start.disabled = true;
    fill(plan);
  };
  const outdated = () => {
    text.value = JSON.stringify(context.value, null, 2);
    stale();
  };
  const typed = () => {
    stale();
    try {
      const value = JSON.parse(text.value);
      if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("no object");
      context.value = value;
      form.inert = false;
      fill(form, schemaForm(context));
      fill(state);
    } catch {
      form.inert = true;
      fill(state, "This is not JSON: it is sent as YAML, and the form rests until it is JSON again.");
    }
  };
  const send = async (/** @type {boolean} */ dry) => {
    const own = version;
    check.disabled = start.disabled = true;
    fill(message, h("p", { class: "quiet" }, dry ? "Checking…" : "Starting…"));
    try {
      const query = new URLSearchParams({ ...(dry ? { dry_run: "true" } : {}), ...(cloneOf ? { clone_of: cloneOf } : {}) });
      const found = await api.post(`/jobs?${query}`, text.value);
      fill(message);
      tell(form, []);
      if (!dry) {
        location.hash = `#${api.path("jobs", found.job)}`;
        return;
      }
      if (own === version) {
        fill(plan, planned(found.plan));
        start.disabled = !may;
      }
    } catch (error) {
      const { message: said, fields = [] } = /** @type {any} */ (error);
      if (!form.inert) tell(form, fields);
      fill(message, h("p", { class: "problem" }, said));
    }
    check.disabled = !may;
  };
  text.addEventListener("input", typed);
  fill(form, schemaForm(context));
  outdated();
  check.disabled = !may;
  return h("div", { class: "newjob" },
    h("h1", {}, cloneOf ? `Clone of ${cloneOf}` : "New job"),
    may ? null : h("p", { class: "problem" }, "Your token may look, not act: it starts no job."),
    begun.missing.length ? h("div", { class: "callout" }, h("strong", {}, "To fill in"), h("ul", {}, begun.missing.map((/** @type {string} */ each) => h("li", {}, each)))) : null,
    h("div", { class: "beside" }, form, h("div", { class: "file" }, h("h2", {}, "Job file"), text, state)),
    h("div", { class: "footer" }, message, plan, h("div", { class: "buttons" }, check, start)));
}

/** @param {any} plan null of a single training */
function planned(plan) {
  if (!plan) return h("p", { class: "good" }, "The file is right. It trains once.");
  const rows = Object.entries(plan).filter(([, value]) => value !== null && typeof value !== "object");
  return h("div", { class: "callout" }, h("strong", { class: "good" }, "The file is right. Its plan:"),
    h("dl", { class: "facts" }, rows.flatMap(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, String(value))])),
    h("details", {}, h("summary", {}, "All of the plan"), h("pre", { class: "log" }, JSON.stringify(plan, null, 2))));
}
