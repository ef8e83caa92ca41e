/** A trial's page: its configuration, its curves and what became of it. */

import { trialActs } from "../acts/jobacts.js";
import { follow, get, path } from "../api.js";
import { HUES } from "../chart.js";
import { curvesChart } from "../curves.js";
import { copied, fill, h, throttled } from "../dom.js";
import { address, between, chip, duration, number, plain, when, workerSeconds } from "../format.js";
import { JobData } from "../jobdata.js";
import { figure, section } from "./job.js";

/** @type {import("../main.js").PageMaker} */
export function trialPage(frame, name, id) {
  const base = `${path("jobs", name)}${path("trials", id)}`;
  /** @type {any} */
  let trial = null;
  /** @type {any} */
  let reports = { step: [], objective: [], metrics: [] };
  let over = false;
  frame.title(id);
  const series = () => {
    /** @type {Map<string, import("../curves.js").Line>} */
    const found = new Map();
    reports.metrics.forEach((/** @type {Record<string, number | null>} */ metrics, /** @type {number} */ index) => {
      for (const [metric, value] of Object.entries(metrics)) {
        if (!found.has(metric)) found.set(metric, { trial: metric, number: found.size, steps: [], values: [], hue: HUES[found.size % HUES.length] });
        const line = /** @type {import("../curves.js").Line} */ (found.get(metric));
        line.steps.push(reports.step[index]);
        line.values.push(Number.isFinite(value) ? value : null);
      }
    });
    return [...found.values()];
  };
  const chart = curvesChart({ label: `Metrics of ${id}`, open: () => {}, lines: series });
  const key = h("p", { class: "key" });
  const head = h("div", { class: "title" });
  const doing = h("div", {});
  let actsOf = "";
  const figures = h("div", { class: "figures" });
  const rest = h("div", {});
  fill(frame.main, h("p", { class: "up" }, h("a", { href: address(name) }, `← ${name}`)), head, doing, figures, section("Metrics", chart.element, key), rest);

  const draw = () => {
    fill(head, h("div", {}, h("h1", {}, id, " ", chip(trial.Status)), h("p", { class: "quiet" }, [
      trial.Bracket !== null && `bracket ${trial.Bracket + 1}`, `begun ${when(trial.TrainingStartTime)}`, trial.Checkpoint && `checkpoint ${trial.Checkpoint}`].filter(Boolean).join(" · "))));
    if (trial.Status !== actsOf) {
      actsOf = trial.Status;
      fill(doing, trialActs(name, trial));
    }
    const metric = trial.FinalHyperParameterTuningJobObjectiveMetric;
    fill(figures, figure("Value", number(JobData.value(trial)), metric?.MetricName || ""), figure("Units", number(trial.Resource), `${reports.step.length} reports`),
      figure("Billed", workerSeconds(trial.BilledWorkerSeconds), "of its gangs"),
      figure("Time", duration(between(trial.TrainingStartTime, trial.TrainingEndTime)), trial.TrainingEndTime ? `ended ${when(trial.TrainingEndTime)}` : "under way"));
    const lines = series();
    fill(key, lines.map((line) => h("span", {}, h("span", { class: "swatch", style: { background: `var(${line.hue})` } }), `${line.trial} ${number(line.values[line.values.length - 1])}  `)));
    fill(rest,
      trial.FailureReason ? section("Why it ended", h("p", { class: "bad" }, trial.FailureReason), trial.Traceback ? h("pre", { class: "log" }, trial.Traceback) : null) : null,
      section("Hyperparameters", facts(trial.HyperParameters || {})),
      trial.ByHand ? section("By hand", trial.ByHand.Forked ? h("p", { class: "quiet" }, "Without what the trial took over from other trials.") : null,
        copied(trial.ByHand.Command, "By hand")) : null,
      trial.Parent ? section("Origin", h("p", {}, "Began from ", h("a", { href: address(name, trial.Parent) }, trial.Parent), ` at unit ${trial.ParentResource}.`)) : null,
      trial.Details && Object.keys(trial.Details).length ? section("Details", h("pre", { class: "log" }, JSON.stringify(trial.Details, null, 2))) : null,
      section("Reports", h("div", { class: "scroll tall", tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { class: "right" }, "unit"), lines.map((line) => h("th", { class: "right" }, line.trial)))),
        h("tbody", {}, reports.step.map((/** @type {number} */ step, /** @type {number} */ index) => h("tr", {}, h("td", { class: "right" }, number(step)),
          lines.map((line) => h("td", { class: "right" }, number(reports.metrics[index][line.trial]))))).reverse().slice(0, 500))))));
    chart.redraw();
    chart.describe(`Metrics of ${id} by unit; the table of reports has their values`);
  };
  const load = async () => {
    const [found, columns] = await Promise.all([get(base), get(`${base}/reports`)]);
    if (over) return;
    [trial, reports] = [found, columns];
    draw();
  };
  const soon = throttled(() => load().catch(frame.fail), 700);
  const end = follow(`${path("jobs", name)}/events`, (kind, value) => {
    frame.live(kind);
    if (kind === "hello" || kind === "reset") load().catch(frame.fail);
    const told = kind === "trials" ? value.trials.map((/** @type {any} */ each) => each.TrainingJobName) : kind === "reports" ? value.trial : [];
    if (told.includes(id)) soon();
    if (kind === "gone") frame.fail(new Error("This job was deleted."));
  });
  return () => {
    over = true;
    end();
  };
}

/** @param {Record<string, any>} values */
function facts(values) {
  return h("dl", { class: "facts" }, Object.entries(values).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, plain(value))]));
}
