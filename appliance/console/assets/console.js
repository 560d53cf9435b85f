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
    number: (v) => (v == null ? "–" : v.toLocaleString("en", { maximumFractionDigits: v < 10 ? 1 : 0 })),
    bytes: (v) => (v == null ? "–" : v < 1e3 ? `${v.toFixed(0)} B` : v < 1e6 ? `${(v / 1e3).toFixed(1)} kB` : v < 1e9 ? `${(v / 1e6).toFixed(1)} MB` : `${(v / 1e9).toFixed(2)} GB`),
  };

  async function draw() {
    const plots = [...document.querySelectorAll(".plot[data-column]")];
    if (!plots.length || typeof uPlot === "undefined") return;
    const answer = await fetch(plots[0].dataset.history, { signal: AbortSignal.timeout(10000) });
    if (!answer.ok) return;
    const history = await answer.json();
    for (const plot of plots) {
      const known = charts.get(plot);
      const names = history.series.map((one) => one.name).join();
      const data = [history.at, ...history.series.map((one) => one[plot.dataset.column])];
      if (known && known.names === names) { known.history = history; known.chart.setData(data); continue; }
      if (known) known.chart.destroy();
      const one = { names, history, top: known ? known.top : 1 };
      one.chart = made(plot, data, one);
      charts.set(plot, one);
    }
  }

  // The scale never shrinks while the page is open, and grows in large steps.
  function top(one, max) {
    const ten = 10 ** Math.floor(Math.log10(Math.max(1, max)));
    one.top = Math.max(one.top, [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= max) || 1);
    return one.top;
  }

  function made(plot, data, one) {
    const style = getComputedStyle(document.documentElement);
    const [text, line, accent, ...kinds] = ["--quiet", "--line", "--accent", "--bad", "--busy", "--warn", "--good"].map((name) => style.getPropertyValue(name).trim());
    const colours = { stop: kinds[0], restart: kinds[1], "hand-over": kinds[2], promotion: kinds[3] };
    const format = FORMATS[plot.dataset.format] || FORMATS.number;
    const clock = (seconds, from, to) => new Date(seconds * 1000).toISOString().slice(from, to);
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const height = Number(plot.dataset.height) || 170;
    function mark(u) {
      for (const { at, kind } of one.history.marks) {
        const x = u.valToPos(at, "x", true);
        u.ctx.fillStyle = colours[kind];
        u.ctx.fillRect(x - 1, u.bbox.top, 2, u.bbox.height);
        u.ctx.textAlign = "left";
        u.ctx.fillText(kind[0].toUpperCase(), x + 4 * devicePixelRatio, u.bbox.top + 10 * devicePixelRatio);
      }
    }
    const curve = ({ name }, i) => ({ label: data.length > 2 ? name : plot.dataset.label, stroke: i ? `hsl(${(i * 67) % 360} 60% 50%)` : accent, width: i ? 1.25 : 2, fill: i ? undefined : accent + "22", value: (_u, v) => format(v), spanGaps: false });
    const chart = new uPlot({
      width: plot.clientWidth, height, cursor: { drag: { x: false, y: false }, sync: { key: "page" } }, hooks: { draw: [mark] },
      scales: { x: { range: () => [one.history.from, one.history.to] }, y: { range: (_u, _min, max) => [0, top(one, max)] } },
      axes: [{ ...axis, space: 70, values: (_u, splits) => splits.map((at) => clock(at, 11, 16)) }, { ...axis, size: 68, values: (_u, values) => values.map(format) }],
      series: [{ value: (_u, at) => (at == null ? "–" : clock(at, 11, 19)) }, ...one.history.series.map(curve)],
    }, data, plot);
    new ResizeObserver(() => chart.setSize({ width: plot.clientWidth, height })).observe(plot);
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
