const data = JSON.parse(document.getElementById("charts").textContent), hidden = new Set();
const shown = chart => chart.lines.filter(line => !hidden.has(line.n));
const xs = (chart, line) => line.x || chart.x;
const finite = values => values.filter(value => value !== null);
const widened = (low, high) => high > low ? [low, high] : [low, low + Math.max(1, Math.abs(low))];
function range(chart) {
  if (chart.fixed) return chart.fixed;
  const lines = shown(chart).length ? shown(chart) : chart.lines;
  if (chart.ylog) {
    const all = lines.flatMap(line => finite([...line.y, ...(line.spots || []).flat()])).filter(value => value > 0);
    if (!all.length) return [.1, 1];
    const top = Math.max(...all);
    return widened(Math.max(Math.min(...all) / 1.3, top / 10 ** DECADES), top * 1.15);
  }
  if (chart.whole) {
    const all = lines.flatMap(line => finite([...line.y, ...(line.low || []), ...(line.high || [])]));
    return widened(Math.min(0, 1.05 * Math.min(...all)), 1.05 * Math.max(0, ...all));
  }
  const stretching = lines.filter(line => !line.baseline), used = stretching.length ? stretching : lines;
  const curves = used.map(line => finite(line.y)).filter(y => y.length);
  const peaks = curves.map(y => Math.max(0, ...y)).sort((a, b) => a - b);
  const middle = peaks.length ? peaks[(peaks.length - 1) >> 1] : 0;
  const top = Math.max(0, ...peaks.filter(peak => middle === 0 || peak <= REACH * middle));
  const low = Math.min(...curves.map(y => Math.min(...y)));
  return widened(Math.max(Math.min(0, 1.08 * low), top > 0 ? -2 * top : 1.08 * low), 1.08 * top);
}
function ticks(low, high, log) {
  const found = [];
  if (log) {
    const span = Math.log10(high / low), steps = span > 2 ? [1] : [1, 2, 5], every = Math.max(1, Math.ceil(span / 6));
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
      if (p % every === 0) for (const step of steps) found.push(step * 10 ** p);
  } else {
    const rough = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(m => unit * m).find(size => size >= rough);
    for (let i = Math.ceil(low / step); i <= Math.floor(high / step); i++) found.push(i * step);
  }
  return found.filter(value => value >= low - 1e-9 * Math.abs(high) && value <= high + 1e-9 * Math.abs(high));
}
const plainly = value => String(Number(value.toPrecision(6)));
function short(value) {
  for (const [size, unit, letter] of [[1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]])
    if (Math.abs(value) >= size) return plainly(value / unit) + letter;
  return plainly(value);
}
function scale(low, high, start, end, log) {
  const at = log ? Math.log10 : value => value, bottom = at(low), top = at(high);
  return value => start + (at(value) - bottom) / (top - bottom) * (end - start);
}
const scales = (chart, [low, high]) =>
  [scale(...chart.xrange, L, E, chart.xlog), scale(low, high, F, T, chart.ylog)];
function pieces(chart, values) {
  const found = []; let open = null;
  values.forEach((value, i) => {
    if (value === null || (chart.ylog && !(value > 0))) open = null;
    else { if (!open) found.push(open = []); open.push(i); }
  });
  return found;
}
const path = (places, x, y) => places.map(i => x(i).toFixed(1) + "," + y(i).toFixed(1)).join(" ");
function spread(places, top, bottom) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]), found = [...places];
  order.forEach((i, k) => { found[i] = Math.max(found[i], k ? found[order[k - 1]] + APART : top); });
  for (let k = order.length - 1; k >= 0; k--)
    found[order[k]] = Math.min(found[order[k]], k < order.length - 1 ? found[order[k + 1]] - APART : bottom);
  return found;
}
const make = (name, attributes, text = "") => {
  const part = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const key in attributes) part.setAttribute(key, attributes[key]);
  part.textContent = text;
  return part;
};
function drawAxis(figure, chart, low, high, y) {
  const axes = figure.querySelector(".axes");
  for (const old of axes.querySelectorAll(".yaxis")) old.remove();
  for (const value of ticks(low, high, chart.ylog)) {
    const at = y(value);
    axes.prepend(make("path", {class: "grid yaxis", d: `M${L} ${at.toFixed(1)}H${E}`}));
    axes.append(make("text", {class: "yaxis", x: L - 6, y: (at + 4).toFixed(1), "text-anchor": "end"}, short(value)));
  }
}
function drawLine(figure, chart, line, number, x, y) {
  const group = figure.querySelector(`g[data-line="${number}"]`), t = xs(chart, line);
  const X = i => x(t[i]), Y = i => y(line.y[i]), high = i => y(line.high[i]), floor = range(chart)[0] / 2;
  const low = i => y(chart.ylog ? Math.max(line.low[i], floor) : line.low[i]);
  const band = group.querySelector(".band"), bar = group.querySelector(".whisker");
  const curve = group.querySelector(".line"), spots = group.querySelector(".spot");
  if (curve) curve.setAttribute("d", pieces(chart, line.y).map(some => "M" + path(some, X, Y)).join(""));
  if (spots) spots.setAttribute("d", line.spots.map((column, i) => finite(column).map(value =>
    `M${X(i).toFixed(1)} ${y(value).toFixed(1)}h0`).join("")).join(""));
  if (band) band.setAttribute("d", pieces(chart, line.high).map(some =>
    `M${path(some, X, high)}L${path([...some].reverse(), X, low)}Z`).join(""));
  if (bar) bar.setAttribute("d", line.y.map((_, i) =>
    `M${X(i).toFixed(1)} ${low(i).toFixed(1)}V${high(i).toFixed(1)}`).join(""));
  group.querySelectorAll(".dot").forEach((dot, i) => dot.setAttribute("cy", Y(i).toFixed(1)));
}
function drawEnds(figure, chart, low, high, y) {
  const named = chart.lines.map((line, i) => [line, i]).filter(([line]) => !line.thin && !hidden.has(line.n));
  const ends = named.map(([line]) => {
    const last = finite(line.y).at(-1);
    return !(last >= low) ? ["\u2193 ", F] : last > high ? ["\u2191 ", T] : ["", y(last)];
  });
  const apart = spread(ends.map(([, at]) => at), T + 4, F - 2);
  named.forEach(([line, i], k) => {
    const text = figure.querySelector(`text[data-end="${i}"]`);
    text.setAttribute("y", (apart[k] + 4).toFixed(1));
    text.textContent = ends[k][0] + line.short;
  });
}
function draw(figure) {
  const chart = data[figure.dataset.chart], [low, high] = range(chart), [x, y] = scales(chart, [low, high]);
  drawAxis(figure, chart, low, high, y);
  chart.lines.forEach((line, number) => drawLine(figure, chart, line, number, x, y));
  drawEnds(figure, chart, low, high, y);
  if (figure.cursor !== undefined) point(figure, figure.cursor);
}

for (const button of document.querySelectorAll(".legend button")) button.addEventListener("click", () => {
  const on = button.getAttribute("aria-pressed") === "false", number = button.dataset.algorithm;
  if (on) hidden.delete(+number); else hidden.add(+number);
  for (const same of document.querySelectorAll(`.legend button[data-algorithm="${number}"]`))
    same.setAttribute("aria-pressed", on);
  for (const part of document.querySelectorAll(`svg [data-algorithm="${number}"]`)) part.classList.toggle("off", !on);
  for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure);
});
addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });

const several = value =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : plainly(Number(value.toPrecision(3)));
function nearest(chart, t) {
  const all = chart.x || chart.lines[0].x, at = chart.xlog ? Math.log10 : value => value;
  let best = 0;
  all.forEach((one, i) => { if (Math.abs(at(one) - at(t)) < Math.abs(at(all[best]) - at(t))) best = i; });
  return best;
}
function clear(figure) {
  figure.cursor = undefined;
  figure.querySelector(".cursor")?.remove();
  figure.querySelector(".tip").hidden = true;
}
function point(figure, i) {
  const chart = data[figure.dataset.chart], t = (chart.x || chart.lines[0].x)[i], [x, y] = scales(chart, range(chart));
  figure.cursor = i;
  figure.querySelector(".cursor")?.remove();
  const cursor = make("g", {class: "cursor"}), tip = figure.querySelector(".tip");
  cursor.append(make("path", {class: "cross", d: `M${x(t).toFixed(1)} ${T}V${F}`}));
  const rows = [];
  for (const line of shown(chart)) {
    const j = line.x ? nearest({x: line.x, xlog: chart.xlog}, t) : i, value = line.y[j];
    if (value === null) continue;
    const group = figure.querySelector(`g[data-line="${chart.lines.indexOf(line)}"]`).getAttribute("class");
    if (y(value) >= T - 1 && y(value) <= F + 1)
      cursor.append(make("circle", {class: `dot ${group}`, cx: x(t).toFixed(1), cy: y(value).toFixed(1), r: 3.5}));
    const around = line.low ? ` (${several(line.low[j])} to ${several(line.high[j])})` : "";
    rows.push([value, group, line.label, several(value) + around]);
  }
  figure.querySelector("svg").append(cursor);
  rows.sort((a, b) => b[0] - a[0]);
  tip.replaceChildren();
  const head = document.createElement("strong"), list = document.createElement("dl");
  head.textContent = chart.names.length ? chart.names[i] : `t = ${Math.round(t).toLocaleString("en")}`;
  for (const [, group, label, words] of rows) {
    const name = document.createElement("dt"), text = document.createElement("dd");
    name.className = group; name.textContent = label; text.textContent = words;
    list.append(name, text);
  }
  tip.append(head, list);
  tip.hidden = false;
  tip.classList.toggle("left", x(t) > (L + E) / 2);
}
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const svg = figure.querySelector("svg"), chart = data[figure.dataset.chart], tip = document.createElement("div");
  if (!chart.lines.length) continue;
  tip.className = "tip"; tip.hidden = true; tip.setAttribute("role", "status");
  figure.append(tip);
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight Home End Escape");
  const last = (chart.x || chart.lines[0].x).length - 1;
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), place = (event.clientX - box.left) / box.width * W;
    const at = chart.xlog ? Math.log10 : value => value, [low, high] = chart.xrange.map(at);
    const value = low + (place - L) / (E - L) * (high - low);
    point(figure, nearest(chart, chart.xlog ? 10 ** value : value));
  });
  svg.addEventListener("pointerleave", () => { if (document.activeElement !== svg) clear(figure); });
  svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) point(figure, figure.cursor ?? last); });
  svg.addEventListener("blur", () => clear(figure));
  svg.addEventListener("keydown", event => {
    const from = figure.cursor ?? last;
    const to = {ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last}[event.key];
    if (event.key === "Escape") clear(figure);
    if (to === undefined) return;
    event.preventDefault();
    point(figure, Math.min(last, Math.max(0, to)));
  });
}

const worth = cell => {
  const found = /-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?/.exec(cell.dataset.value ?? cell.textContent);
  return found ? parseFloat(found[0].replaceAll(",", "")) : null;
};
for (const table of document.querySelectorAll(".scroll table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button"; button.className = "sort"; button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = column > 0 && [...body.rows].some(row => worth(row.cells[column]) !== null);
      const value = row => numeric ? worth(row.cells[column]) : row.cells[column].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        const [one, two] = [value(a), value(b)];
        if (one === null || two === null) return (one === null) - (two === null);
        return sign * (numeric ? one - two : one.localeCompare(two));
      });
      body.append(...rows);
    });
  });
}
