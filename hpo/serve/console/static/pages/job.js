/** A job's page: what it has come to, and how it goes on. */

import { endpoints } from "../acts/endpoints.js";
import { jobActs } from "../acts/jobacts.js";
import { curvesChart } from "../curves.js";
import { fill, h, throttled } from "../dom.js";
import { address, chip, duration, number, plain, when, workerSeconds } from "../format.js";
import { JobData } from "../jobdata.js";
import { gangTable, hueKey, swatch } from "../gangs.js";
import { billChart, gantt } from "../spending.js";
import { table } from "../table.js";
import { brackets, hasStaleness, staleness } from "../tallies.js";
import { bill, ended, took } from "./jobs.js";

/** @type {import("../main.js").PageMaker} */
export function jobPage(frame, name) {
  const data = new JobData(name);
  const open = (/** @type {string} */ trial) => { location.hash = address(name, trial); };
  frame.title(name);

  const head = h("div", { class: "title" });
  const doing = h("div", {});
  let actsOf = "";
  const figures = h("div", { class: "figures" });
  const curves = curvesChart({
    label: "Learning curves", open, best: () => data.best?.TrainingJobName || null,
    lines: () => [...data.curves].map(([trial, curve]) => ({ trial, ...curve })),
  });
  const gangs = gantt(data, open);
  const money = billChart(data);
  const filled = h("div", { class: "brackets" });
  const sums = h("div", { class: "scroll" });
  const held = h("div", { class: "scroll" });
  const stale = h("div", {});
  const log = h("pre", { class: "log", tabindex: "0", "aria-label": "Log" });
  const acts = h("ol", { class: "events" });
  const trials = trialTable(data);
  const served = endpoints(name, (any) => show("Endpoints", any));
  const sections = {
    Curves: section("Learning curves", curves.element),
    Brackets: section("Brackets", filled),
    Trials: section("Trials", trials.element),
    Gangs: section("Gangs", held, gangs.element, hueKey()),
    Bill: section("Bill", h("div", { class: "pair" }, money.element, sums)),
    Staleness: section("Staleness of gradients", stale),
    Endpoints: section("Endpoints", served.element),
    Log: section("Log", log),
    Acts: section("Acts", acts),
  };
  const nav = h("nav", { class: "sections", "aria-label": "Sections" }, Object.entries(sections).map(([title, element]) =>
    h("button", { type: "button", on: { click: () => {
      element.scrollIntoView();
      element.focus({ preventScroll: true });
    } } }, title)));
  const show = (/** @type {keyof typeof sections} */ title, /** @type {boolean} */ any) => {
    sections[title].hidden = !any;
    /** @type {HTMLElement} */ (nav.children[Object.keys(sections).indexOf(title)]).hidden = !any;
  };
  show("Endpoints", false);
  fill(frame.main, h("p", { class: "quiet" }, `Reading ${name}…`));

  const top = () => {
    const job = data.summary;
    const config = data.job.HyperParameterTuningJobConfig || {};
    fill(head, h("div", {}, h("h1", {}, name, " ", chip(job.HyperParameterTuningJobStatus)), h("p", { class: "quiet" }, [
      job.Strategy, `${job.ObjectiveType === "Minimize" ? "minimizes" : "maximizes"} ${job.ObjectiveMetricName}`,
      job.Predicts && `predicts ${job.Predicts}`, job.Owner && `of ${job.Owner}`, `begun ${when(job.CreationTime)}`, job.Driver?.host && `driver on ${job.Driver.host}`,
      config.RandomSeed !== undefined && `seed ${config.RandomSeed}`].filter(Boolean).join(" · "))));
    const known = { ...data.job, HyperParameterTuningJobStatus: job.HyperParameterTuningJobStatus };
    const allows = JSON.stringify([known.HyperParameterTuningJobStatus, config.ResourceLimits, Boolean(known.BestTrainingJob)]);
    if (allows !== actsOf) {
      actsOf = allows;
      fill(doing, jobActs(known));
    }
    const untuned = data.untuned;
    const first = data.untunedIsBest;
    const best = first ? untuned : data.best;
    const planned = Math.max(job.PlannedTrainingJobs || 0, ended(job));
    const expected = data.forecast?.expected;
    fill(figures,
      figure("Best", number(best ? JobData.value(best) : job.BestObjectiveValue), best && h("a", { href: address(name, best.TrainingJobName) }, best.TrainingJobName)),
      untuned && figure("Un-tuned", number(JobData.value(untuned)), h("a", { href: address(name, untuned.TrainingJobName) }, `after ${number(untuned.Resource)} units`),
        first ? h("strong", {}, " best") : null, data.job.Gain ? h("div", {}, data.job.Gain.sentence) : null),
      figure("Trials", `${number(ended(job))} / ${number(planned)}`, h("progress", { max: planned || 1, value: ended(job), "aria-label": "trials that have ended" }),
        ` ${job.TrainingJobStatusCounters.InProgress} under way, ${job.TrainingJobStatusCounters.NonRetryableError} failed`),
      figure("Bill", bill(job), expected ? `forecast ${job.BilledCost !== undefined && expected.cost ? `${number(expected.cost, 3)} ${job.Currency}` : workerSeconds(expected.worker_seconds)}` : "no forecast"),
      figure("Time", duration(took(job)), job.HyperParameterTuningEndTime ? `ended ${when(job.HyperParameterTuningEndTime)}` : expected ? `forecast ${duration(expected.wall_seconds)}` : "",
        job.HyperParameterTuningJobStatus === "InProgress" && job.SilentSeconds > 60 ? h("strong", { class: "bad" }, ` silent for ${duration(job.SilentSeconds)}`) : null));
  };
  const bills = () => {
    const seconds = Object.entries(data.summary.BilledSeconds || {}).sort((a, b) => b[1] - a[1]);
    const all = seconds.reduce((sum, [, each]) => sum + each, 0);
    fill(sums, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "kind"), h("th", { class: "right" }, "worker-seconds"), h("th", { class: "right" }, "share"))),
      h("tbody", {}, seconds.map(([kind, each]) => h("tr", {}, h("td", {}, swatch(kind), kind), h("td", { class: "right" }, number(each, 4)),
        h("td", { class: "right" }, `${number((100 * each) / (all || 1), 3)} %`)))),
      h("tfoot", {}, h("tr", {}, h("th", {}, "all"), h("td", { class: "right" }, number(all, 4)), h("td", {})))));
    gangTable(held, data);
  };
  const said = () => {
    const bottom = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
    fill(log, data.lines.length ? data.lines.map((line) => line.text).join("\n") : "The job has said nothing.");
    if (bottom) log.scrollTop = log.scrollHeight;
    fill(acts, [...data.acts].reverse().map((act) => h("li", {}, h("time", { datetime: act.Time }, when(act.Time)), ` ${act.By} `, h("strong", {}, act.Kind),
      ` by ${act.Door}`, Object.keys(act.Arguments || {}).length ? h("code", {}, ` ${JSON.stringify(act.Arguments)}`) : null)));
  };
  /** @type {Set<string>} */
  const parts = new Set();
  const tables = throttled(() => {
    trials.show();
    brackets(filled, data);
    show("Staleness", hasStaleness(data));
    if (!sections.Staleness.hidden) staleness(stale, data);
  }, 500);
  const now = throttled(() => data.readNow().then(() => {
    top();
    bills();
    money.redraw();
  }, (error) => { if (!data.gone) frame.fail(error); }), 2000);
  const draw = throttled(() => {
    if (data.gone) {
      fill(frame.main, h("h1", {}, name), h("p", {}, "This job was deleted. "), h("a", { href: "#/jobs" }, "All jobs"));
      return;
    }
    top();
    if (!head.isConnected) fill(frame.main, head, doing, figures, nav, ...Object.values(sections));
    bills();
    if (parts.has("trials") || parts.has("reports")) tables();
    if (parts.has("reports") || parts.has("trials")) curves.redraw();
    if (parts.has("ledger")) {
      gangs.redraw();
      money.redraw();
    }
    if (parts.has("ledger") || parts.has("job")) now();
    if (parts.has("lines") || parts.has("acts")) said();
    if (parts.has("acts")) served.look();
    curves.describe(`Learning curves of ${data.curves.size} trials; the table of trials has their last values`);
    parts.clear();
  }, 100);
  const timer = window.setInterval(() => { if (data.job && !data.gone) top(); }, 10_000);
  const end = data.follow((changed) => {
    for (const part of changed) parts.add(part);
    draw();
  }, frame);
  return () => {
    window.clearInterval(timer);
    served.end();
    end();
  };
}

/** @param {string} title @param {...any} children */
export function section(title, ...children) {
  return h("section", { tabindex: "-1", "aria-label": title }, h("h2", {}, title), ...children);
}

/** @param {string} title @param {any} value @param {...any} more */
export function figure(title, value, ...more) {
  return h("div", { class: "figure" }, h("div", { class: "quiet" }, title), h("div", { class: "value" }, value), h("div", { class: "quiet small" }, ...more));
}

/** @param {JobData} data */
function trialTable(data) {
  const value = (/** @type {any} */ trial) => JobData.value(trial);
  /** @type {string[]} */
  let words = [];
  const holder = h("div", {});
  const count = h("span", { class: "quiet", role: "status" });
  /** @type {any} */
  let list = null;
  const make = () => {
    const names = [...new Set([...data.trials.values()].slice(0, 200).flatMap((trial) => Object.keys(trial.HyperParameters || {})))].slice(0, 5);
    list = table({
      label: "Trials", sort: "Value", down: !data.minimize, href: (trial) => address(data.name, trial.TrainingJobName), empty: "No trial yet.",
      columns: [
        { name: "Trial", value: (trial) => trial.Number, show: (trial) => trial.TrainingJobName, tail: true, width: "minmax(0, 1.6fr)" },
        { name: "Status", value: (trial) => trial.Status, show: (trial) => chip(trial.Status), width: "7rem" },
        { name: "Value", value, show: (trial) => number(value(trial)), right: true, width: "5rem" },
        { name: "Units", value: (trial) => trial.Resource, right: true, from: 641, width: "5rem" },
        { name: "Bracket", value: (trial) => trial.Bracket, show: (trial) => number(trial.Bracket === null ? null : trial.Bracket + 1), right: true, from: 1000, width: "5.5rem" },
        { name: "Billed", value: (trial) => trial.BilledWorkerSeconds, show: (trial) => workerSeconds(trial.BilledWorkerSeconds), right: true, from: 800, width: "7rem" },
        ...names.map((each, index) => ({
          name: each, value: (/** @type {any} */ trial) => trial.HyperParameters?.[each],
          show: (/** @type {any} */ trial) => plain(trial.HyperParameters?.[each] ?? ""), right: true, from: 720 + 90 * index,
        })),
      ],
    });
    fill(holder, list.element);
  };
  const show = () => {
    if (!list || (!list.full && data.trials.size)) {
      make();
      list.full = data.trials.size > 0;
    }
    const found = [...data.trials.values()].filter((trial) => trial.Number >= 0 && (!words.length || matches(trial, words)));
    fill(count, `${number(found.length)} of ${number(data.trials.size)}`);
    list.set(found);
  };
  const search = h("input", { type: "search", placeholder: "Search name, status, eta<0.1", "aria-label": "Search trials", on: {
    input: (/** @type {any} */ event) => {
      words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      show();
    } } });
  return { element: h("div", {}, h("div", { class: "tools" }, search, count), holder), show };
}

/** Each word is part of a text, or a bound of a hyperparameter, such as `eta<0.1`. @param {any} trial @param {string[]} words */
function matches(trial, words) {
  return words.every((word) => {
    const bound = /^(.+?)([<>=])(.+)$/.exec(word);
    if (!bound) return `${trial.TrainingJobName} ${trial.Status} ${trial.FailureReason || ""}`.toLowerCase().includes(word);
    const [, name, sign, text] = bound;
    const held = Object.entries(trial.HyperParameters || {}).find(([key]) => key.toLowerCase() === name)?.[1];
    if (held === undefined || held === null) return false;
    if (sign === "=") return String(held).toLowerCase() === text;
    return sign === "<" ? Number(held) < Number(text) : Number(held) > Number(text);
  });
}
