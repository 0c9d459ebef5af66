// The page: the user's choices, and everything that depends on them.

const byId = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
// A whole replay takes about this long, in milliseconds.
const REPLAY_TIME = 14000;
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const KEYS = {
  replay: "← → step · Home End · Space plays · 1–9 choose the order · Tab into the graph, then arrows walk it",
  compare: "← → step · Home End · Space plays · 1–9 choose the order",
  play: "Tab into the graph · arrows walk it · Enter eliminates · H hint · U undo · R restart",
};

class Page {
  constructor(data) {
    this.models = data.targets.flatMap((target) => new Model(target).unfolded);
    this.mode = "replay";
    this.timer = null;
    this.chart = new CostChart(byId("chart"), (step) => { if (this.mode !== "play") this.go(step); });
    document.title = data.title;
    this.wire();
    this.open(0, data.step);
  }

  // ---- views

  open(number, step = 0) {
    this.model = this.models[number];
    this.walks = this.model.orders.map((order) => new Walk(this.model, order));
    this.curves = this.walks.map(({ order }) => running(order.steps.map(([, cost]) => cost)));
    this.colours = this.model.orders.map((_, at) => `var(--order-${at % 9})`);
    this.game = new Game(this.model);
    this.chosen = this.model.orders.length - 1;
    this.steps = this.model.intermediates.length;
    this.step = Math.min(step, this.steps);
    this.heading();
    this.fillTables();
    this.setMode(this.mode);
  }

  heading() {
    const { data } = this.model;
    const kinds = (kind) => data.vertices.filter((vertex) => vertex.kind === kind).length;
    byId("title").textContent = this.model.title;
    byId("targets").value = this.models.indexOf(this.model);
    const parts = [plural(kinds("input"), "input"), `${count(this.steps)} to eliminate`, plural(kinds("output"), "output"),
      plural(this.model.edges.length, "edge"), ...(data.simplified ? ["simplified"] : [])];
    byId("subtitle").textContent = parts.join(" · ");
    byId("slider").max = this.steps;
  }

  fillTables() {
    const parts = [...costsTable(this.model, this.colours), ...timingsTable(this.model)];
    const functions = this.models.filter(({ outside }) => outside === null);
    if (functions.length > 1) parts.push(overview(functions));
    byId("tables").replaceChildren(...parts);
    document.querySelector("main").classList.toggle("wide", functions.length > 1 || this.model.data.timings.length > 0);
  }

  setMode(mode) {
    this.mode = mode;
    this.pause();
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    }
    byId("game").hidden = mode !== "play";
    byId("controls").hidden = mode === "play";
    byId("keys").textContent = KEYS[mode];
    document.body.classList.toggle("playing", mode === "play" && !this.model.unavailable);
    for (const id of ["hint", "undo", "restart"]) byId(id).disabled = Boolean(this.model.unavailable);
    this.say(mode !== "play" ? "" : this.model.unavailable
      ? `Free play is not available for this graph: ${this.model.unavailable}. Replay and compare the orders instead.`
      : "Pick a vertex to eliminate. The redder it is, the more it costs now.");
    this.makePanels();
    this.refresh();
  }

  makePanels() {
    const orders = this.mode === "compare" ? this.walks.map((_, at) => at) : [null];
    const columns = Math.ceil(Math.sqrt(orders.length));
    byId("panels").style.gridTemplate = `repeat(${Math.ceil(orders.length / columns)}, 1fr) / repeat(${columns}, 1fr)`;
    byId("panels").replaceChildren();
    this.panels = orders.map((order) => {
      const host = element("div", "", "panel");
      const header = element("header");
      host.append(header);
      byId("panels").append(host);
      const panel = { order, header };
      panel.view = new GraphView(host, this.model, {
        hoverVertex: (vertex) => this.hover(panel, vertex, null),
        hoverEdge: (key) => this.hover(panel, null, key),
        leave: () => this.hover(panel, null, null),
        pick: (vertex) => this.pick(vertex),
      });
      return panel;
    });
  }

  // ---- drawing

  stateOf(order) {
    return this.walks[order].to(this.step);
  }

  get state() {
    return this.mode === "play" ? this.game.state : this.stateOf(this.chosen);
  }

  // Redraw once after all changes of an event.
  refresh() {
    if (this.waiting) return;
    this.waiting = true;
    queueMicrotask(() => {
      this.waiting = false;
      this.render();
    });
  }

  render() {
    const playing = this.mode === "play";
    for (const panel of this.panels) {
      const order = panel.order ?? this.chosen;
      const state = playing ? this.game.state : this.stateOf(order);
      const next = playing || this.step === this.steps ? null : this.model.orders[order].steps[this.step][0];
      panel.view.update(state, { next, prices: playing && !this.model.unavailable ? this.game.prices() : null });
      panel.view.markLoops(playing ? [] : this.model.orders[order].bodies.map(([vertex]) => vertex));
      panel.view.offerFocus(playing ? this.model.intermediates : [...this.model.vertices.keys()]);
      if (panel.order !== null) {
        panel.header.replaceChildren(swatch(this.colours[order]), element("b", this.model.orders[order].name),
          element("span", count(state.cost), "cost"));
      }
    }
    this.showCounter();
    this.showOrders();
    this.showLoops();
    this.showSteps();
    this.showCurves();
    byId("detail").replaceChildren(...aboutStep(this.model, this.state, playing));
    const order = playing ? this.game.moves : this.model.orders[this.chosen].steps.map(([vertex]) => vertex);
    byId("order-text").textContent = this.model.outside || this.passed.length
      ? orderText(this.model, order, playing ? null : this.model.orders[this.chosen].name)
      : `graphax.jacve(f, order=[${order.join(", ")}])`;
  }

  showCounter() {
    const playing = this.mode === "play";
    const order = this.model.orders[this.chosen];
    byId("counter-name").textContent = playing ? "Your game" : order.name;
    byId("counter-value").textContent = count(this.state.cost);
    byId("counter-total").textContent = playing
      ? `${this.steps - this.game.moves.length} to go` : `of ${count(order.multiplications)}`;
    byId("counter-unit").textContent = `multiplications (${this.model.data.counting}) and ${plural(this.state.additions, "addition")}`;
  }

  showOrders() {
    const at = this.mode === "play" ? this.game.moves.length : this.step;
    const buttons = this.model.orders.map((order, number) => {
      const button = element("button", [
        swatch(this.colours[number]), element("span", order.name, "label-text"), ...(number < 9 ? [element("kbd", String(number + 1))] : []),
        element("span", count(this.curves[number][at]), "now"), element("span", `of ${count(order.multiplications)}`, "total"),
      ]);
      button.type = "button";
      button.style.setProperty("--colour", this.colours[number]);
      button.title = order.found;
      button.setAttribute("aria-pressed", String(this.mode !== "play" && number === this.chosen));
      button.addEventListener("click", () => this.choose(number));
      return button;
    });
    const focused = [...byId("orders").children].indexOf(document.activeElement);
    byId("orders").replaceChildren(...buttons, element("p", aboutBound(this.model), "bound"));
    buttons[focused]?.focus();
  }

  // The loops that the chosen order passes, by vertex and body.
  get passed() {
    return this.model.orders[this.chosen].bodies.map(([vertex, place, way]) => ({ vertex, way, body: this.model.bodies[place] }));
  }

  showLoops() {
    const { outside } = this.model;
    const choices = this.passed.map(({ vertex, way, body }) => [`Open the loop at ${vertex}: ${way}`, () => this.enter(body)]);
    if (outside) choices.unshift([`Back to ${outside.title}`, () => this.leave()]);
    byId("loops").hidden = choices.length === 0;
    byId("loops").replaceChildren(...choices.map(([text, action]) => {
      const button = element("button", text);
      button.type = "button";
      button.addEventListener("click", action);
      return button;
    }));
  }

  showSteps() {
    byId("slider").value = this.step;
    const { last } = this.state;
    const done = this.step === this.steps ? "bipartite" : `next: ${this.model.orders[this.chosen].steps[this.step][0]}`;
    byId("step").textContent = `${count(this.step)} of ${count(this.steps)} eliminated · ${done}`;
    byId("slider").setAttribute("aria-valuetext", `${this.step} of ${this.steps} eliminated, cost so far ${this.state.cost}` +
      (last ? `, last ${last.vertex}` : ""));
  }

  showCurves() {
    const playing = this.mode === "play";
    const at = playing ? this.game.moves.length : this.step;
    const lines = this.model.orders.map(({ name }, number) => ({
      name, colour: this.colours[number], costs: this.curves[number], at, chosen: !playing && number === this.chosen,
    }));
    if (playing) lines.push({ name: "you", colour: "var(--you)", costs: this.game.state.costs, at, chosen: true });
    this.chart.draw(lines, this.steps, at, this.model.bound);
  }

  hover(panel, vertex, key) {
    const state = panel.view.state;
    const around = vertex === null ? [] : [...state.before.get(vertex).values(), ...state.after.get(vertex).values()];
    const edge = key === null ? null : [...state.edges()].find((each) => each.key === key) ?? null;
    panel.view.light(new Set(edge ? [key] : around.map((each) => each.key)), edge ? [edge.source, edge.target] : []);
    const about = vertex !== null ? aboutVertex(this.model, state, vertex)
      : edge ? aboutEdge(this.model, state, edge) : aboutStep(this.model, this.state, this.mode === "play");
    byId("detail").replaceChildren(...about);
  }

  // ---- actions

  go(step) {
    this.step = Math.min(Math.max(step, 0), this.steps);
    this.refresh();
  }

  choose(order) {
    if (order >= this.model.orders.length || this.mode === "play") return;
    this.chosen = order;
    this.refresh();
  }

  // Open a body at the current order of its graph, and remember the step of that graph.
  enter(body) {
    const { name } = this.model.orders[this.chosen];
    this.model.left = { step: this.step, name };
    this.open(this.models.indexOf(body));
    this.follow(name);
  }

  leave() {
    const { outside } = this.model, { step, name } = outside.left ?? { step: 0 };
    this.open(this.models.indexOf(outside), step);
    this.follow(name);
  }

  follow(name) {
    const found = this.model.orders.findIndex((order) => order.name === name);
    if (found >= 0) this.chosen = found;
    this.refresh();
  }

  run() {
    if (this.timer !== null) { this.pause(); return; }
    if (this.step === this.steps) this.go(0);
    byId("run").setAttribute("aria-label", "Pause");
    byId("run").classList.add("running");
    byId("detail").setAttribute("aria-live", "off");
    const pace = Math.min(Math.max(REPLAY_TIME / Math.max(1, this.steps), 40), calm.matches ? 1500 : 700);
    this.timer = setInterval(() => { if (this.step < this.steps) this.go(this.step + 1); else this.pause(); }, pace);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    byId("run").setAttribute("aria-label", "Play");
    byId("run").classList.remove("running");
    byId("detail").setAttribute("aria-live", "polite");
  }

  pick(vertex) {
    const walked = document.activeElement?.closest("svg");
    const loop = this.mode === "play" ? null : this.passed.find((each) => each.vertex === vertex);
    if (loop) this.enter(loop.body);
    if (this.mode !== "play" || this.model.unavailable || !this.game.eliminate(vertex)) return;
    const { last } = this.game.state;
    this.moved(this.game.over ? this.verdict() : `${vertex} is eliminated, for ${count(last.multiplications)}.`);
    const near = this.model.intermediates.filter((other) => !this.game.state.gone.has(other));
    if (walked && near.length) this.panels[0].view.focus(this.closest(vertex, near));
  }

  closest(vertex, candidates) {
    const from = this.model.vertices.get(vertex);
    const distance = (number) => Math.hypot(this.model.vertices.get(number).x - from.x, this.model.vertices.get(number).y - from.y);
    return candidates.reduce((best, other) => (distance(other) < distance(best) ? other : best));
  }

  moved(text) {
    this.panels[0].view.hint([]);
    this.refresh();
    this.say(text);
  }

  verdict() {
    const { cost } = this.game.state;
    const beaten = this.model.orders.filter((order) => order.multiplications > cost).map((order) => order.name);
    const equal = this.model.orders.filter((order) => order.multiplications === cost).map((order) => order.name);
    const praise = cost <= this.model.bound ? " No order is better." : "";
    const better = beaten.length ? ` You beat ${beaten.join(", ")}.` : "";
    return `Done, with ${count(cost)}.${better}${equal.length ? ` As good as ${equal.join(", ")}.` : ""}${praise}`;
  }

  hint() {
    if (this.mode !== "play" || this.model.unavailable || this.game.over) return;
    const cheapest = this.game.cheapest();
    const best = this.model.orders.reduce((a, b) => (b.multiplications < a.multiplications ? b : a));
    const next = this.game.nextOf(best);
    this.panels[0].view.hint([cheapest.vertex, ...(next === null ? [] : [next])]);
    const path = next === null ? `You have left the order “${best.name}”.` : `The order “${best.name}” continues with ${next}.`;
    this.say(`Cheapest now: ${cheapest.vertex}, for ${count(cheapest.price)}. ${path}`);
  }

  undo() {
    if (this.mode !== "play" || this.model.unavailable) return;
    const back = this.game.moves.at(-1);
    this.game.rewind(this.game.moves.slice(0, -1));
    this.moved(back === undefined ? "There is nothing to undo." : `${back} is back.`);
  }

  restart() {
    if (this.mode !== "play" || this.model.unavailable) return;
    this.game.rewind([]);
    this.moved("A new game.");
  }

  say(text) {
    byId("game-says").textContent = text;
  }

  // ---- event handlers

  wire() {
    const click = (id, action) => byId(id).addEventListener("click", action);
    click("first", () => this.go(0));
    click("back", () => this.go(this.step - 1));
    click("run", () => this.run());
    click("forth", () => this.go(this.step + 1));
    click("last", () => this.go(this.steps));
    click("hint", () => this.hint());
    click("undo", () => this.undo());
    click("restart", () => this.restart());
    click("theme", toggleTheme);
    click("zoom-in", () => this.panels.forEach(({ view }) => view.zoom(1.35)));
    click("zoom-out", () => this.panels.forEach(({ view }) => view.zoom(1 / 1.35)));
    click("zoom-fit", () => this.panels.forEach(({ view }) => view.fit()));
    byId("slider").addEventListener("input", (event) => { this.pause(); this.go(Number(event.target.value)); });
    for (const button of document.querySelectorAll("[data-mode]")) {
      button.addEventListener("click", () => this.setMode(button.dataset.mode));
    }
    byId("target-choice").hidden = this.models.length < 2;
    byId("targets").append(...this.models.map((model, at) => new Option(model.title, at)));
    byId("targets").addEventListener("change", (event) => this.open(Number(event.target.value)));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, summary")) return;
    const vertex = event.target.closest?.(".vertex");
    const walking = vertex !== null && vertex !== undefined;
    const handled = walking && this.walk(event, Number(vertex.dataset.vertex)) || this.shortcut(event);
    if (handled) event.preventDefault();
  }

  // Keys on a vertex that has the focus.
  walk({ key }, from) {
    const panel = this.panels.find(({ view }) => view.nodes.get(from) === document.activeElement);
    if (!panel) return false;
    if (key === "Enter" || key === " ") { this.pick(from); return true; }
    if (key === "Escape") { document.activeElement.blur(); return true; }
    if (!(key in ARROWS)) return false;
    const numbers = this.mode === "play" ? this.model.intermediates : [...this.model.vertices.keys()];
    const there = panel.view.towards(from, ARROWS[key], numbers.filter((number) => !panel.view.state.gone.has(number)));
    if (there !== null) panel.view.focus(there);
    return true;
  }

  shortcut({ key, target }) {
    if (this.mode === "play") {
      const action = { h: this.hint, u: this.undo, r: this.restart }[key.toLowerCase()];
      action?.call(this);
      return Boolean(action);
    }
    if (key === " ") {
      if (target.closest("button")) return false;
      this.run();
      return true;
    }
    if (/^[1-9]$/.test(key)) { this.choose(Number(key) - 1); return true; }
    const step = { ArrowRight: this.step + 1, ArrowLeft: this.step - 1, Home: 0, End: this.steps }[key];
    if (step === undefined) return false;
    this.pause();
    this.go(step);
    return true;
  }
}

// An order with the orders of the bodies that it passes, as Python source.
function orderText(model, vertices, name) {
  const order = model.orders.find((each) => each.name === name);
  const inside = (order?.bodies ?? []).map(([vertex, place]) => {
    const body = model.bodies[place], steps = body.orders.find((each) => each.name === name).steps;
    return `${vertex}: ${orderText(body, steps.map(([number]) => number), name)}`;
  });
  const text = `graphax.Order([${vertices.join(", ")}]${inside.length ? `, bodies={${inside.join(", ")}}` : ""})`;
  return model.outside ? text : `graphax.jacve(f, order=${text})`;
}

function running(costs) {
  const sums = [0];
  for (const cost of costs) sums.push(sums[sums.length - 1] + cost);
  return sums;
}

const THEME = "alphagrad-theme";

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem(THEME, root.dataset.theme); } catch { /* Without storage, the page does not remember the theme. */ }
}

function rememberedTheme() {
  try { return localStorage.getItem(THEME); } catch { return null; }
}

const remembered = rememberedTheme();
if (remembered) document.documentElement.dataset.theme = remembered;
new Page(JSON.parse(byId("data").textContent));
