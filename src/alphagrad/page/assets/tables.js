// Costs, bounds and timings in tables.

function tableOf(caption, names, rows) {
  const table = document.createElement("table");
  if (caption) table.createCaption().textContent = caption;
  const head = table.createTHead().insertRow();
  for (const name of names) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const { cells, best } of rows) {
    const row = body.insertRow();
    row.classList.toggle("best", Boolean(best));
    for (const content of cells) {
      const cell = row.insertCell();
      cell.append(...[content].flat());
      cell.classList.toggle("left", content instanceof HTMLElement);
    }
  }
  return table;
}

function block(...parts) {
  const made = document.createElement("div");
  made.append(...parts);
  return made;
}

function swatch(colour) {
  const dot = document.createElement("span");
  dot.className = "swatch";
  dot.style.setProperty("--colour", colour);
  return dot;
}

function note(text) {
  const line = document.createElement("p");
  line.className = "note";
  line.textContent = text;
  return line;
}

function costsTable(model, colours) {
  const least = Math.min(...model.orders.map((order) => order.multiplications));
  const rows = model.orders.map((order, number) => ({
    best: order.multiplications === least,
    cells: [
      [swatch(colours[number]), order.name], count(order.multiplications), count(order.additions), count(order.peak),
      gap(order.multiplications, model.bound),
    ],
  }));
  return [block(
    tableOf("", ["order", "mul", "add", "peak", "of bound"], rows),
    note(`Multiplications are counted ${model.data.counting}; peak is the largest number of values that edges hold at any time. ${aboutBound(model)}`),
  )];
}

// What is proven about all orders, and how it was proven.
function aboutBound(model) {
  const least = Math.min(...model.orders.map((order) => order.multiplications));
  const how = model.data.searched ? "a search" : "cuts through the graph";
  const proven = `Proven by ${how}: every order takes at least ${plural(model.bound, "multiplication")}`;
  if (least <= model.bound) return `${proven}, so ${count(least)} is optimal.`;
  return `${proven}. An order that is up to ${percent(1 - model.bound / least)} cheaper than the best one here is not ruled out.`;
}

function percent(fraction) {
  return `${(100 * fraction).toFixed(fraction < 0.1 ? 1 : 0)} %`;
}

function gap(cost, bound) {
  if (cost <= bound) return "optimal";
  const ratio = cost / bound;
  return bound > 0 ? `${ratio < 100 ? ratio.toFixed(ratio < 10 ? 2 : 1) : count(Math.round(ratio))}×` : "";
}

// All functions of a report, one line each.
function overview(models) {
  const names = [...new Set(models.flatMap((model) => model.orders.map((order) => order.name)))];
  const rows = models.map((model) => {
    const costs = new Map(model.orders.map((order) => [order.name, order.multiplications]));
    const cells = names.map((name) => (costs.has(name) ? count(costs.get(name)) : ""));
    return { cells: [model.title, count(model.intermediates.length), ...cells, count(model.bound)] };
  });
  const caption = `Multiplications, ${models[0].data.counting}`;
  return block(tableOf(caption, ["function", "vertices", ...names, "lower bound"], rows));
}

function timingsTable(model) {
  const rows = model.data.timings;
  if (!rows.length) return [];
  const batches = [...new Set(rows.map((row) => row.batch))];
  return batches.map((batch) => {
    const group = rows.filter((row) => row.batch === batch);
    const slowest = Math.max(...group.map((row) => row.median));
    const cells = group.map((row) => {
      const bar = document.createElement("span");
      bar.className = "bar";
      bar.style.width = `${(90 * row.median) / slowest}px`;
      return { cells: [row.contender, (1e3 * row.median).toPrecision(3), bar, range(row)] };
    });
    return block(tableOf(`Time for a batch of ${count(batch)}`, ["", "median, ms", "", "95 % within"], cells));
  });
}

function range({ low, high }) {
  return `${(1e3 * low).toPrecision(3)} … ${(1e3 * high).toPrecision(3)}`;
}
