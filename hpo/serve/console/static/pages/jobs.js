/** The list of jobs, with search, kept up to date. */

import { LOOKS, actButton } from "../acts/dialog.js";
import { follow, get, session } from "../api.js";
import { fill, h, throttled } from "../dom.js";
import { address, between, chip, duration, number, when, workerSeconds } from "../format.js";
import { table } from "../table.js";

const STATES = ["InProgress", "Completed", "Stopped", "Failed"];

/** @type {import("../main.js").PageMaker} */
export function jobsPage(frame) {
  /** @type {Map<string, any>} */
  const jobs = new Map();
  /** @type {Set<string>} */
  const marked = new Set();
  let malformed = /** @type {string[]} */ ([]);
  let words = /** @type {string[]} */ ([]);
  let state = "";
  let over = false;
  frame.title("Jobs");

  const name = (/** @type {any} */ job) => job.HyperParameterTuningJobName;
  const list = table({
    label: "Jobs", sort: "Created", down: true, href: (job) => address(name(job)),
    empty: "No job matches. Jobs appear here as soon as they begin.",
    columns: [
      { name: "Job", value: name, width: "minmax(0, 1.6fr)" },
      { name: "Status", value: (job) => job.HyperParameterTuningJobStatus, show: (job) => chip(job.HyperParameterTuningJobStatus), width: "6.6rem" },
      { name: "Best", value: (job) => job.BestObjectiveValue, show: (job) => number(job.BestObjectiveValue), right: true, width: "4.7rem" },
      { name: "Trials", value: ended, show: progress, from: 720, width: "7.5rem" },
      { name: "Metric", value: (job) => job.ObjectiveMetricName, from: 960, width: "minmax(0, 1fr)" },
      { name: "Strategy", value: (job) => job.Strategy, from: 1360, width: "6rem" },
      { name: "Took", value: took, show: (job) => duration(took(job)), right: true, from: 840, width: "5.6rem" },
      { name: "Bill", value: (job) => job.BilledCost ?? job.BilledWorkerSeconds, show: bill, right: true, from: 720, width: "7.6rem" },
      { name: "Created", value: (job) => job.CreationTime, show: (job) => when(job.CreationTime), from: 960, width: "9.4rem" },
      { name: "Compare", value: (job) => marked.has(name(job)), show: mark, from: 641, width: "4.6rem" },
    ],
  });

  /** @param {any} job */
  function mark(job) {
    return h("input", {
      type: "checkbox", checked: marked.has(name(job)), "aria-label": `compare ${name(job)}`,
      on: { change: (/** @type {any} */ event) => {
        if (event.target.checked) marked.add(name(job));
        else marked.delete(name(job));
        compared();
      } },
    });
  }

  const compare = h("a", { class: "button", hidden: true });
  const compared = () => {
    compare.hidden = marked.size < 2;
    compare.setAttribute("href", `#/compare/${[...marked].map(encodeURIComponent).join(",")}`);
    fill(compare, `Compare ${marked.size} jobs`);
  };
  const count = h("span", { class: "quiet", role: "status" });
  const begin = h("span", {});
  session().then((who) => fill(begin, who.rights === "act" ? h("a", { class: "button", href: "#/new" }, "New job") : actButton("New job", LOOKS, () => {})), frame.fail);
  const draw = () => {
    const found = [...jobs.values()].filter((job) => {
      const text = [name(job), job.Owner, job.Strategy, job.ObjectiveMetricName, JSON.stringify(job.Tags || {})].join(" ").toLowerCase();
      return (!state || job.HyperParameterTuningJobStatus === state) && words.every((word) => text.includes(word));
    });
    fill(count, `${number(found.length)} of ${number(jobs.size)}${malformed.length ? `; not readable in the record: ${malformed.join(", ")}` : ""}`);
    list.set(found);
  };
  const soon = throttled(draw, 250);
  fill(frame.main,
    h("div", { class: "title" }, h("h1", {}, "Jobs"), h("div", { class: "acts" })),
    h("div", { class: "tools" },
      h("input", { type: "search", placeholder: "Search name, owner, metric, tag", "aria-label": "Search jobs", on: {
        input: (/** @type {any} */ event) => {
          words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
          draw();
        } } }),
      h("select", { "aria-label": "Status", on: { change: (/** @type {any} */ event) => {
        state = event.target.value;
        draw();
      } } }, h("option", { value: "" }, "any status"), STATES.map((each) => h("option", { value: each }, each === "InProgress" ? "in progress" : each.toLowerCase()))),
      count, compare, begin),
    list.element);

  const load = async () => {
    const read = new Map();
    let after = "";
    do {
      const page = await get(`/jobs?limit=1000${after ? `&after=${encodeURIComponent(after)}` : ""}`);
      for (const job of page.jobs) read.set(name(job), job);
      after = page.next;
      malformed = page.malformed;
    } while (after && !over);
    if (over) return;
    jobs.clear();
    for (const [key, job] of read) jobs.set(key, job);
    draw();
  };
  const end = follow("/events", (kind, value) => {
    frame.live(kind);
    if (kind === "hello" || kind === "reset") load().catch(frame.fail);
    if (kind === "jobs") for (const job of value.jobs) jobs.set(name(job), job);
    if (kind === "gone") for (const each of value.jobs) jobs.delete(each);
    if (kind === "jobs" || kind === "gone") soon();
  });
  return () => {
    over = true;
    end();
  };
}

/** @param {any} job */
export function ended(job) {
  const counts = job.TrainingJobStatusCounters;
  return counts.Completed + counts.Stopped + counts.NonRetryableError + counts.RetryableError;
}

/** @param {any} job */
function progress(job) {
  const planned = Math.max(job.PlannedTrainingJobs || 0, ended(job));
  return h("span", { class: "progress" }, h("progress", { max: planned || 1, value: ended(job), "aria-label": "trials that have ended" }),
    ` ${number(ended(job))}/${number(planned)}`);
}

/** @param {any} job */
export const took = (job) => between(job.CreationTime, job.HyperParameterTuningEndTime);

/** @param {any} job */
export function bill(job) {
  if (job.BilledCost !== undefined) return `${number(job.BilledCost, 3)} ${job.Currency}`;
  return workerSeconds(job.BilledWorkerSeconds);
}
