/** What may be done with a job and with a trial: buttons, each of which says why where it does not go. */

import { fill, h } from "../dom.js";
import * as api from "../api.js";

const { path, session } = api;
import { LOOKS, actButton, ask } from "./dialog.js";

/** @type {Promise<Set<string>> | null} */
let paths = null;

function served() {
  paths ??= api.get("/openapi.json").then((found) => new Set(Object.keys(found.paths)), () => {
    paths = null;
    return new Set();
  });
  return paths;
}

/**
 * @param {any} job its document, as /api/jobs/NAME has it
 *
 * @returns {HTMLElement}
 */
export function jobActs(job) {
  const name = job.HyperParameterTuningJobName;
  const status = job.HyperParameterTuningJobStatus;
  const base = path("jobs", name);
  const bar = h("div", { class: "acts", role: "group", "aria-label": "Acts" });
  Promise.all([session(), served()]).then(([who, found]) => {
    const may = who.rights === "act" ? "" : LOOKS;
    const runs = status === "InProgress", over = !runs && status !== "Stopping";
    const single = !ranges(job).length;
    fill(bar,
      actButton("Stop", may || (runs ? "" : "it does not run"), () => ask({
        title: `Stop ${name}?`, text: "Trials under way are stopped; what they have found is kept, and the job can be resumed.", button: "Stop the job", danger: true,
        act: () => api.post(`${base}/stop`) })),
      actButton("Resume", may || (over ? "" : "it has not ended"), () => resume(name, job)),
      single ? null : actButton("Add a trial", may || (over ? "it has ended" : ""), () => addTrial(name, job)),
      may ? actButton("Clone", may, () => {}) : h("a", { class: "button", href: `#/new/${encodeURIComponent(name)}` }, "Clone"),
      found.has("/jobs/{job}/deploy") ? actButton("Deploy", may || (job.BestTrainingJob ? "" : "it has no best trial"), () => deploy(name)) : null,
      actButton("Delete", may || (over ? "" : "stop it first"), () => remove(name, base), "danger"));
  }, () => fill(bar));
  return bar;
}

/** @param {string} name */
function deploy(name) {
  const input = (/** @type {string} */ label, /** @type {Record<string, string>} */ attributes, /** @type {string} */ hint) => {
    const element = /** @type {HTMLInputElement} */ (h("input", { required: "", ...attributes }));
    return { element, field: h("label", { class: "field" }, h("span", { class: "label" }, label), element, h("span", { class: "hint" }, hint)) };
  };
  const endpoint = input("Endpoint", { value: name, maxlength: "63", spellcheck: "false" }, "One of the same name goes over to this model.");
  const replicas = input("Replicas", { type: "number", min: "1", step: "1", value: "1" }, "Processes that predict.");
  const cpus = input("CPUs of each", { type: "number", min: "0.01", step: "any", value: "1" }, "");
  const port = input("Port", { type: "number", min: "1", max: "65535", step: "1", value: "8000" }, "Of Ray Serve's HTTP proxy, where none runs yet.");
  ask({
    title: `Deploy ${name}?`, text: "The model of its best trial answers requests on Ray Serve.", button: "Deploy",
    body: h("div", {}, endpoint.field, replicas.field, cpus.field, port.field),
    act: () => api.post(`${path("jobs", name)}/deploy`, { name: endpoint.element.value, replicas: Number(replicas.element.value), cpus: Number(cpus.element.value), port: Number(port.element.value) })
      .then((made) => {
        window.dispatchEvent(new Event("endpoints"));
        return `Endpoint ${made.endpoint} is being deployed; the section Endpoints says how far it is.`;
      }),
  });
}

/** @param {string} name @param {string} base */
function remove(name, base) {
  const keep = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox" }));
  ask({
    title: `Delete ${name}?`, text: "Its record goes for good: trials, reports and bill.", button: "Delete for good", danger: true, typed: name,
    body: h("label", { class: "check" }, keep, " keep its models, copies of data and log"),
    act: () => api.del(`${base}${keep.checked ? "?keep_files=true" : ""}`).then(() => { location.hash = "#/jobs"; }),
  });
}

const LIMITS = [
  ["max_jobs", "trials in all", "MaxNumberOfTrainingJobs"],
  ["max_runtime_in_seconds", "seconds", "MaxRuntimeInSeconds"],
  ["max_cost", "money, in the job's currency", ""],
];

/** @param {string} name @param {any} job */
function resume(name, job) {
  const limits = job.HyperParameterTuningJobConfig?.ResourceLimits || {};
  const inputs = LIMITS.map(([key, unit, known]) => ({ key, unit, input: /** @type {HTMLInputElement} */ (h("input", { type: "number", step: "any", min: "0", placeholder: limits[known] ?? "no limit" })) }));
  ask({
    title: `Resume ${name}?`, text: "It goes on from its record. A limit that is left empty stays as it is; a larger one stands for good.", button: "Resume",
    body: h("div", {}, inputs.map(({ key, unit, input }) => h("label", { class: "field" }, h("span", { class: "label" }, key), input, h("span", { class: "hint" }, unit)))),
    act: () => api.post(`${path("jobs", name)}/resume`, { set: Object.fromEntries(inputs.filter(({ input }) => input.value !== "").map(({ key, input }) => [key, Number(input.value)])) }),
  });
}

/** @param {any} job @returns {{name: string, kind: string, hint: string, values?: any[]}[]} */
function ranges(job) {
  const all = job.HyperParameterTuningJobConfig?.ParameterRanges || {};
  return Object.entries(all).flatMap(([key, rows]) => !Array.isArray(rows) ? [] : rows.map((/** @type {any} */ row) => ({
    name: row.Name, kind: key.startsWith("Categorical") ? "choice" : key.startsWith("Integer") ? "integer" : "number",
    hint: row.Values ? "" : `${row.MinValue} to ${row.MaxValue}`, values: row.Values })));
}

/** @param {string} name @param {any} job */
function addTrial(name, job) {
  const inputs = ranges(job).map((range) => ({ range, input: /** @type {HTMLInputElement} */ (range.values
    ? h("select", {}, h("option", { value: "" }, "left to the search"), range.values.map((each) => h("option", { value: JSON.stringify(each) }, String(each))))
    : h("input", { type: "number", step: range.kind === "integer" ? "1" : "any", placeholder: "left to the search" })) }));
  ask({
    title: "Add a trial", text: "The next trial that is suggested takes these values; it is one of the job's max_jobs.", button: "Add",
    body: h("div", {}, inputs.map(({ range, input }) => h("label", { class: "field" }, h("span", { class: "label" }, range.name), input, range.hint && h("span", { class: "hint" }, range.hint)))),
    act: () => api.post(`${path("jobs", name)}/trials`, { hyperparameters: Object.fromEntries(inputs.filter(({ input }) => input.value !== "")
      .map(({ range, input }) => [range.name, range.values ? JSON.parse(input.value) : Number(input.value)])) })
      .then((added) => `It is noted${added.AdditionsAhead ? `, behind ${added.AdditionsAhead} others` : ""}.`),
  });
}

/**
 * @param {string} job its name
 * @param {any} trial its document
 *
 * @returns {HTMLElement}
 */
export function trialActs(job, trial) {
  const bar = h("div", { class: "acts", role: "group", "aria-label": "Acts" });
  const id = trial.TrainingJobName;
  const runs = trial.Status === "InProgress" || trial.Status === "Running" || trial.Status === "Pending";
  session().then((who) => fill(bar, actButton("Stop this trial", who.rights !== "act" ? LOOKS : runs ? "" : "it does not run", () => ask({
    title: `Stop ${id}?`, text: "It stops at its next report. The job goes on.", button: "Stop the trial", danger: true,
    act: () => api.post(`${path("jobs", job, "trials", id)}/stop`) }))), () => fill(bar));
  return bar;
}
