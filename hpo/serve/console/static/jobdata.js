/** A job as the page has it: read once, then kept up to date by the server's events. */

import { follow, get, path } from "./api.js";

const MANY = 2000; // Trials beyond which curves have fewer points.

/** @typedef {{number: number, steps: number[], values: (number | null)[]}} Curve */

export class JobData {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    /** @type {any} */ this.job = null;
    /** @type {any} */ this.summary = null;
    /** @type {any} */ this.plan = null;
    /** @type {any} */ this.forecast = null;
    /** @type {Map<string, any>} */ this.trials = new Map();
    /** @type {Map<string, Curve>} */ this.curves = new Map();
    /** @type {{gang: string, trial: string, kind: string, from: number, to: number, seconds: number}[]} */ this.ledger = [];
    /** @type {{id: string, at: string, text: string}[]} */ this.lines = [];
    /** @type {any[]} */ this.acts = [];
    /** @type {{gangs: any[], starting: number}} */ this.gangs = { gangs: [], starting: 0 };
    this.gone = false;
    /** @type {any[] | null} */ this.early = null; // Reports that come while the curves are read.
  }

  /**
   * Reads the job and follows it.
   * @param {(parts: string[]) => void} changed told which parts have
   * @param {{live: (kind: string) => void, fail: (error: Error) => void}} frame
   * @returns {() => void} ends it
   */
  follow(changed, frame) {
    let over = false;
    /** @type {[string, any][] | null} */
    let kept = [];
    const end = follow(`${path("jobs", this.name)}/events`, (kind, value) => {
      frame.live(kind);
      if ((kind === "hello" && kept) || kind === "reset") {
        kept = [];
        this.read().then(() => {
          if (over) return;
          const missed = kept || [];
          kept = null;
          for (const each of missed) this.take(...each);
          changed(["job", "trials", "reports", "ledger", "lines", "acts"]);
          return this.readCurves().then(() => { if (!over) changed(["reports"]); });
        }).catch(frame.fail);
      } else if (kept) kept.push([kind, value]);
      else if (this.take(kind, value)) changed([kind]);
    });
    return () => {
      over = true;
      end();
    };
  }

  async read() {
    const base = path("jobs", this.name);
    const [job, summary, plan, forecast, trials, ledger, lines, acts, gangs] = await Promise.all([
      get(base), get(`${base}/summary`), get(`${base}/plan`), get(`${base}/forecast`), this.readTrials(base),
      get(`${base}/ledger`), get(`${base}/lines`), get(`${base}/acts`), get(`${base}/gangs`),
    ]);
    Object.assign(this, { job, summary, plan: plan.plan, forecast: forecast.forecast, trials, lines: lines.lines, acts: acts.acts, gangs });
    this.ledger = [];
    this.addLedger(ledger);
    this.early = [];
  }

  /** The curves, which take longest: all else is shown before. */
  async readCurves() {
    const curves = await get(`${path("jobs", this.name)}/curves?points=${this.trials.size > MANY ? 30 : 200}`);
    const early = this.early || [];
    this.early = null;
    this.curves = new Map(curves.trials.map((/** @type {string} */ trial, /** @type {number} */ index) => [
      trial, { number: curves.numbers[index], steps: curves.steps[index], values: curves.values[index] }]));
    for (const columns of early) this.addReports(columns);
  }

  /** @param {string} base */
  async readTrials(base) {
    /** @type {Map<string, any>} */
    const found = new Map();
    let after = -1;
    while (after !== null) {
      const page = await get(`${base}/trials?limit=10000&after_number=${after}`);
      for (const trial of page.trials) found.set(trial.TrainingJobName, trial);
      after = page.next;
    }
    return found;
  }

  /** What no event tells: gangs and forecast, and once the job's status is another, its limits and plan. */
  async readNow() {
    const base = path("jobs", this.name);
    const status = this.summary.HyperParameterTuningJobStatus;
    const other = status !== this.job.HyperParameterTuningJobStatus;
    const [gangs, forecast, job, plan] = await Promise.all([
      get(`${base}/gangs`), get(`${base}/forecast`), other ? get(base) : this.job, other ? get(`${base}/plan`) : { plan: this.plan }]);
    Object.assign(this, { gangs, forecast: forecast.forecast, job, plan: plan.plan });
  }

  /** @param {string} kind @param {any} value @returns {boolean} whether anything is another */
  take(kind, value) {
    if (kind === "job") this.summary = value;
    else if (kind === "trials") for (const trial of value.trials) this.trials.set(trial.TrainingJobName, trial);
    else if (kind === "reports") this.addReports(value);
    else if (kind === "ledger") this.addLedger(value);
    else if (kind === "lines") this.lines = joined(this.lines, value.lines, (line) => line.id).slice(-2000);
    else if (kind === "acts") this.acts = joined(this.acts, value.acts, (act) => `${act.Time} ${act.Kind} ${act.By}`);
    else if (kind === "gone") this.gone = true;
    else return false;
    return true;
  }

  /** @param {any} columns */
  addReports(columns) {
    if (this.early) {
      this.early.push(columns);
      return;
    }
    columns.trial.forEach((/** @type {string} */ trial, /** @type {number} */ index) => {
      const number = this.trials.get(trial)?.Number;
      if (number === undefined || number < 0) return;
      let curve = this.curves.get(trial);
      if (!curve) this.curves.set(trial, curve = { number, steps: [], values: [] });
      const step = columns.step[index];
      // A trial that is trained again from an earlier checkpoint reports these steps anew.
      while (curve.steps.length && curve.steps[curve.steps.length - 1] >= step) {
        curve.steps.pop();
        curve.values.pop();
      }
      curve.steps.push(step);
      curve.values.push(columns.objective[index]);
    });
  }

  /** @param {any} columns */
  addLedger(columns) {
    /** @type {Map<string, number>} */
    const ends = new Map();
    for (const each of this.ledger) ends.set(each.gang, Math.max(each.to, ends.get(each.gang) || 0));
    columns.gang.forEach((/** @type {string} */ gang, /** @type {number} */ index) => {
      const to = columns.to[index];
      if (to <= (ends.get(gang) || 0) && this.job && ends.size) return; // Told before.
      this.ledger.push({
        gang, to, trial: columns.trial[index], kind: columns.kind[index], from: columns.from[index] ?? to,
        seconds: columns.worker_seconds[index],
      });
    });
  }

  /** The objective of a trial that counts. @param {any} trial */
  static value(trial) {
    return trial.FinalHyperParameterTuningJobObjectiveMetric?.Value ?? null;
  }

  get minimize() {
    return this.summary?.ObjectiveType === "Minimize";
  }

  /** The run with the trainer's own hyperparameters, once it was begun. */
  get untuned() {
    return this.trials.get("untuned") || this.job?.UntunedTrainingJob || null;
  }

  /** Whether the un-tuned run is the job's result, as the server decided when the job was read. */
  get untunedIsBest() {
    return this.untuned !== null && this.job?.BestTrainingJob?.TrainingJobName === this.untuned.TrainingJobName;
  }

  /** The best tuned trial. */
  get best() {
    let best = null;
    for (const trial of this.trials.values()) {
      const value = JobData.value(trial);
      if (trial.Number < 0 || value === null || trial.Status === "Failed" || trial.Status === "Diverged") continue;
      const held = best && JobData.value(best);
      if (held === null || (this.minimize ? value < held : value > held)) best = trial;
    }
    return best;
  }
}

/**
 * @template T
 * @param {T[]} old @param {T[]} more @param {(each: T) => string} key
 */
function joined(old, more, key) {
  const known = new Set(old.map(key));
  return [...old, ...more.filter((each) => !known.has(key(each)))];
}
