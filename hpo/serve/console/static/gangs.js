/** Gangs: which are up, where, what each serves now, and what it has cost. */

import { fill, h } from "./dom.js";
import { address, number, workerSeconds } from "./format.js";

/** @type {Record<string, string>} */
const HUES = { training: "--c0", starting: "--c3", checkpointing: "--c2", idle: "--idle" };
export const hue = (/** @type {string} */ kind) => HUES[kind] || "--c7";

/** @param {string} kind of a billed second */
export const swatch = (kind) => h("span", { class: "swatch", "aria-hidden": "true", style: { background: `var(${hue(kind)})` } });

/** What the colours of a chart of gangs stand for. */
export const hueKey = () => h("p", { class: "key" }, Object.keys(HUES).map((kind) => h("span", {}, swatch(kind), kind)));

/** @type {Record<string, string>} */
const WORDS = { idle: "idle", lost: "lost, coming back", held: "held", unknown: "unknown: its driver is silent", released: "released" };
const MOST = 50; // Released gangs that are listed: a job on machines that come and go has thousands.

/** @param {HTMLElement} place @param {import("./jobdata.js").JobData} data */
export function gangTable(place, data) {
  const there = data.gangs.gangs.filter((gang) => gang.does !== "released");
  const released = data.gangs.gangs.filter((gang) => gang.does === "released").reverse();
  const counts = [[there.length, "up"], [data.gangs.starting, "starting"], [released.length, "released"]].filter(([count]) => count);
  const line = h("p", { class: "quiet", role: "status" }, counts.length ? counts.map(([count, word]) => `${number(count)} ${word}`).join(", ") : "No gang yet.");
  if (!there.length && !released.length) {
    fill(place, line);
    return;
  }
  fill(place, line, h("table", {}, h("thead", {}, h("tr", {}, ["gang", "now", "workers", "where", "busy", "billed"].map((each) => h("th", {}, each)))),
    h("tbody", {}, [...there, ...released.slice(0, MOST)].map((gang) => {
      const own = /** @type {number[]} */ (Object.values(gang.seconds)).reduce((sum, each) => sum + each, 0);
      return h("tr", {}, h("td", {}, gang.gang), h("td", { "data-does": gang.does, class: gang.does === "lost" || gang.does === "unknown" ? "bad" : "" }, now(data.name, gang)),
        h("td", {}, number(gang.workers)), h("td", {}, where(gang.places)),
        h("td", {}, own ? `${number((100 * (own - (gang.seconds.idle || 0))) / own, 3)} %` : "–"), h("td", {}, own ? workerSeconds(own) : "–"));
    }))), released.length > MOST ? h("p", { class: "quiet" }, `and ${number(released.length - MOST)} more that were released`) : null);
}

/** @param {string} job @param {any} gang */
function now(job, gang) {
  if (gang.does !== "serves") return WORDS[gang.does] || gang.does;
  if (["untuned", "probe"].includes(gang.serves)) return `trains ${gang.serves}`;
  return ["trains ", h("a", { href: address(job, gang.serves) }, gang.serves)];
}

/** @param {Record<string, Record<string, number>>} places workers by machine, and there by what each computes on */
function where(places) {
  const hosts = Object.entries(places);
  if (!hosts.length) return "–";
  return hosts.map(([host, devices]) => {
    const held = Object.entries(devices).filter(([device]) => device).map(([device, workers]) => (workers > 1 ? `${number(workers)} × ${device}` : device));
    return h("div", {}, host, held.length ? h("span", { class: "quiet" }, ` ${held.join(", ")}`) : null);
  });
}
