// The graph of one function, and the effects of eliminations on it. The counts are those of graphax.Plan.

const count = (number) => Number(number).toLocaleString("en-US");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const edgeKey = (target, source) => `${source}→${target}`;

// How the coefficient of a sum follows from those of two known summands.
const ADDS = 1, KEEPS = 2;

class Model {
  // For the body of a loop, `outside` is the graph that contains the loop.
  constructor(data, outside = null) {
    Object.assign(this, { data, outside, title: data.title, orders: data.orders, bound: data.bound });
    this.bodies = data.bodies.map((body) => new Model(body, this));
    this.vertices = new Map(data.vertices.map((vertex) => [vertex.number, vertex]));
    this.intermediates = data.vertices.filter((v) => v.kind === "intermediate").map((v) => v.number);
    this.edges = unpacked(data.edges);
    this.original = new Set(this.edges.map((edge) => edge.key));
    this.bends = new Map(data.bends.map(([target, source, ...points]) => [edgeKey(target, source), points]));
    this.unavailable = data.algebra.unavailable ?? "";
    this.size = data.structures.length;
    this.products = this.table(data.algebra.products);
    this.sums = this.table(data.algebra.sums);
    this.scalar = data.vertices.every((vertex) => vertex.shape.length === 0);
  }

  // The graph, followed by the bodies inside of it.
  get unfolded() {
    return [this, ...this.bodies.flatMap((body) => body.unfolded)];
  }

  table(rows = []) {
    return new Map(rows.map(([left, right, ...entry]) => [left * this.size + right, entry]));
  }

  // The structure of an edge in the notation of graphax.
  text({ structure, known }) {
    const [values, labels] = this.data.structures[structure];
    return (values ?? (typeof known === "number" ? Number(known.toPrecision(6)) : known)) + labels;
  }

  stored({ structure }) {
    return this.data.structures[structure][2];
  }

  // An edge after another one: null if the product is zero everywhere.
  compose(outer, inner) {
    const [structure, factor, multiplications, ifScaled, additions] =
      this.products.get(outer.structure * this.size + inner.structure);
    if (structure < 0) return null;
    const coefficient = (outer.known ?? 1) * (inner.known ?? 1) * factor;
    const free = ifScaled && Math.abs(coefficient) === 1;
    const both = outer.known !== null && inner.known !== null;
    return { structure, known: both ? coefficient : null, multiplications: free ? 0 : multiplications, additions };
  }

  add(left, right) {
    const [equal, different, equalAdditions, differentAdditions, mode] =
      this.sums.get(left.structure * this.size + right.structure);
    const same = left.known === right.known;
    const known = mode === ADDS ? left.known + right.known : mode === KEEPS && same ? left.known : null;
    return { structure: same ? equal : different, known, additions: same ? equalAdditions : differentAdditions };
  }
}

function unpacked(flat) {
  const edges = [];
  for (let at = 0; at < flat.length; at += 4) {
    const [target, source, structure, known] = flat.slice(at, at + 4);
    edges.push({ target, source, structure, known, key: edgeKey(target, source) });
  }
  return edges;
}

// A graph on its way to becoming bipartite.
class Elimination {
  constructor(model) {
    this.model = model;
    this.before = new Map([...model.vertices.keys()].map((number) => [number, new Map()]));
    this.after = new Map([...model.vertices.keys()].map((number) => [number, new Map()]));
    this.gone = new Set();
    this.costs = [0];
    this.additions = 0;
    this.last = null;
    for (const edge of model.edges) this.connect(edge);
  }

  get cost() {
    return this.costs[this.costs.length - 1];
  }

  get steps() {
    return this.gone.size;
  }

  * edges() {
    for (const sources of this.before.values()) yield* sources.values();
  }

  connect(edge) {
    this.before.get(edge.target).set(edge.source, edge);
    this.after.get(edge.source).set(edge.target, edge);
  }

  // One step of a given order, as its plan has it.
  replay([vertex, multiplications, additions, edges]) {
    this.settle(vertex, multiplications, additions, unpacked(edges));
  }

  // What eliminating a vertex now would do; null if the page has no table to find it by.
  outcome(vertex) {
    const { model } = this;
    if (model.unavailable) return null;
    const found = { multiplications: 0, additions: 0, edges: [] };
    for (const outer of this.after.get(vertex).values()) {
      for (const inner of this.before.get(vertex).values()) {
        const product = model.compose(outer, inner);
        if (product === null) continue;
        found.multiplications += product.multiplications;
        found.additions += product.additions;
        const existing = this.before.get(outer.target).get(inner.source);
        const total = existing ? model.add(existing, product) : product;
        if (existing) found.additions += total.additions;
        const { structure, known } = total;
        const key = edgeKey(outer.target, inner.source);
        found.edges.push({ target: outer.target, source: inner.source, structure, known, key });
      }
    }
    return found;
  }

  eliminate(vertex) {
    const { multiplications, additions, edges } = this.outcome(vertex);
    this.settle(vertex, multiplications, additions, edges);
  }

  settle(vertex, multiplications, additions, edges) {
    const last = { vertex, multiplications, additions, added: new Map(), changed: new Map() };
    for (const source of this.before.get(vertex).keys()) this.after.get(source).delete(vertex);
    for (const target of this.after.get(vertex).keys()) this.before.get(target).delete(vertex);
    this.before.set(vertex, new Map());
    this.after.set(vertex, new Map());
    for (const edge of edges) {
      const existing = this.before.get(edge.target).get(edge.source);
      if (existing) last.changed.set(edge.key, [existing, edge]);
      else last.added.set(edge.key, edge);
      this.connect(edge);
    }
    this.gone.add(vertex);
    this.costs.push(this.cost + multiplications);
    this.additions += additions;
    this.last = last;
  }
}

// The state of an order after so many steps; going on from a state that is on the way costs only the steps between.
class Walk {
  constructor(model, order) {
    Object.assign(this, { model, order, state: new Elimination(model) });
  }

  to(step) {
    if (this.state.steps > step) this.state = new Elimination(this.model);
    while (this.state.steps < step) this.state.replay(this.order.steps[this.state.steps]);
    return this.state;
  }
}

// A game: moves of one's own, which can be taken back.
class Game {
  constructor(model) {
    this.model = model;
    this.moves = [];
    this.state = new Elimination(model);
  }

  get over() {
    return this.moves.length === this.model.intermediates.length;
  }

  eliminate(vertex) {
    if (this.state.gone.has(vertex) || this.model.vertices.get(vertex).kind !== "intermediate") return false;
    this.state.eliminate(vertex);
    this.moves.push(vertex);
    return true;
  }

  rewind(moves) {
    this.moves = [];
    this.state = new Elimination(this.model);
    for (const vertex of moves) this.eliminate(vertex);
  }

  prices() {
    const left = this.model.intermediates.filter((vertex) => !this.state.gone.has(vertex));
    return new Map(left.map((vertex) => [vertex, this.state.outcome(vertex).multiplications]));
  }

  cheapest() {
    let found = null;
    for (const [vertex, price] of this.prices()) if (found === null || price < found.price) found = { vertex, price };
    return found;
  }

  // The next vertex of an order, if its first vertices are those eliminated so far: which graph is left depends on the
  // set of vertices alone.
  nextOf(order) {
    const begun = order.steps.slice(0, this.moves.length).every(([vertex]) => this.state.gone.has(vertex));
    return begun && !this.over ? order.steps[this.moves.length][0] : null;
  }
}
