/** The frame: routes of the address's hash, what each page is mounted by, and the line that tells of the connection. */

import { session } from "./api.js";
import { fill, h } from "./dom.js";
import { keys } from "./keys.js";
import { comparePage } from "./pages/compare.js";
import { jobPage } from "./pages/job.js";
import { jobsPage } from "./pages/jobs.js";
import { trialPage } from "./pages/trial.js";
import { newPage } from "./acts/newjob.js";
import { theme } from "./theme.js";

/**
 * @typedef {object} Frame
 * @property {HTMLElement} main where a page puts its elements
 * @property {(title: string) => void} title of the browser's tab
 * @property {(kind: string) => void} live told the kinds of a stream's events
 * @property {(error: Error) => void} fail shows what went wrong
 */

/** @typedef {(frame: Frame, ...parts: string[]) => (() => void)} PageMaker */

/** @type {[RegExp, PageMaker][]} */
const ROUTES = [
  [/^\/jobs\/([^/]+)\/trials\/([^/]+)$/, trialPage],
  [/^\/jobs\/([^/]+)$/, jobPage],
  [/^\/new(?:\/([^/]+))?$/, newPage],
  [/^\/compare\/(.+)$/, comparePage],
  [/^(?:\/jobs)?\/?$/, jobsPage],
];

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const notice = /** @type {HTMLElement} */ (document.getElementById("notice"));
const state = /** @type {HTMLElement} */ (document.getElementById("live"));
let leave = () => {};
let number = 0;

function show() {
  leave();
  leave = () => {};
  number += 1;
  const own = number;
  const place = location.hash.slice(1);
  fill(main);
  fill(notice);
  say("");
  document.documentElement.scrollTop = 0;
  const frame = {
    main,
    title: (/** @type {string} */ text) => { document.title = `${text} · Warmband`; },
    live: (/** @type {string} */ kind) => own === number && say(kind),
    fail: (/** @type {Error} */ error) => own === number && fill(notice, error.message),
  };
  for (const [pattern, make] of ROUTES) {
    const found = pattern.exec(place);
    if (!found) continue;
    leave = make(frame, ...found.slice(1).filter((part) => part !== undefined).map(decodeURIComponent));
    return;
  }
  fill(main, h("h1", {}, "No such page"), h("p", {}, "The address ", h("code", {}, place), " leads nowhere. "),
    h("a", { href: "#/jobs" }, "All jobs"));
}

/** @param {string} kind of an event of the stream */
function say(kind) {
  if (kind === "lost") state.dataset.state = "lost";
  else if (kind === "away") state.dataset.state = "away";
  else if (kind === "") delete state.dataset.state;
  else if (kind !== "open" || state.dataset.state !== "away") state.dataset.state = "live";
  const texts = { live: "live", lost: "reconnecting…", away: "the database does not answer" };
  const text = texts[/** @type {keyof typeof texts} */ (state.dataset.state)] || "";
  if (state.textContent !== text) state.textContent = text;
}

theme(/** @type {HTMLElement} */ (document.getElementById("theme")));
keys(/** @type {HTMLElement} */ (document.getElementById("help")));
session().then((who) => {
  fill(/** @type {HTMLElement} */ (document.getElementById("who")), who.rights === "act" ? who.name : `${who.name}, may look`);
}, (error) => fill(notice, error.message));
window.addEventListener("hashchange", show);
show();
