// The page works without this file. With it, the page renews itself, draws the last hour, and copies commands.
"use strict";
(() => {
  const EVERY = 3000;
  const STALE_AFTER = 15000;
  const live = document.getElementById("live");
  const silent = document.getElementById("silent");
  let answered = Date.now();
  let waiting = false;

  const interacting = () => {
    const active = document.activeElement;
    return active && live.contains(active) && active.matches("input, select, textarea");
  };

  // Elements keep their identity where nothing has changed, so that the focus and the selection stay.
  function renew(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== 1 || fresh.nodeType !== 1 || old.tagName !== fresh.tagName || old.hasAttribute("data-keep")) {
      if (!(old.nodeType === 1 && old.hasAttribute("data-keep"))) old.replaceWith(fresh.cloneNode(true));
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(old.tagName === "DETAILS" && name === "open")) old.removeAttribute(name);
    }
    for (const { name, value } of [...fresh.attributes]) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    const [olds, news] = [[...old.childNodes], [...fresh.childNodes]];
    news.forEach((node, i) => (i < olds.length ? renew(olds[i], node) : old.append(node.cloneNode(true))));
    olds.slice(news.length).forEach((node) => node.remove());
  }

  async function refresh() {
    if (waiting || document.hidden) return;
    waiting = true;
    try {
      const answer = await fetch(location.href, { headers: { "X-Part": "live", Accept: "text/html" }, signal: AbortSignal.timeout(10000) });
      if (answer.status === 401) return location.reload(); // the session has ended: the server says what follows
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      answered = Date.now();
      if (!interacting()) {
        const fresh = document.createElement("main");
        fresh.innerHTML = text;
        const shell = live.cloneNode(false);
        shell.append(...fresh.childNodes);
        renew(live, shell);
      }
      await draw();
    } catch { /* shown below: the page says that it is out of date */ }
    finally { waiting = false; }
    showAge();
  }

  function showAge() {
    const late = Date.now() - answered > STALE_AFTER;
    silent.hidden = !late;
    live.classList.toggle("stale", late);
    if (late) silent.textContent = `The control center has not answered since ${new Date(answered).toLocaleTimeString()}: what you see is old.`;
  }

  const charts = new Map();
  const FORMATS = {
    number: (v) => (v == null ? "–" : v.toLocaleString(undefined, { maximumFractionDigits: 1 })),
    bytes: (v) => (v == null ? "–" : v < 1e3 ? `${v.toFixed(0)} B` : v < 1e6 ? `${(v / 1e3).toFixed(1)} kB` : v < 1e9 ? `${(v / 1e6).toFixed(1)} MB` : `${(v / 1e9).toFixed(2)} GB`),
  };

  async function draw() {
    const plots = [...document.querySelectorAll(".plot[data-column]")];
    if (!plots.length || typeof uPlot === "undefined") return;
    const answer = await fetch(plots[0].dataset.history, { signal: AbortSignal.timeout(10000) });
    if (!answer.ok) return;
    const history = await answer.json();
    for (const plot of plots) {
      const data = [history.at, history[plot.dataset.column]];
      const known = charts.get(plot);
      if (known) known.setData(data);
      else charts.set(plot, made(plot, data));
    }
  }

  function made(plot, data) {
    const style = getComputedStyle(document.documentElement);
    const [text, line, accent] = ["--quiet", "--line", "--accent"].map((name) => style.getPropertyValue(name).trim());
    const format = FORMATS[plot.dataset.format] || FORMATS.number;
    const clock = (seconds, from, to) => new Date(seconds * 1000).toISOString().slice(from, to);
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const chart = new uPlot({
      width: plot.clientWidth, height: 170, cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] } },
      axes: [{ ...axis, space: 70, values: (_u, splits, _i, _s, step) => splits.map((at) => clock(at, 11, step < 60 ? 19 : 16)) }, { ...axis, size: 68, values: (_u, values) => values.map(format) }],
      series: [{ value: (_u, at) => (at == null ? "–" : clock(at, 11, 19)) }, { label: plot.dataset.label, stroke: accent, width: 2, fill: accent + "22", value: (_u, v) => format(v), spanGaps: false }],
    }, data, plot);
    new ResizeObserver(() => chart.setSize({ width: plot.clientWidth, height: 170 })).observe(plot);
    return chart;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    // Browsers give the clipboard only to pages by TLS or loopback; elsewhere the command is selected.
    if (!navigator.clipboard) return getSelection().selectAllChildren(button.parentElement.querySelector("code"));
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });

  draw().catch(() => {});
  setInterval(refresh, EVERY);
  setInterval(showAge, 1000);
  document.addEventListener("visibilitychange", refresh);
})();
