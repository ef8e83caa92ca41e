"use strict";
// The page without this script is whole; the script sorts and searches tables, copies, draws and changes colours.
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const said = (number) => number.toLocaleString("en");

// ---- tables: rows that a search leaves out are "out", rows past the first are "more" until all are asked for
for (const box of all(".table")) {
  const body = box.querySelector("tbody");
  const rows = [...body.rows];
  const first = Number(box.dataset.shown);
  const search = box.querySelector("input");
  const selects = all("select", box);
  const told = box.querySelector("output");
  const more = box.querySelector(".all");
  let order = rows;

  const show = () => {
    const wanted = (search ? search.value : "").trim().toLowerCase();
    const whole = box.classList.contains("whole");
    let found = 0;
    for (const row of order) {
      const fits = (!wanted || [...row.cells].some((cell) => cell.textContent.toLowerCase().includes(wanted)))
        && selects.every((select) => !select.value || row.cells[select.dataset.column].textContent === select.value);
      row.classList.toggle("out", !fits);
      row.classList.toggle("more", fits && found >= first);
      found += fits;
    }
    const seen = whole ? found : Math.min(found, first);
    if (told && found === rows.length) told.textContent = `${said(seen)} of ${said(rows.length)} rows`;
    else if (told) told.textContent = `${said(found)} of ${said(rows.length)} rows fit${seen < found ? `, ${said(seen)} shown` : ""}`;
    if (more) {
      more.hidden = whole || found <= first;
      more.textContent = `Show all ${said(found)} rows`;
    }
  };

  // What is not there has an empty number, and comes last either way.
  const sorted = (place, down) => {
    const given = (row) => row.cells[place].dataset.number;
    const numbers = rows.every((row) => given(row) !== undefined);
    const by = numbers
      ? (one, other) => Number(given(one)) - Number(given(other))
      : (one, other) => one.cells[place].textContent.localeCompare(other.cells[place].textContent, "en", { numeric: true });
    const full = rows.filter((row) => given(row) !== "").sort((one, other) => (down ? by(other, one) : by(one, other)));
    return [...full, ...rows.filter((row) => given(row) === "")];
  };

  all("thead th", box).forEach((head, place) => {
    if (rows.length < 2) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : head.classList.contains("number");
      all("thead th", box).forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      order = sorted(place, down);
      body.append(...order);
      show();
    });
  });
  if (search) search.addEventListener("input", show);
  for (const select of selects) select.addEventListener("change", show);
  if (more) more.addEventListener("click", () => { box.classList.add("whole"); show(); });
  show();
}

// ---- copying
for (const button of all(".copy")) {
  button.addEventListener("click", async () => {
    const code = button.closest(".code").querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// ---- colours and pictures: a picture is drawn when it comes near the view, and again when the colours change
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const scheme = () => root.dataset.scheme || (prefersDark.matches ? "dark" : "light");
const stored = document.getElementById("templates");
const templates = stored ? JSON.parse(stored.textContent) : {};
const drawn = new Set();

// The drawing library is large: it rests in the page as text, and runs once the page can be read.
const library = document.getElementById("plotly");
const load = () => {
  if (window.Plotly || !library) return;
  const script = document.createElement("script");
  script.textContent = library.textContent;
  document.head.append(script);
  library.remove();
};

const views = (plot) => JSON.parse(document.getElementById(plot.dataset.drawing).textContent);
const chooser = (plot) => plot.closest("figure").querySelector("select");

const draw = (plot, colours = scheme()) => {
  const given = views(plot)[chooser(plot)?.selectedIndex ?? 0];
  const layout = { ...given.layout, template: templates[colours], autosize: true };
  const touch = matchMedia("(pointer: coarse)").matches;
  if (touch) layout.dragmode = false;
  drawn.add(plot);
  load();
  return Plotly.react(plot, given.data, layout, {
    displaylogo: false,
    responsive: true,
    displayModeBar: touch ? false : "hover",
    // The library's own set has a button that uploads the picture.
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
    plotlyServerURL: "",
    toImageButtonOptions: { filename: plot.dataset.name, scale: 2 },
  });
};

const watch = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    watch.unobserve(target);
    setTimeout(() => draw(target));
  }
}, { rootMargin: "300px" });

for (const plot of all(".plot")) {
  const { height } = views(plot)[0].layout;
  if (height) plot.style.minHeight = `${height}px`;
  watch.observe(plot);
  chooser(plot)?.addEventListener("change", () => draw(plot));
}
const redraw = () => drawn.forEach((plot) => draw(plot));
document.getElementById("scheme").addEventListener("click", () => {
  root.dataset.scheme = scheme() === "dark" ? "light" : "dark";
  redraw();
});
prefersDark.addEventListener("change", redraw);
addEventListener("beforeprint", () => all(".plot").forEach((plot) => draw(plot, "light")));
addEventListener("afterprint", redraw);

if (library) addEventListener("load", () => (window.requestIdleCallback || setTimeout)(load));

// ---- where the reader is
const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
const headings = all("h2");
const follow = () => {
  const end = scrollY > 0 && scrollY + innerHeight >= root.scrollHeight - 2;
  const above = end ? headings : headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight * 0.35);
  const now = above.length ? above[above.length - 1].id : "";
  for (const [id, link] of links) {
    if (id === now) {
      if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        const list = link.closest("ul");
        list.scrollLeft = link.offsetLeft - list.offsetLeft - list.clientWidth / 2 + link.clientWidth / 2;
      }
    } else link.removeAttribute("aria-current");
  }
};
addEventListener("scroll", follow, { passive: true });
follow();
