/** The endpoints that have a job's models: how far each has come, and a button that ends it. */

import { fill, h } from "../dom.js";
import * as api from "../api.js";
import { address, chip, when } from "../format.js";
import { actButton, ask } from "./dialog.js";

const SOON = 1500, LATER = 15_000; // Milliseconds between two looks, while one is being deployed and else.

/**
 * @param {string} job its name
 * @param {(any: boolean) => void} shown told whether there are any
 * @returns {{element: HTMLElement, look: () => void, end: () => void}}
 */
export function endpoints(job, shown) {
  const element = h("div", { class: "scroll" });
  let timer = 0;
  let over = false;
  const look = async () => {
    window.clearTimeout(timer);
    let wait = LATER;
    try {
      const [who, found] = await Promise.all([api.session(), api.get("/endpoints")]);
      if (over) return;
      const own = found.endpoints.filter((/** @type {any} */ each) => each.job === job);
      draw(own, who.rights === "act");
      if (own.some((/** @type {any} */ each) => each.state === "DEPLOYING")) wait = SOON;
      else if (!own.length) wait = 0; // Until an act, or a button here, tells of one.
    } catch { /* The line at the top tells that the server does not answer. */ }
    window.clearTimeout(timer);
    if (!over && wait) timer = window.setTimeout(look, wait);
  };
  const draw = (/** @type {any[]} */ own, /** @type {boolean} */ acts) => {
    shown(own.length > 0);
    fill(element, h("table", {}, h("thead", {}, h("tr", {}, ["endpoint", "state", "trial", "answers at", "deployed", ""].map((each) => h("th", {}, each)))),
      h("tbody", {}, own.map((each) => h("tr", {}, h("td", {}, h("strong", {}, each.name)),
        h("td", {}, chip(each.state), each.reason ? h("div", { class: "bad small wrap" }, each.reason) : null),
        h("td", {}, h("a", { href: address(job, each.trial) }, each.trial)), h("td", {}, each.url ? h("code", {}, `${each.url}/invocations`) : "–"),
        h("td", {}, `${when(new Date(1000 * each.at).toISOString())} by ${each.by}`),
        h("td", { class: "right" }, acts ? actButton("End", each.state === "DEPLOYING" ? "it is being deployed" : "", () => end(each.name), "danger") : null))))));
  };
  const end = (/** @type {string} */ name) => ask({
    title: `End ${name}?`, text: "It answers no more requests. The model stays with its job.", button: "End the endpoint", danger: true,
    act: () => api.del(`/endpoints/${encodeURIComponent(name)}`).then(look),
  });
  window.addEventListener("endpoints", look);
  return {
    element, look,
    end: () => {
      over = true;
      window.clearTimeout(timer);
      window.removeEventListener("endpoints", look);
    },
  };
}
