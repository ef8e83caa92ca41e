/** A new job: its file as a form and, beside it, as YAML; a check shows its plan before it starts. */

import { fill, h } from "../dom.js";
import * as api from "../api.js";
import { Document, parseDocument } from "../vendor/yaml.js";
import { schemaForm, tell } from "./form.js";

/** How the form's changes are written. */
const STYLE = { lineWidth: 0, flowCollectionPadding: false };

/** @type {import("../main.js").PageMaker} */
export function newPage(frame, cloneOf = "") {
  frame.title(cloneOf ? `Clone of ${cloneOf}` : "New job");
  fill(frame.main, newJob(cloneOf));
  return () => {};
}

/** @param {string} cloneOf the job that it begins as a copy of; empty is none, and it begins with the example */
function newJob(cloneOf) {
  const place = h("div", {}, h("p", { class: "quiet" }, "Reading the schema…"));
  const begun = cloneOf
    ? api.get(`${api.path("jobs", cloneOf)}/file`).then((/** @type {any} */ found) => ({ text: new Document(found.file).toString(STYLE), missing: found.missing }))
    : api.get("/example").then((/** @type {any} */ found) => ({ text: found.text, missing: [] }));
  Promise.all([api.get("/schema"), api.session(), begun]).then(
    ([schema, who, file]) => fill(place, page(schema, who.rights === "act", file, cloneOf)),
    (error) => fill(place, h("p", { class: "problem" }, error.message)));
  return place;
}

/**
 * @param {string} text @returns {any} a YAML document whose content is a mapping
 * @throws {Error} it is not YAML, or no mapping
 */
function parsed(text) {
  const document = parseDocument(text, { version: "1.2", schema: "core" });
  if (document.errors.length) throw new Error(document.errors[0].message.split("\n")[0].replace(/:$/, ""));
  const value = document.toJS();
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("a job file has keys with values, such as trainer: …");
  return document;
}

/** @param {any} schema @param {boolean} may @param {{text: string, missing: string[]}} begun @param {string} cloneOf */
function page(schema, may, begun, cloneOf) {
  let document = parsed(begun.text);
  const context = { schema, value: document.toJS(), changed: (/** @type {(string | number)[]} */ path, /** @type {any} */ value) => {
    if (value === undefined) document.deleteIn(path);
    else document.setIn(path, value !== null && typeof value === "object" ? document.createNode(value) : value); // A plain value keeps its comment.
    text.value = document.toString(STYLE);
    stale();
  } };
  const form = h("div", { class: "form" });
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea", { spellcheck: "false", rows: "24", wrap: "off", "aria-label": "The job file, as YAML" }));
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
  const typed = () => {
    stale();
    try {
      document = parsed(text.value);
      context.value = document.toJS();
      form.inert = false;
      fill(form, schemaForm(context));
      fill(state);
    } catch (error) {
      form.inert = true;
      fill(state, `The form waits until the text can be read: ${/** @type {Error} */ (error).message}`);
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
        fill(plan, h("div", { class: "callout" }, h("strong", { class: "good" }, "The file and its data are right. The plan:"), h("pre", { class: "log" }, found.text)));
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
  text.value = begun.text;
  fill(form, schemaForm(context));
  check.disabled = !may;
  return h("div", { class: "newjob" },
    h("h1", {}, cloneOf ? `Clone of ${cloneOf}` : "New job"),
    may ? null : h("p", { class: "problem" }, "Your token may look, not act: it starts no job."),
    begun.missing.length ? h("div", { class: "callout" }, h("strong", {}, "To fill in"), h("ul", {}, begun.missing.map((/** @type {string} */ each) => h("li", {}, each)))) : null,
    h("div", { class: "beside" }, form, h("div", { class: "file" }, h("h2", {}, "Job file"), text, state)),
    h("div", { class: "footer" }, message, plan, h("div", { class: "buttons" }, check, start)));
}
