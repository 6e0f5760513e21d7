// A graph to explore: a slider over the arcs, search, drag, zoom, and what is known of a node when it is clicked.
explorers.graph = (root, data) => {
  const MOST = 1500;  // arcs drawn at once
  const READABLE = 0.62;  // of the size in print: below it names are too small
  const nodes = data.nodes.map(([name, label, x, y, w, h, mark, note], i) =>
    ({ i, name, label, x, y, w, h, mark, note, placed: x !== null }));
  const arcs = data.arcs.map(([t, h, value, strength, points]) => ({ t, h, value, strength, points, size: Math.abs(value) }));
  arcs.sort((a, b) => b.size - a.size);
  const turned = new Map(arcs.map(arc => [`${arc.t} ${arc.h}`, arc]));
  const largest = arcs.length ? arcs[0].size : 1;
  const scaled = arc => (data.measure === "posterior" ? arc.size : arc.size / largest);
  const arrow = data.directed ? " \u2192 " : " \u2013 ";
  let shown = [], chosen = null, view = { x: 0, y: 0, k: 1 };

  // ------------------------------------------------------------------------------------------ the parts of the page
  const found = el("span", { class: "found" });
  const search = el("input", { type: "search", placeholder: "find a name", "aria-label": "find a name", input: () => find(false),
    keydown: event => { if (event.key === "Enter") find(true); } });
  const counts = el("output", { class: "counts" });
  const slider = el("input", { type: "range", min: data.least, max: data.format === "share" ? 1 : largest, step: data.step, value: data.start,
    "aria-label": `show arcs from this ${data.measure} on`, input: () => update() });
  const tools = el("div", { class: "tools" }, el("label", {}, "Find ", search), found,
    data.sliding ? el("label", { class: "slide" }, `${data.slider} `, slider) : null, counts,
    el("span", { class: "zooms" }, button("+", () => zoom(1.3), { "aria-label": "zoom in" }),
      button("\u2212", () => zoom(1 / 1.3), { "aria-label": "zoom out" }), button("All", () => fit(0), { "aria-label": "show all" })));
  const heads = `head-${root.id}`;
  const ending = on => "url" + `(#${heads}${on ? "-on" : ""})`;  // written apart: a page that fetches nothing has no address
  const marker = (id, colour) => el("svg:marker", { id, viewBox: "0 0 10 10", refX: 9.5, refY: 5, markerWidth: 9, markerHeight: 9,
    markerUnits: "userSpaceOnUse", orient: "auto" }, el("svg:path", { d: "M0 1 L10 5 L0 9 Z", fill: colour }));
  const lines = el("svg:g", {}), boxes = el("svg:g", {}), world = el("svg:g", {}, lines, boxes);
  const svg = el("svg:svg", { role: "group", "aria-label": `${data.title}: nodes by arrow keys, Enter opens one` },
    el("svg:defs", {}, marker(heads, "#222222"), marker(heads + "-on", "#0072B2")), world);
  const tip = el("div", { class: "tip", hidden: "" });
  const panel = el("aside", { class: "panel", "aria-live": "polite" });
  const stage = el("div", { class: "stage" }, svg, tip);
  const looseList = el("div", { class: "names" }), looseHead = el("summary", {});
  const loose = el("details", { class: "loose" }, looseHead, looseList);
  root.append(tools, el("div", { class: "view" }, stage, panel), loose);

  // ---------------------------------------------------------------------------------------------------- drawing
  for (const node of nodes) {
    if (!node.placed) continue;
    const two = node.label.split("\n");
    const text = el("svg:text", {}, two.map((part, k) => el("svg:tspan", { x: 0, dy: k ? 14 : -7 * (two.length - 1) + 4 }, part)));
    node.g = el("svg:g", { class: `node mark${node.mark}`, tabindex: -1, role: "button", "aria-label": node.name.replace("\n", " "),
      "data-node": node.i },
      el("svg:rect", { x: -node.w / 2, y: -node.h / 2, width: node.w, height: node.h, rx: 6 }), text);
    boxes.append(node.g);
    place(node);
  }

  function place(node) { node.g.setAttribute("transform", `translate(${node.x} ${node.y})`); }

  function border(node, x, y) {
    const dx = x - node.x, dy = y - node.y, reach = Math.max(Math.abs(dx) / (node.w / 2), Math.abs(dy) / (node.h / 2)) || 1;
    return [node.x + dx / reach, node.y + dy / reach];
  }

  /* The way of an arc: as laid out, else a bow from border to border, so that there and back do not hide each other. */
  function path(arc) {
    const a = nodes[arc.t], b = nodes[arc.h];
    if (arc.points && !a.moved && !b.moved) {
      const p = arc.points;
      let d = `M${p[0]} ${p[1]}`;
      for (let i = 2; i < p.length - 2; i += 2) {
        const x = (p[i] + p[i + 2]) / 2, y = (p[i + 1] + p[i + 3]) / 2;
        d += i + 4 >= p.length ? ` Q${p[i]} ${p[i + 1]} ${p[i + 2]} ${p[i + 3]}` : ` Q${p[i]} ${p[i + 1]} ${x} ${y}`;
      }
      return p.length === 4 ? `${d} L${p[2]} ${p[3]}` : d;
    }
    const bow = data.directed ? 0.12 : 0.04;
    const cx = (a.x + b.x) / 2 - (b.y - a.y) * bow, cy = (a.y + b.y) / 2 + (b.x - a.x) * bow;
    const [x0, y0] = border(a, cx, cy), [x1, y1] = border(b, cx, cy);
    return `M${x0} ${y0} Q${cx} ${cy} ${x1} ${y1}`;
  }

  function draw(arc) {
    if (!arc.g) {
      const negative = arc.value < 0;
      arc.line = el("svg:path", { class: `line${negative ? " negative" : ""}`, "stroke-width": 0.6 + 2.8 * scaled(arc),
        "marker-end": data.directed ? ending(false) : null });
      const name = `${nodes[arc.t].name}${arrow}${nodes[arc.h].name}`;
      arc.touch = el("svg:path", { class: "touch" });
      arc.g = el("svg:g", { class: "arc off", "data-arc": name, pointerenter: event => hint(event, arc), pointerleave: unhint,
        pointerdown: event => hint(event, arc) }, arc.line, arc.touch);
      lines.append(arc.g);
      arc.g.getBoundingClientRect();  // so that it fades in
    }
    const d = path(arc);
    arc.line.setAttribute("d", d);
    arc.touch.setAttribute("d", d);
  }

  // ------------------------------------------------------------------------------------------- what is shown now
  function update() {
    const least = data.sliding ? Number(slider.value) : -Infinity;
    const wanted = arcs.filter(arc => arc.size >= least - 1e-9 && nodes[arc.t].placed && nodes[arc.h].placed);
    const before = new Set(shown);
    shown = wanted.slice(0, MOST);
    const now = new Set(shown);
    for (const arc of before) if (!now.has(arc)) arc.g.classList.add("off");
    for (const arc of shown) { draw(arc); arc.g.classList.remove("off"); }
    const linked = new Set(shown.flatMap(arc => [arc.t, arc.h]));
    const alone = nodes.filter(node => !linked.has(node.i) && !node.mark);
    const hide = alone.length > 3 && alone.length < nodes.length;
    for (const node of nodes) if (node.g) node.g.classList.toggle("off", hide && !linked.has(node.i) && !node.mark);
    const what = data.directed ? "arc" : data.measure ? "edge" : "line";
    counts.textContent = `${data.sliding ? `\u2265 ${data.format === "share" ? least.toFixed(2) : least.toPrecision(2)}: ` : ""}` +
      `${plural(shown.length, what)}${wanted.length > MOST ? ` (the strongest of ${wanted.length})` : ""}, ` +
      `${nodes.length - alone.length} of ${plural(nodes.length, "node")} connected`;
    looseHead.textContent = `${alone.length} without ${data.directed ? "an arc" : "an edge"}`;
    loose.hidden = !alone.length;
    looseList.replaceChildren(...alone.map(node => button(node.name, () => choose(node), { class: "name" })));
    if (chosen) choose(chosen, true);
    find(false);
  }

  function hint(event, arc) {
    const a = nodes[arc.t].name, b = nodes[arc.h].name, back = turned.get(`${arc.h} ${arc.t}`);
    const said = [el("strong", {}, `${a}${arrow}${b}`)];
    if (data.measure) said.push(`${data.measure} ${data.format === "share" ? share(arc.value) : signed(arc.value)}`);
    if (data.directed && data.measure === "posterior") {
      said.push(`${b} \u2192 ${a}: ${share(back ? back.value : 0)}`);
      said.push(`connected at all: ${share(Math.min(1, arc.value + (back ? back.value : 0)))}`);
    }
    if (arc.strength !== null && arc.strength !== undefined) said.push(`strength in the data: ${arc.strength.toFixed(3)} nats`);
    tip.replaceChildren(...said.map(part => el("div", {}, part)));
    const box = stage.getBoundingClientRect();
    tip.hidden = false;
    tip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.min(event.clientY - box.top + 12, box.height - tip.offsetHeight - 4)}px`;
  }

  function unhint() { tip.hidden = true; }

  function find(go) {
    const text = search.value.trim().toLowerCase();
    const hits = text ? nodes.filter(node => node.name.toLowerCase().includes(text)) : [];
    root.classList.toggle("finding", text !== "");
    for (const node of nodes) if (node.g) node.g.classList.toggle("hit", hits.includes(node));
    for (const name of looseList.children) name.classList.toggle("hit", text !== "" && name.textContent.toLowerCase().includes(text));
    found.textContent = text ? `${hits.length} found` : "";
    if (go && hits.length) choose(hits.find(node => node.name.toLowerCase() === text) || hits[0], false, true);
  }

  // ------------------------------------------------------------------------------------------- one node, opened
  function choose(node, again, centred) {
    chosen = node;
    const parents = shown.filter(arc => arc.h === node.i), children = shown.filter(arc => arc.t === node.i);
    const below = new Set(children.map(arc => arc.h));
    const others = new Set(data.directed ? shown.filter(arc => below.has(arc.h) && arc.t !== node.i).map(arc => arc.t) : []);
    const near = new Set([node.i, ...parents.map(arc => arc.t), ...below, ...others]);
    root.classList.add("chosen");
    for (const each of nodes) if (each.g) {
      each.g.classList.toggle("near", near.has(each.i));
      each.g.classList.toggle("self", each === node);
    }
    for (const arc of shown) {
      const own = arc.t === node.i || arc.h === node.i;
      arc.g.classList.toggle("near", own);
      if (data.directed) arc.line.setAttribute("marker-end", ending(own));
    }
    if (node.g && !again) focusOn(node, centred || node.g.classList.contains("off"));
    panel.replaceChildren(el("div", { class: "panel-head" }, el("h3", {}, node.name.replace("\n", " ")),
      button("\u00d7", () => close(), { "aria-label": "close", class: "close" })));
    if (node.note) panel.append(el("p", { class: "caption" }, node.note));
    const byValue = list => list.slice().sort((a, b) => b.arc.size - a.arc.size);
    const listing = (title, list) => list.length && panel.append(el("h4", {}, title), el("ul", { class: "near-list" }, list.map(entry =>
      el("li", {}, button(nodes[entry.i].name.replace("\n", " "), () => choose(nodes[entry.i]), { class: "name" }),
        entry.arc && data.measure ? ` ${data.format === "share" ? share(entry.arc.value) : signed(entry.arc.value)}` : ""))));
    if (data.directed) {
      listing("Parents", byValue(parents.map(arc => ({ i: arc.t, arc }))));
      listing("Children", byValue(children.map(arc => ({ i: arc.h, arc }))));
      const rest = [...others].filter(i => !parents.some(arc => arc.t === i) && !below.has(i));
      listing("Other parents of its children", rest.map(i => ({ i })));
      if (near.size > 1) panel.append(el("p", { class: "caption" }, `Blanket: ${near.size - 1} of ${nodes.length - 1} nodes; ` +
        "given these, the others say nothing more about it (for the arcs shown)."));
    } else {
      listing(data.links || "Joined with", byValue([...parents.map(arc => ({ i: arc.t, arc })), ...children.map(arc => ({ i: arc.h, arc }))]));
    }
    const detail = data.details[node.i];
    if (detail) panel.append(...details(node, detail));
  }

  function details(node, detail) {
    const parts = [];
    if (detail.p) {
      const given = detail.given.length;
      const head = [...detail.given, ...detail.states, ...(detail.n ? ["rows"] : [])];
      const rows = detail.p.map((line, r) => el("tr", {}, given ? detail.at[r].map(text => el("td", {}, text)) : null,
        line.map(p => el("td", { class: "number", style: `background: rgba(86,180,233,${(0.75 * p).toFixed(2)})` }, share(p))),
        detail.n ? el("td", { class: "number rows" }, String(detail.n[r])) : null));
      parts.push(el("h4", {}, detail.title), el("div", { class: "wide", tabindex: 0 }, el("table", {},
        el("thead", {}, el("tr", {}, head.map((text, c) => el("th", { scope: "col", class: c < given ? null : "number" }, text)))),
        el("tbody", {}, rows))));
      if (detail.cut) parts.push(el("p", { class: "caption" }, detail.cut));
    }
    if (detail.counts) {
      const total = detail.counts.reduce((sum, count) => sum + count[1], 0) || 1;
      parts.push(el("h4", {}, "Rows of the data"), el("ul", { class: "bars" }, detail.counts.map(([state, count]) => el("li", {},
        el("span", { class: "bar", style: `width: ${(100 * count / total).toFixed(1)}%` }), el("span", { class: "what" }, state),
        el("span", { class: "number" }, String(count))))));
      if (detail.missing) parts.push(el("p", { class: "caption" }, `${plural(detail.missing, "row")} without a value.`));
    }
    return parts;
  }

  function close() {
    chosen = null;
    root.classList.remove("chosen");
    for (const arc of shown) if (data.directed) arc.line.setAttribute("marker-end", ending(false));
    idle();
  }

  function idle() {
    panel.replaceChildren(el("p", { class: "caption" }, data.hint));
  }

  // --------------------------------------------------------------------------- looking closer, moving, the keyboard
  function look() { world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`); }

  function zoom(factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) {
    const k = Math.min(4, Math.max(0.05, view.k * factor));
    view = { k, x: x - (x - view.x) * k / view.k, y: y - (y - view.y) * k / view.k };
    look();
  }

  /* The whole graph; but never, at first, with names too small to read: then its busiest node is in the middle. */
  function fit(least) {
    const width = svg.clientWidth, height = svg.clientHeight;
    const whole = Math.min(width / data.width, height / data.height, 1.25);
    const k = Math.max(whole, least);
    const busy = new Map();
    for (const arc of shown) for (const i of [arc.t, arc.h]) busy.set(i, (busy.get(i) || 0) + 1);
    const centre = nodes.filter(node => node.placed).sort((a, b) => (busy.get(b.i) || 0) - (busy.get(a.i) || 0))[0];
    const along = (size, room, c) => (size * k <= room ? (room - size * k) / 2
      : Math.min(0, Math.max(room - size * k, room / 2 - c * k)));
    view = { k, x: along(data.width, width, centre ? centre.x : 0), y: along(data.height, height, centre ? centre.y : 0) };
    look();
  }

  function focusOn(node, centred) {
    for (const other of nodes) if (other.g) other.g.setAttribute("tabindex", other === node ? 0 : -1);
    const x = node.x * view.k + view.x, y = node.y * view.k + view.y;
    if (centred || x < 0 || y < 0 || x > svg.clientWidth || y > svg.clientHeight) {
      if (centred && view.k < READABLE) view.k = READABLE;
      view.x = svg.clientWidth / 2 - node.x * view.k;
      view.y = svg.clientHeight / 2 - node.y * view.k;
      look();
    }
  }

  const held = new Map();
  let grip = null;
  svg.addEventListener("pointerdown", event => {
    held.set(event.pointerId, event);
    const at = event.target.closest(".node");
    grip = { node: at ? nodes[at.dataset.node] : null, x: event.clientX, y: event.clientY, moved: false };
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", event => {
    if (!held.has(event.pointerId) || !grip) return;
    const before = held.get(event.pointerId), dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    if (held.size === 2) {
      const other = [...held.values()].find(each => each.pointerId !== event.pointerId);
      const apart = each => Math.hypot(each.clientX - other.clientX, each.clientY - other.clientY) || 1;
      const box = svg.getBoundingClientRect();
      zoom(apart(event) / apart(before), (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
      grip.moved = true;
    } else if (grip.moved || Math.hypot(event.clientX - grip.x, event.clientY - grip.y) > 4) {
      grip.moved = true;
      unhint();
      if (grip.node) {
        grip.node.x += dx / view.k;
        grip.node.y += dy / view.k;
        grip.node.moved = true;
        place(grip.node);
        for (const arc of shown) if (arc.t === grip.node.i || arc.h === grip.node.i) draw(arc);
      } else {
        view.x += dx;
        view.y += dy;
        look();
      }
    } else return;
    held.set(event.pointerId, event);
  });
  const release = event => {
    if (held.delete(event.pointerId) && grip && !grip.moved && event.type === "pointerup" && grip.node) {
      choose(grip.node);
      grip.node.g.focus({ preventScroll: true });
    }
    if (!held.size) grip = null;
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("wheel", event => {
    if (!event.ctrlKey && !stage.contains(document.activeElement)) return;  // a page that scrolls goes on scrolling
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  svg.addEventListener("keydown", event => {
    const at = event.target.closest(".node"), node = at && nodes[at.dataset.node];
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way && node) {
      let best = null, least = Infinity;
      for (const other of nodes) {
        if (!other.g || other === node || other.g.classList.contains("off")) continue;
        const ahead = (other.x - node.x) * way[0] + (other.y - node.y) * way[1];
        const aside = Math.abs((other.x - node.x) * way[1]) + Math.abs((other.y - node.y) * way[0]);
        if (ahead > 1 && ahead + 2 * aside < least) { least = ahead + 2 * aside; best = other; }
      }
      if (best) { focusOn(best); best.g.focus({ preventScroll: true }); }
    } else if ((event.key === "Enter" || event.key === " ") && node) choose(node);
    else if (event.key === "Escape") close();
    else if (event.key === "+") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else return;
    event.preventDefault();
  });

  root.classList.toggle("large", nodes.length > 40);
  const height = Math.min(Math.max(data.height * 1.1, 260), innerHeight * 0.75);
  stage.style.height = `${height}px`;
  idle();
  update();
  const first = nodes.find(node => node.g && !node.g.classList.contains("off"));
  if (first) first.g.setAttribute("tabindex", 0);
  root.classList.add("awake");
  fit(READABLE);
};
