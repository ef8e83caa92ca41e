/** Gangs over time, and the bill as it grows against its forecast. */

import { axes, chart, scales } from "./chart.js";
import { duration } from "./format.js";
import { hue } from "./gangs.js";

const ROW = 22;

/** @typedef {import("./jobdata.js").JobData} JobData */

/** @param {JobData} data @returns {[number, number]} Unix seconds */
function span(data) {
  let [from, to] = [Infinity, -Infinity];
  for (const each of data.ledger) [from, to] = [Math.min(from, each.from), Math.max(to, each.to)];
  return from < to ? [from, to] : [0, 1];
}

/** @param {JobData} data @param {(trial: string) => void} open */
export function gantt(data, open) {
  /** @type {string[]} */
  let gangs = [];
  /** @type {[number, number]} */
  let x = [0, 1];
  const made = chart({
    label: "Gangs over time", height: 120, left: 96,
    *draw(context, box, ink) {
      gangs = [...new Set(data.ledger.map((each) => each.gang))];
      x = span(data);
      const [toX] = scales(box, x, [0, 1]);
      axes(context, box, ink, { x: [0, x[1] - x[0]], y: [0, 0], nameX: "", showX: duration, showY: () => "" });
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillStyle = ink("--quiet");
      gangs.forEach((gang, row) => context.fillText(short(gang), box.left - 8, box.top + row * ROW + ROW / 2, 88));
      const rows = new Map(gangs.map((gang, row) => [gang, row]));
      for (const each of data.ledger) {
        const at = box.top + Number(rows.get(each.gang)) * ROW + 3;
        context.fillStyle = ink(hue(each.kind));
        context.fillRect(toX(each.from), at, Math.max(0.5, toX(each.to) - toX(each.from) - 0.5), ROW - 6);
        yield;
      }
    },
    find(px, py, box) {
      const gang = gangs[Math.floor((py - box.top) / ROW)];
      const at = x[0] + ((px - box.left) / box.width) * (x[1] - x[0]);
      return data.ledger.find((each) => each.gang === gang && each.from <= at && at <= each.to) || null;
    },
    tell: (found) => `${found.gang} · ${found.kind}${found.trial ? ` · ${found.trial}` : ""} · ${duration(found.to - found.from)}`,
    open: (found) => { if (found.trial && found.trial !== "untuned") open(found.trial); },
  });
  return {
    element: made.element,
    redraw: () => {
      made.resize(Math.max(90, new Set(data.ledger.map((each) => each.gang)).size * ROW + 42));
      made.describe(`Gangs over time: ${data.ledger.length} segments; the table of gangs has their sums`);
      made.redraw();
    },
  };
}

const short = (/** @type {string} */ text) => (text.length > 13 ? `…${text.slice(-12)}` : text);

/** @param {JobData} data */
export function billChart(data) {
  /** @type {[number, number]} */
  let x = [0, 1];
  return chart({
    label: "Billed worker-seconds over time, by kind, with the forecast; the table beside has the sums", height: 240, left: 72,
    *draw(context, box, ink) {
      x = span(data);
      const kinds = [...new Set(data.ledger.map((each) => each.kind))].sort((a, b) => Number(a === "idle") - Number(b === "idle"));
      const columns = Math.max(2, Math.min(400, Math.floor(box.width / 2)));
      const sums = kinds.map(() => new Float64Array(columns + 1));
      for (const each of data.ledger) {
        const place = Math.min(columns, Math.ceil(((each.to - x[0]) / (x[1] - x[0])) * columns));
        sums[kinds.indexOf(each.kind)][Math.max(0, place)] += each.seconds;
      }
      for (const sum of sums) for (let at = 1; at <= columns; at += 1) sum[at] += sum[at - 1];
      const total = sums.reduce((whole, sum) => whole + sum[columns], 0);
      const lines = /** @type {[string, number][]} */ ([["expected", data.forecast?.expected?.worker_seconds], ["at most", data.forecast?.at_most?.worker_seconds]]
        .filter(([, value]) => typeof value === "number"));
      // A bound far above the bill would flatten it.
      const near = lines.filter(([, value]) => value <= 4 * total);
      const y = /** @type {[number, number]} */ ([0, Math.max(total, ...near.map(([, value]) => value), 1e-9) * 1.05]);
      const [, toY] = scales(box, x, y);
      axes(context, box, ink, { x: [0, x[1] - x[0]], y, nameX: "", showX: duration, showY: duration });
      const below = new Float64Array(columns + 1);
      for (const [index, kind] of kinds.entries()) {
        const toX = (/** @type {number} */ at) => box.left + (at / columns) * box.width;
        context.beginPath();
        for (let at = 0; at <= columns; at += 1) context.lineTo(toX(at), toY(below[at] + sums[index][at]));
        for (let at = columns; at >= 0; at -= 1) context.lineTo(toX(at), toY(below[at]));
        context.fillStyle = ink(hue(kind));
        context.fill();
        for (let at = 0; at <= columns; at += 1) below[at] += sums[index][at];
        yield;
      }
      context.setLineDash([6, 4]);
      context.strokeStyle = context.fillStyle = ink("--ink");
      context.textAlign = "left";
      context.textBaseline = "bottom";
      for (const [name, value] of near) {
        context.beginPath();
        context.moveTo(box.left, toY(value));
        context.lineTo(box.left + box.width, toY(value));
        context.stroke();
        context.fillText(`forecast, ${name}`, box.left + 6, toY(value) - 2);
      }
      context.setLineDash([]);
    },
  });
}
