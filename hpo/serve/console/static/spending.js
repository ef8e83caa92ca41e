/** Gangs over time, and the bill as it grows against its forecast. */

import { axes, chart, scales } from "./chart.js";
import { duration, workerSeconds } from "./format.js";
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

/**
 * What was expected, as the picture has it; null where there is no forecast.
 * While the job runs, the picture has room for all of it: the bill grows towards it.
 * @param {JobData} data @param {number} total @returns {{seconds: number, wall: number, most: number, shown: boolean} | null}
 */
function forecastOf(data, total) {
  const { expected, at_most: most } = data.forecast || {};
  if (typeof expected?.worker_seconds !== "number") return null;
  const runs = data.summary?.HyperParameterTuningJobStatus === "InProgress";
  return {
    seconds: expected.worker_seconds, wall: expected.wall_seconds || 0, most: most?.worker_seconds || 0,
    shown: runs || expected.worker_seconds <= 4 * total, // Of a job that is over, one far above would flatten the bill.
  };
}

/** @param {JobData} data */
export function billChart(data) {
  const total = () => data.ledger.reduce((sum, each) => sum + each.seconds, 0);
  const made = chart({
    label: "Billed worker-seconds over time", height: 260, left: 72,
    *draw(context, box, ink) {
      const [begin, now] = span(data);
      const sum = total();
      const forecast = forecastOf(data, sum);
      const x = /** @type {[number, number]} */ ([0, Math.max(now - begin, forecast?.shown ? forecast.wall : 0)]);
      const top = Math.max(sum, forecast?.shown ? forecast.seconds : 0, 1e-9);
      const most = forecast?.shown && forecast.most > 1.08 * forecast.seconds && forecast.most <= 2 * top ? forecast.most : 0;
      const y = /** @type {[number, number]} */ ([0, Math.max(top, most) * 1.08]);
      const [toX, toY] = scales(box, x, y);
      axes(context, box, ink, { x, y, nameX: "", showX: duration });
      yield* bill(context, data, [begin, now], toX, toY, ink);
      context.setLineDash([6, 4]);
      context.lineWidth = 1.5;
      context.strokeStyle = context.fillStyle = ink("--ink");
      context.textBaseline = "bottom";
      if (forecast?.shown) {
        context.beginPath();
        context.moveTo(toX(0), toY(0));
        context.lineTo(toX(forecast.wall), toY(forecast.seconds));
        context.lineTo(box.left + box.width, toY(forecast.seconds));
        context.stroke();
        context.textAlign = "right";
        context.fillText(`forecast, ${workerSeconds(forecast.seconds)}`, box.left + box.width, toY(forecast.seconds) - 2);
      } else if (forecast) {
        context.textAlign = "left";
        context.fillText(`forecast, ${workerSeconds(forecast.seconds)}: far above`, box.left + 6, box.top + 12);
      }
      if (most) {
        context.beginPath();
        context.moveTo(box.left, toY(most));
        context.lineTo(box.left + box.width, toY(most));
        context.stroke();
        context.textAlign = "left";
        context.fillText(`at most, ${workerSeconds(most)}`, box.left + 6, toY(most) - 2);
      }
      context.setLineDash([]);
    },
  });
  return {
    element: made.element,
    redraw: () => {
      const forecast = forecastOf(data, total());
      made.describe(`Billed over time: ${workerSeconds(total())}${forecast ? ` of the ${workerSeconds(forecast.seconds)} that were forecast` : ""}; the table beside has the sums`);
      made.redraw();
    },
  };
}

/**
 * The bill by kind, one upon the other, step by step.
 * @param {CanvasRenderingContext2D} context @param {JobData} data @param {[number, number]} times Unix seconds
 * @param {(value: number) => number} toX @param {(value: number) => number} toY @param {import("./chart.js").Ink} ink
 */
function* bill(context, data, [begin, now], toX, toY, ink) {
  const kinds = [...new Set(data.ledger.map((each) => each.kind))].sort((a, b) => Number(a === "idle") - Number(b === "idle"));
  const columns = Math.max(2, Math.min(400, Math.floor((toX(now - begin) - toX(0)) / 2)));
  const sums = kinds.map(() => new Float64Array(columns + 1));
  for (const each of data.ledger) {
    // What was billed for a stretch of time grew in it, evenly.
    const [first, last] = [each.from, each.to].map((time) => Math.max(0, Math.min(columns, Math.ceil(((time - begin) / (now - begin)) * columns))));
    const part = each.seconds / Math.max(1, last - first);
    for (let at = first + 1; at <= last; at += 1) sums[kinds.indexOf(each.kind)][at] += part;
    if (last <= first) sums[kinds.indexOf(each.kind)][last] += part;
  }
  for (const sum of sums) for (let at = 1; at <= columns; at += 1) sum[at] += sum[at - 1];
  const below = new Float64Array(columns + 1);
  const place = (/** @type {number} */ at) => toX((at / columns) * (now - begin));
  for (const [index, kind] of kinds.entries()) {
    context.beginPath();
    for (let at = 0; at <= columns; at += 1) context.lineTo(place(at), toY(below[at] + sums[index][at]));
    for (let at = columns; at >= 0; at -= 1) context.lineTo(place(at), toY(below[at]));
    context.fillStyle = ink(hue(kind));
    context.fill();
    for (let at = 0; at <= columns; at += 1) below[at] += sums[index][at];
    yield;
  }
}
