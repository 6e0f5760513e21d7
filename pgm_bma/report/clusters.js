// Clusters to explore: a click on a cluster sorts the columns by what marks it; a second one is compared with it.
explorers.clusters = (root, data) => {
  const MOST = 25;  // columns shown before "all" is asked for
  let first = 0, second = -1, all = false;  // second -1: all rows together
  const name = k => (k < 0 ? "all rows" : `cluster ${data.names[k]}`);
  const colour = k => (k < 0 ? "#55606a" : COLOURS[k % COLOURS.length]);
  const profile = (item, k) => (k < 0 ? item.overall : item.p[k]);
  const chips = data.names.map((label, k) => button(`${label} (${Math.round(100 * data.sizes[k])} %)`, () => { first = k; if (second === k) second = -1; show(); },
    { class: "chip", style: `border-color: ${colour(k)}`, "aria-pressed": "false" }));
  const against = el("select", { "aria-label": "compare with", change: () => { second = Number(against.value); show(); } });
  const said = el("p", { class: "caption", "aria-live": "polite" });
  const list = el("ol", { class: "items" });
  const more = button("", () => { all = !all; show(); }, { class: "more" });
  root.append(el("div", { class: "tools" }, el("span", {}, "Cluster"), chips, el("label", {}, "compared with ", against)), said, list, more);

  /* What marks the one against the other: sum over states of (p - q) log(p / q), which is large where both differ. */
  function apart(item) {
    const p = profile(item, first), q = profile(item, second), tiny = 1e-4;
    return p.reduce((sum, x, s) => sum + (x - q[s]) * Math.log((x + tiny) / (q[s] + tiny)), 0);
  }

  function show() {
    chips.forEach((chip, k) => chip.setAttribute("aria-pressed", String(k === first)));
    against.replaceChildren(...[-1, ...data.names.keys()].filter(k => k !== first)
      .map(k => el("option", { value: k, selected: k === second ? "" : null }, name(k))));
    const items = data.items.map(item => ({ item, apart: apart(item) })).sort((a, b) => b.apart - a.apart);
    const shown = all ? items : items.slice(0, MOST);
    said.textContent = `Columns sorted by how far ${name(first)} differs from ${name(second)}. ` +
      `Full bars: ${name(first)}. Lines: ${name(second)}.`;
    list.replaceChildren(...shown.map(({ item }) => el("li", { class: "item" }, el("h4", {}, item.name),
      el("ul", { class: "bars" }, order(item).map(s => {
        const p = profile(item, first)[s], q = profile(item, second)[s];
        return el("li", { title: `${item.states[s]}: ${share(p)} in ${name(first)}, ${share(q)} in ${name(second)}` },
          el("span", { class: "bar", style: `width: ${(100 * p).toFixed(1)}%; background: ${colour(first)}55` }),
          el("span", { class: "mark", style: `left: ${(100 * q).toFixed(1)}%; background: ${colour(second)}` }),
          el("span", { class: "what" }, item.states[s]), el("span", { class: "number" }, `${share(p)} \u00b7 ${share(q)}`));
      })))));
    more.hidden = items.length <= MOST;
    more.textContent = all ? `Only the first ${MOST}` : `All ${items.length} columns`;
  }

  /* States as they come; of very many only those that differ most. */
  function order(item) {
    const p = profile(item, first), q = profile(item, second), states = [...item.states.keys()];
    return states.length <= 8 ? states : states.sort((a, b) => Math.abs(p[b] - q[b]) - Math.abs(p[a] - q[a])).slice(0, 8);
  }

  show();
};
