// Texts about a step, a vertex or an edge, as elements.

const MOST_LISTED = 14;

function element(name, content = "", className = "") {
  const made = document.createElement(name);
  made.append(...[content].flat());
  if (className) made.className = className;
  return made;
}

function shapeText(shape) {
  return shape.length ? shape.join("×") : "a single number";
}

function edgeList(model, rows) {
  const list = element("ul");
  for (const { edge, kind, was } of rows.slice(0, MOST_LISTED)) {
    const structure = was ? `${model.text(was)} ⇒ ${model.text(edge)}` : model.text(edge);
    const same = was && model.text(was) === model.text(edge);
    const parts = [element("span", `${vertexName(model, edge.source)} → ${vertexName(model, edge.target)}`, kind)];
    list.append(element("li", [...parts, element("code", same ? model.text(edge) : structure)]));
  }
  if (rows.length > MOST_LISTED) list.append(element("li", `and ${rows.length - MOST_LISTED} more`));
  return list;
}

function vertexName(model, number) {
  const vertex = model.vertices.get(number);
  return vertex.kind === "input" ? vertex.name : String(number);
}

function aboutVertex(model, state, number) {
  const vertex = model.vertices.get(number);
  const title = vertex.kind === "input" ? `Input ${vertex.name}` : `${number} · ${vertex.name}`;
  const parts = [element("h3", title)];
  const role = vertex.kind === "output" ? "output, " : "";
  parts.push(element("p", `${role}${shapeText(vertex.shape)}${vertex.where ? `, ${vertex.where}` : ""}`, "where"));
  if (vertex.code) parts.push(element("pre", vertex.code));
  if (state.gone.has(number)) return [...parts, element("p", "Eliminated.")];
  const before = [...state.before.get(number).values()], after = [...state.after.get(number).values()];
  if (vertex.kind === "intermediate") {
    const outcome = state.outcome(number);
    const price = outcome ? `: ${plural(outcome.multiplications, "multiplication")}, ${plural(outcome.additions, "addition")}` : "";
    parts.push(element("p", `Eliminating it now joins ${before.length} × ${after.length} edges${price}.`));
  }
  return [...parts, edgeList(model, [...before, ...after].map((edge) => ({ edge, kind: "" })))];
}

function aboutEdge(model, state, edge) {
  const { last } = state;
  const story = last?.added.has(edge.key) ? "Added by the last step." : last?.changed.has(edge.key)
    ? "Changed by the last step." : model.original.has(edge.key) ? "" : "Fill-in: not in the graph at first.";
  const held = model.stored(edge);
  return [
    element("h3", `${vertexName(model, edge.source)} → ${vertexName(model, edge.target)}`),
    element("p", element("code", model.text(edge))),
    element("p", edge.known !== null ? "A number known in advance: nothing is stored." : `Holds ${plural(held, "number")}.`, "where"),
    element("p", story),
  ];
}

function aboutStep(model, state, playing) {
  const { last } = state;
  if (last === null) {
    const begin = playing ? "Pick the first vertex." : "Move the slider, or press → to eliminate the first vertex.";
    const text = `${begin} Point at a vertex or an edge to read about it.`;
    return [element("h3", "The graph as traced"), element("p", text, "where")];
  }
  const vertex = model.vertices.get(last.vertex);
  const rows = [
    ...[...last.added.values()].map((edge) => ({ edge, kind: "new" })),
    ...[...last.changed.values()].map(([was, edge]) => ({ edge, was, kind: "changed" })),
  ];
  const done = state.steps === model.intermediates.length
    ? [element("p", "Only edges from inputs to outputs are left: they are the Jacobian.")] : [];
  return [
    element("h3", `Eliminated ${last.vertex} · ${vertex.name}`),
    element("p", `${plural(last.multiplications, "multiplication")}, ${plural(last.additions, "addition")}; ` +
      `${plural(last.added.size, "new edge")}, ${last.changed.size} changed`, "where"),
    ...done,
    edgeList(model, rows),
  ];
}
