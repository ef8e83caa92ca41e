/** Several jobs side by side: their figures, the configurations they came to, and the best of each as a curve. */

import { get, path } from "../api.js";
import { HUES } from "../chart.js";
import { curvesChart } from "../curves.js";
import { fill, h } from "../dom.js";
import { address, chip, duration, number, plain } from "../format.js";
import { bill, ended, took } from "./jobs.js";
import { section } from "./job.js";

/** @type {import("../main.js").PageMaker} */
export function comparePage(frame, list) {
  const names = list.split(",").filter(Boolean);
  let over = false;
  frame.title(`Comparison of ${names.length} jobs`);
  fill(frame.main, h("p", { class: "quiet" }, "Reading…"));
  const read = async (/** @type {string} */ name) => {
    const base = path("jobs", name);
    const [summary, best] = await Promise.all([get(`${base}/summary`), get(`${base}/trials?sort=best&limit=1`)]);
    const trial = best.trials[0] || null;
    const reports = trial ? await get(`${base}${path("trials", trial.TrainingJobName)}/reports`) : { step: [], objective: [] };
    return { name, summary, trial, reports };
  };
  Promise.all(names.map(read)).then((jobs) => {
    if (over) return;
    const chart = curvesChart({
      label: "Curves of the best trials; the table above has their last values", open: (name) => { location.hash = address(name); },
      lines: () => jobs.map((job, index) => ({ trial: job.name, number: index, steps: job.reports.step, values: job.reports.objective, hue: HUES[index % HUES.length] })),
    });
    const row = (/** @type {string} */ title, /** @type {(job: any) => any} */ cell) => h("tr", {}, h("th", { scope: "row" }, title), jobs.map((job) => h("td", {}, cell(job))));
    const keys = [...new Set(jobs.flatMap((job) => Object.keys(job.trial?.HyperParameters || {})))].sort();
    fill(frame.main, h("div", { class: "title" }, h("h1", {}, `Comparison of ${jobs.length} jobs`)),
      section("Results", h("div", { class: "scroll", tabindex: "0" }, h("table", { class: "compare" },
        h("thead", {}, h("tr", {}, h("td", {}), jobs.map((job, index) => h("th", { scope: "col" },
          h("span", { class: "swatch", style: { background: `var(${HUES[index % HUES.length]})` } }), h("a", { href: address(job.name) }, job.name))))),
        h("tbody", {}, row("Status", (job) => chip(job.summary.HyperParameterTuningJobStatus)), row("Best", (job) => h("strong", {}, number(job.summary.BestObjectiveValue))),
          row("Metric", (job) => job.summary.ObjectiveMetricName), row("Strategy", (job) => job.summary.Strategy), row("Trials", (job) => number(ended(job.summary))),
          row("Bill", (job) => bill(job.summary)), row("Took", (job) => duration(took(job.summary))),
          row("Best trial", (job) => (job.trial ? h("a", { href: address(job.name, job.trial.TrainingJobName) }, job.trial.TrainingJobName) : "–")),
          keys.map((key) => row(key, (job) => plain(job.trial?.HyperParameters?.[key] ?? "–"))))))),
      section("Best trials", chart.element));
    chart.redraw();
  }, frame.fail);
  return () => { over = true; };
}
