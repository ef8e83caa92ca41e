/** Brackets that fill, and staleness of gradients: bars with their numbers as text. */

import { fill, h } from "./dom.js";
import { number } from "./format.js";

/** @param {HTMLElement} place @param {import("./jobdata.js").JobData} data */
export function brackets(place, data) {
  const plan = data.plan?.brackets || [];
  if (!plan.length) {
    fill(place, h("p", { class: "quiet" }, "The search has no brackets: every trial may run to its end."));
    return;
  }
  const trials = [...data.trials.values()].filter((trial) => trial.Number >= 0);
  fill(place, plan.map((/** @type {any} */ bracket, /** @type {number} */ index) => {
    const own = trials.filter((trial) => (trial.Bracket ?? 0) === index);
    return h("div", { class: "bracket" }, h("h3", {}, `Bracket ${index + 1}`), bracket.rungs.map((/** @type {number} */ rung, /** @type {number} */ level) => {
      const reached = own.filter((trial) => trial.Resource >= rung).length;
      const size = Math.max(bracket.sizes[level], reached);
      return h("div", { class: "rung" }, h("span", {}, `${number(rung)} ${rung === 1 ? "unit" : "units"}`),
        h("span", { class: "track", "aria-hidden": "true" }, h("span", { style: { width: `${(100 * reached) / size}%` } })),
        h("span", { class: "right" }, `${number(reached)} / ${number(size)}`));
    }));
  }));
}

/** @param {any} trial @returns {Record<string, number>} pushes by steps behind */
const pushes = (trial) => trial.Details?.parameter_server?.staleness || {};

/** @param {import("./jobdata.js").JobData} data */
export function hasStaleness(data) {
  for (const trial of data.trials.values()) if (Object.keys(pushes(trial)).length) return true;
  return false;
}

/** @param {HTMLElement} place @param {import("./jobdata.js").JobData} data */
export function staleness(place, data) {
  /** @type {Map<string, Map<number, number>>} */
  const modes = new Map();
  for (const trial of data.trials.values()) {
    const mode = trial.Details?.parameter_server?.mode;
    if (!mode) continue;
    if (!modes.has(mode)) modes.set(mode, new Map());
    const sums = /** @type {Map<number, number>} */ (modes.get(mode));
    for (const [steps, count] of Object.entries(pushes(trial))) sums.set(Number(steps), (sums.get(Number(steps)) || 0) + count);
  }
  fill(place, h("div", { class: "brackets" }, [...modes].map(([mode, sums]) => {
    const all = [...sums.values()].reduce((sum, each) => sum + each, 0) || 1;
    return h("div", { class: "bracket" }, h("h3", {}, mode), [...sums].sort((a, b) => a[0] - b[0]).map(([steps, count]) =>
      h("div", { class: "rung" }, h("span", {}, steps === 1 ? "1 step behind" : `${steps} steps behind`),
        h("span", { class: "track", "aria-hidden": "true" }, h("span", { style: { width: `${(100 * count) / all}%` } })),
        h("span", { class: "right" }, `${number((100 * count) / all, 3)} %`))));
  })));
}
