// The cost so far by step, for every order and for the user's game.

const CHART_HEIGHT = 230;
// If the most expensive order costs this many times as much as the cheapest, the scale is logarithmic.
const FAR_APART = 12;
// Below this width in pixels there is no room for long texts between both ends of the axis.
const WIDE = 260;
const EDGES = { left: 46, right: 132, top: 12, bottom: 24 };

class CostChart {
  constructor(host, choose) {
    Object.assign(this, { host, choose });
    this.svg = svg("svg", { height: CHART_HEIGHT, role: "img", "aria-label": "Cost so far by number of eliminated vertices" }, host);
    const pointed = (event) => {
      if (event.type === "pointermove" && event.buttons === 0) return;
      const { left } = this.svg.getBoundingClientRect();
      this.choose(Math.round((event.clientX - left - EDGES.left) / this.across(1)));
    };
    this.svg.addEventListener("pointerdown", pointed);
    this.svg.addEventListener("pointermove", pointed);
    new ResizeObserver(() => { if (this.shown) this.draw(...this.shown); }).observe(host);
  }

  across(steps) {
    return (this.host.clientWidth - EDGES.left - EDGES.right) / Math.max(1, this.steps) * steps;
  }

  // `lines` have name, colour, costs, chosen, total and at, the step that is marked on them.
  draw(lines, steps, step, bound) {
    this.shown = [lines, steps, step, bound];
    this.steps = steps;
    const most = Math.max(1, ...lines.map((line) => line.costs.at(-1)));
    // Ignore a game in progress, which is cheap only because it is not over.
    const least = Math.min(...lines.filter((line) => line.costs.length > steps).map((line) => line.costs.at(-1)));
    this.logarithmic = most > FAR_APART * Math.max(1, least);
    const height = this.logarithmic ? (cost) => Math.log1p(cost) / Math.log1p(most) : (cost) => cost / most;
    const room = CHART_HEIGHT - EDGES.top - EDGES.bottom;
    const x = (at) => (EDGES.left + this.across(at)).toFixed(1);
    const y = (cost) => (EDGES.top + room * (1 - height(cost))).toFixed(1);
    this.svg.replaceChildren();
    this.axes(most, steps, x, y);
    if (bound > 0) {
      svg("line", { class: "bound", x1: x(0), x2: x(steps), y1: y(bound), y2: y(bound) }, this.svg);
      const text = svg("text", { x: Number(x(0)) + 6, y: Number(y(bound)) - 4 }, this.svg);
      text.textContent = `lower bound ${count(bound)}`;
    }
    svg("line", { class: "now", x1: x(step), x2: x(step), y1: EDGES.top, y2: CHART_HEIGHT - EDGES.bottom }, this.svg);
    for (const line of [...lines].sort((a, b) => a.chosen - b.chosen)) {
      const path = line.costs.map((cost, at) => `${at ? "L" : "M"}${x(at)},${y(cost)}`).join("");
      const style = `--colour: ${line.colour}`;
      svg("path", { d: path, style, class: line.chosen ? "chosen" : "" }, this.svg);
      svg("circle", { cx: x(line.at), cy: y(line.costs[line.at]), r: line.chosen ? 5 : 3.5, style }, this.svg);
    }
    this.ends(lines, x, y);
  }

  axes(most, steps, x, y) {
    for (const at of this.logarithmic ? powers(most) : multiples(most)) {
      svg("line", { x1: x(0), x2: x(steps), y1: y(at), y2: y(at) }, this.svg);
      svg("text", { x: EDGES.left - 8, y: Number(y(at)) + 4, "text-anchor": "end" }, this.svg).textContent = count(at);
    }
    const name = svg("text", { x: x(steps / 2), y: CHART_HEIGHT - 4, "text-anchor": "middle" }, this.svg);
    const wide = this.across(steps) > WIDE;
    name.textContent = `${wide ? "vertices " : ""}eliminated${wide && this.logarithmic ? " (costs on a logarithmic scale)" : ""}`;
    svg("text", { x: x(0), y: CHART_HEIGHT - 4 }, this.svg).textContent = "0";
    svg("text", { x: x(steps), y: CHART_HEIGHT - 4, "text-anchor": "end" }, this.svg).textContent = count(steps);
  }

  // Write names at the ends of the lines, without overlaps.
  ends(lines, x, y) {
    let above = -Infinity;
    const byHeight = lines.map((line) => ({ line, at: Number(y(line.costs.at(-1))) + 4 }));
    for (const { line, at } of byHeight.sort((a, b) => a.at - b.at)) {
      above = Math.max(at, above + 14);
      const last = Number(x(line.costs.length - 1));
      const style = `--colour: ${line.colour}`;
      const text = svg("text", { class: "end", x: last + 9, y: above, style }, this.svg);
      text.textContent = `${line.name} ${count(line.costs.at(-1))}`;
    }
  }
}

function powers(most) {
  const found = [0];
  for (let at = 1; at <= most; at *= 10) found.push(at);
  return found;
}

function multiples(most) {
  const nice = 10 ** Math.floor(Math.log10(most));
  const gap = Math.max(1, [0.25, 0.5, 1, 2].map((part) => part * nice).find((each) => most / each <= 5));
  return Array.from({ length: Math.floor(most / gap) + 1 }, (_, at) => at * gap);
}
