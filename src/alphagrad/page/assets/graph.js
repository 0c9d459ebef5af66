// A drawing of the graph in an SVG element, with zoom, pan, hovering, and marks for changes.

const RADIUS = 13;
// With more edges than this, the pointer has to be exactly on an edge, without a margin around it.
const MOST_HITS = 900;
const MOST_LABELS = 70;
const LARGEST_SCALE = 1.5;

function svg(name, attributes = {}, parent = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

// A smooth curve through points from left to right that is horizontal at both ends and never swings beyond its points.
function curve(points) {
  const rise = ([x, y], [across, down]) => (down - y) / (across - x);
  const slopes = points.map((point, at) => {
    if (at === 0 || at === points.length - 1) return 0;
    const before = rise(points[at - 1], point), after = rise(point, points[at + 1]);
    return before * after <= 0 ? 0 : (2 * before * after) / (before + after);
  });
  let path = `M${points[0]}`;
  for (let at = 1; at < points.length; at++) {
    const [x, y] = points[at - 1], [across, down] = points[at], third = (across - x) / 3;
    path += `C${x + third},${y + slopes[at - 1] * third} ${across - third},${down - slopes[at] * third} ${across},${down}`;
  }
  return path;
}

function short(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

class GraphView {
  // `on` holds the callbacks hoverVertex, hoverEdge, leave and pick.
  constructor(host, model, on) {
    Object.assign(this, { model, on, paths: new Map(), nodes: new Map(), labels: new Map() });
    this.svg = svg("svg", { role: "group", "aria-label": `Graph of ${model.title}` }, host);
    const groups = ["ghosts", "edges", "hits", "labels", "vertices"].map((name) => [name, svg("g", { class: name }, this.svg)]);
    this.groups = Object.fromEntries(groups);
    for (const vertex of model.vertices.values()) this.nodes.set(vertex.number, this.drawVertex(vertex));
    this.movable();
    this.fit();
  }

  drawVertex(vertex) {
    const node = svg("g", { class: `vertex ${vertex.kind}`, "data-vertex": vertex.number, role: "button", tabindex: -1 });
    node.setAttribute("transform", `translate(${vertex.x},${vertex.y})`);
    svg("circle", { r: RADIUS }, node);
    if (vertex.kind === "input") {
      svg("text", { x: -RADIUS - 5, y: 3.5, class: "beside" }, node).textContent = short(vertex.name, 8);
    } else {
      svg("text", { y: 3.5 }, node).textContent = vertex.symbol;
      svg("text", { y: 23, class: "below" }, node).textContent = this.below(vertex);
    }
    node.addEventListener("pointerenter", () => this.on.hoverVertex(vertex.number));
    node.addEventListener("pointerleave", () => this.on.leave());
    node.addEventListener("focus", () => this.on.hoverVertex(vertex.number));
    node.addEventListener("blur", () => this.on.leave());
    node.addEventListener("click", () => this.on.pick(vertex.number));
    this.groups.vertices.append(node);
    return node;
  }

  // The number of a vertex, and its name if the symbol inside is not the full name.
  below(vertex) {
    return vertex.symbol === vertex.name ? String(vertex.number) : short(`${vertex.number} ${vertex.name}`, 13);
  }

  pathOf(edge) {
    const from = this.model.vertices.get(edge.source), to = this.model.vertices.get(edge.target);
    const start = [from.x + RADIUS, from.y], end = [to.x - RADIUS, to.y];
    const bends = this.model.bends.get(edge.key);
    if (bends && this.model.original.has(edge.key)) {
      const points = [];
      for (let at = 0; at < bends.length; at += 2) points.push([bends[at], bends[at + 1]]);
      return curve([start, ...points, end]);
    }
    const reach = (end[0] - start[0]) * 0.42;
    return `M${start}C${start[0] + reach},${start[1]} ${end[0] - reach},${end[1]} ${end}`;
  }

  drawEdge(edge) {
    const d = this.pathOf(edge);
    const names = { d, "data-source": edge.source, "data-target": edge.target };
    const path = svg("path", names, this.groups.edges);
    const hit = this.paths.size < MOST_HITS ? svg("path", { d, class: "hit" }, this.groups.hits) : null;
    const pointed = hit ?? path;
    pointed.addEventListener("pointerenter", () => this.on.hoverEdge(edge.key));
    pointed.addEventListener("pointerleave", () => this.on.leave());
    return { path, hit };
  }

  // Show a state. `next` is the vertex to be eliminated next; `prices` are the current costs of vertices, if shown.
  update(state, { next = null, prices = null } = {}) {
    this.state = state;
    const present = new Set();
    for (const edge of state.edges()) {
      present.add(edge.key);
      if (!this.paths.has(edge.key)) this.paths.set(edge.key, this.drawEdge(edge));
      this.styleEdge(this.paths.get(edge.key).path, edge, state.last);
    }
    for (const [key, { path, hit }] of this.paths) {
      if (present.has(key)) continue;
      path.remove();
      hit?.remove();
      this.paths.delete(key);
    }
    const dearest = Math.max(1, ...(prices?.values() ?? []));
    for (const [number, node] of this.nodes) this.styleVertex(number, node, state, next, prices?.get(number), dearest);
    this.updateLabels(state);
  }

  styleEdge(path, edge, last) {
    const fresh = last?.added.has(edge.key), changed = last?.changed.has(edge.key);
    const parts = ["edge"];
    if (edge.known !== null) parts.push("known");
    if (!this.model.original.has(edge.key)) parts.push("fill");
    if (changed) parts.push("changed");
    if (fresh) parts.push("new");
    path.setAttribute("class", parts.join(" "));
    const width = 1.1 + 0.45 * Math.log10(Math.max(1, this.model.stored(edge))) + (fresh || changed ? 0.9 : 0);
    path.setAttribute("stroke-width", width.toFixed(2));
  }

  // Vertices at which a loop is passed, whose body can be opened.
  markLoops(vertices) {
    for (const [number, node] of this.nodes) node.classList.toggle("loop", vertices.includes(number));
  }

  styleVertex(number, node, state, next, price, dearest) {
    const vertex = this.model.vertices.get(number), gone = state.gone.has(number);
    // Eliminated vertices lie below the edges.
    if (gone !== node.classList.contains("gone")) this.groups[gone ? "ghosts" : "vertices"].append(node);
    node.classList.toggle("gone", gone);
    node.classList.toggle("next", number === next);
    node.firstChild.setAttribute("r", gone ? 3 : RADIUS);
    if (vertex.kind !== "input") {
      node.lastChild.textContent = price === undefined ? this.below(vertex) : `costs ${count(price)}`;
    }
    node.style.setProperty("--heat", Math.log1p(price ?? 0) / Math.log1p(dearest));
    const about = gone ? ", eliminated" : price === undefined ? "" : `, costs ${count(price)} now`;
    node.setAttribute("aria-label", `${vertex.kind} ${vertex.number}, ${vertex.name}${about}`);
    if (gone) node.setAttribute("aria-disabled", "true");
    else node.removeAttribute("aria-disabled");
  }

  // Structures beside the edges: of all edges in small graphs of arrays, otherwise of those that the last step changed.
  updateLabels(state) {
    const wanted = new Map();
    const all = !this.model.scalar && this.paths.size <= MOST_LABELS;
    for (const edge of state.edges()) {
      const fresh = state.last?.added.has(edge.key), changed = state.last?.changed.has(edge.key);
      if (all || (!this.model.scalar && (fresh || changed) && state.last.added.size <= MOST_LABELS)) {
        wanted.set(edge.key, { edge, kind: fresh ? "new" : changed ? "changed" : "" });
      }
    }
    for (const [key, label] of this.labels) if (!wanted.has(key)) { label.remove(); this.labels.delete(key); }
    for (const [key, { edge, kind }] of wanted) {
      if (!this.labels.has(key)) this.labels.set(key, this.drawLabel(key));
      const label = this.labels.get(key);
      label.textContent = short(this.model.text(edge), 26);
      label.setAttribute("class", `label ${kind}`);
    }
  }

  drawLabel(key) {
    const { path } = this.paths.get(key);
    const middle = path.getPointAtLength(path.getTotalLength() * 0.5);
    return svg("text", { x: middle.x, y: middle.y - 3 }, this.groups.labels);
  }

  light(edges, vertices = []) {
    for (const [key, { path }] of this.paths) path.classList.toggle("lit", edges.has(key));
    for (const [number, node] of this.nodes) node.classList.toggle("lit", vertices.includes(number));
  }

  hint(vertices) {
    for (const [number, node] of this.nodes) node.classList.toggle("hinted", vertices.includes(number));
  }

  focus(number) {
    for (const [other, node] of this.nodes) node.setAttribute("tabindex", other === number ? 0 : -1);
    this.nodes.get(number)?.focus();
  }

  // The vertex that Tab reaches: the one with the focus, or the first that is not eliminated.
  offerFocus(numbers) {
    if (this.groups.vertices.contains(document.activeElement)) return;
    const offered = numbers.find((number) => !this.state.gone.has(number));
    for (const [number, node] of this.nodes) node.setAttribute("tabindex", number === offered ? 0 : -1);
  }

  // The nearest vertex in a direction among those given.
  towards(number, [right, down], candidates) {
    const from = this.model.vertices.get(number);
    let found = null, nearest = Infinity;
    for (const other of candidates) {
      const to = this.model.vertices.get(other);
      const along = (to.x - from.x) * right + (to.y - from.y) * down;
      const aside = Math.abs((to.x - from.x) * down) + Math.abs((to.y - from.y) * right);
      const distance = along + 2.5 * aside;
      if (along > 1 && distance < nearest) [found, nearest] = [other, distance];
    }
    return found;
  }

  movable() {
    let from = null;
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.004), event.clientX, event.clientY);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY, ...this.box]; });
    this.svg.addEventListener("pointermove", (event) => {
      if (from === null || event.buttons === 0) { from = null; return; }
      const [x, y, left, top] = from;
      // A click with a small movement is still a click.
      if (Math.hypot(event.clientX - x, event.clientY - y) < 4) return;
      this.svg.classList.add("dragging");
      this.box = [left - (event.clientX - x) / this.scale, top - (event.clientY - y) / this.scale, this.box[2], this.box[3]];
      this.show();
    });
    this.svg.addEventListener("pointerup", () => { from = null; this.svg.classList.remove("dragging"); });
    new ResizeObserver(() => this.show()).observe(this.svg);
  }

  // Fit the whole graph, but do not enlarge small graphs too much.
  fit() {
    const { width, height } = this.svg.getBoundingClientRect(), [across, down] = this.model.data.size;
    const least = Math.min(width / across, height / down) / LARGEST_SCALE;
    const [wide, high] = [across, down].map((length) => length * Math.max(1, least));
    this.box = [(across - wide) / 2, (down - high) / 2, wide, high];
    this.show();
  }

  zoom(factor, clientX = null, clientY = null) {
    const { left, top, width, height } = this.svg.getBoundingClientRect();
    const [x, y, across, down] = this.box;
    const ratio = Math.min(Math.max(factor, 0.2), 5);
    // The point under the pointer stays where it is.
    const right = ((clientX ?? left + width / 2) - left - width / 2) / this.scale;
    const below = ((clientY ?? top + height / 2) - top - height / 2) / this.scale;
    const middle = [x + across / 2 + right * (1 - 1 / ratio), y + down / 2 + below * (1 - 1 / ratio)];
    this.box = [middle[0] - across / ratio / 2, middle[1] - down / ratio / 2, across / ratio, down / ratio];
    this.show();
  }

  show() {
    const { width, height } = this.svg.getBoundingClientRect();
    this.scale = Math.min(width / this.box[2], height / this.box[3]) || 1;
    this.svg.setAttribute("viewBox", this.box.join(" "));
    this.svg.classList.toggle("far", this.scale < 0.72);
    this.svg.classList.toggle("farther", this.scale < 0.42);
  }
}
