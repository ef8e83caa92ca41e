/** Learning curves of all trials: one line each, the best above them. */

import { axes, chart, scales } from "./chart.js";
import { number } from "./format.js";

/** @typedef {import("./jobdata.js").Curve & {trial: string, hue?: string}} Line */

/**
 * @param {object} options
 * @param {string} options.label
 * @param {() => Line[]} options.lines
 * @param {() => string | null} [options.best] the trial that is drawn last
 * @param {(trial: string) => void} options.open
 * @param {string} [options.unit] of steps
 */
export function curvesChart({ label, lines, best = () => null, open, unit = "unit" }) {
  /** @type {Line[]} */
  let drawn = [];
  /** @type {[number, number]} */
  let x = [0, 1];
  /** @type {[number, number]} */
  let y = [0, 1];

  /** @param {CanvasRenderingContext2D} context @param {Line} line @param {any} box */
  const trace = (context, line, box) => {
    const [toX, toY] = scales(box, x, y);
    let down = false;
    context.beginPath();
    line.steps.forEach((step, index) => {
      const value = line.values[index];
      if (value === null) {
        down = false;
        return;
      }
      if (down) context.lineTo(toX(step), toY(value));
      else context.moveTo(toX(step), toY(value));
      if (!down && line.steps.length === 1) context.arc(toX(step), toY(value), 1.5, 0, 7);
      down = true;
    });
    context.stroke();
  };
  const clip = (/** @type {CanvasRenderingContext2D} */ context, /** @type {any} */ box) => {
    context.save();
    context.beginPath();
    context.rect(box.left, box.top - 4, box.width + 4, box.height + 8);
    context.clip();
  };

  const made = chart({
    label, height: 340,
    *draw(context, box, ink) {
      drawn = lines();
      [x, y] = extent(drawn);
      axes(context, box, ink, { x, y, nameX: unit, showX: (value) => (Number.isInteger(value) ? number(value) : "") });
      clip(context, box);
      context.globalAlpha = drawn.length > 1000 ? 0.25 : drawn.length > 100 ? 0.5 : 0.75;
      context.lineWidth = drawn.length > 1000 ? 0.75 : 1.25;
      context.lineJoin = "round";
      for (const line of drawn) {
        context.strokeStyle = ink(line.hue || "--curve");
        trace(context, line, box);
        yield;
      }
      const top = drawn.find((line) => line.trial === best());
      context.globalAlpha = 1;
      context.lineWidth = 2.5;
      context.strokeStyle = ink("--accent");
      if (top) trace(context, top, box);
      context.restore();
    },
    find(px, py, box) {
      const [toX, toY] = scales(box, x, y);
      let [nearest, least] = [/** @type {any} */ (null), 24];
      for (const line of drawn) {
        const index = near(line.steps, x[0] + ((px - box.left) / box.width) * (x[1] - x[0]));
        const value = line.values[index];
        if (value === null || value === undefined) continue;
        const far = Math.hypot(toX(line.steps[index]) - px, toY(value) - py);
        if (far < least) [nearest, least] = [{ line, index }, far];
      }
      return nearest;
    },
    mark(context, box, { line, index }, ink) {
      const [toX, toY] = scales(box, x, y);
      clip(context, box);
      context.strokeStyle = ink("--ink");
      context.fillStyle = ink("--ink");
      context.lineWidth = 2.5;
      trace(context, line, box);
      context.beginPath();
      context.arc(toX(line.steps[index]), toY(line.values[index]), 4, 0, 7);
      context.fill();
      context.restore();
    },
    tell: ({ line, index }) => `${line.trial} · ${unit} ${number(line.steps[index])} · ${number(line.values[index])}`,
    open: ({ line }) => open(line.trial),
  });
  return made;
}

/** The place of the step that is nearest. @param {number[]} steps @param {number} at */
function near(steps, at) {
  let [low, high] = [0, steps.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low > 0 && at - steps[low - 1] < steps[low] - at ? low - 1 : low;
}

/** Ends of both axes; a few values far below or above all others do not flatten the rest. @param {Line[]} lines @returns {[[number, number], [number, number]]} */
function extent(lines) {
  let most = 1;
  /** @type {number[]} */
  const values = [];
  for (const line of lines) {
    most = Math.max(most, line.steps[line.steps.length - 1] || 1);
    const every = Math.max(1, Math.floor((lines.length * line.values.length) / 50_000));
    for (let index = line.values.length - 1; index >= 0; index -= every) if (line.values[index] !== null) values.push(Number(line.values[index]));
  }
  if (!values.length) return [[0, most], [0, 1]];
  values.sort((a, b) => a - b);
  let [low, high] = [values[0], values[values.length - 1]];
  const [q1, q3] = [values[Math.floor(values.length * 0.05)], values[Math.floor(values.length * 0.95)]];
  low = Math.max(low, q1 - 3 * (q3 - q1 || 1));
  high = Math.min(high, q3 + 3 * (q3 - q1 || 1));
  const pad = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
  return [[0, most], [low - pad, high + pad]];
}
