// Predictions to explore: one row of the data, and how each column speaks for one class against another.
explorers.rows = (root, data) => {
  const MOST = 20;
  let at = 0, all = false;
  const pick = el("select", { "aria-label": "row", change: () => { at = Number(pick.value); pair(); show(); } },
    data.rows.map((row, i) => el("option", { value: i }, row.label)));
  const classes = () => data.classes.map((name, c) => el("option", { value: c }, name));
  const plus = el("select", { "aria-label": "for", change: () => show() }, classes());
  const minus = el("select", { "aria-label": "against", change: () => show() }, classes());
  const said = el("p", { "aria-live": "polite" });
  const list = el("ul", { class: "terms" });
  const more = button("", () => { all = !all; show(); }, { class: "more" });
  const step = by => { at = (at + by + data.rows.length) % data.rows.length; pick.value = at; pair(); show(); };
  root.append(el("div", { class: "tools" }, button("\u2039", () => step(-1), { "aria-label": "row before" }), el("label", {}, "Row ", pick),
    button("\u203a", () => step(1), { "aria-label": "next row" }), el("label", {}, "for ", plus), el("label", {}, "against ", minus)),
    said, list, more);

  /* The predicted class against the true one where they differ, else against the next best. */
  function pair() {
    const row = data.rows[at], ranked = [...row.p.keys()].sort((a, b) => row.p[b] - row.p[a]);
    plus.value = ranked[0];
    minus.value = row.truth !== null && row.truth !== ranked[0] ? row.truth : ranked[1];
  }

  function show() {
    const row = data.rows[at], a = Number(plus.value), b = Number(minus.value), n = data.classes.length;
    const terms = data.terms.map((term, t) => ({ term, value: row.values[t], odds: a === b ? 0 : odds(row.e[t * n + a], row.e[t * n + b]) }));
    const total = terms.reduce((sum, term) => sum + term.odds, 0);
    terms.sort((x, y) => Math.abs(y.odds) - Math.abs(x.odds));
    const shown = all ? terms : terms.slice(0, MOST);
    const longest = Math.max(...terms.map(term => Math.abs(term.odds)).filter(Number.isFinite), 1e-9);
    said.textContent = `${data.classes.map((name, c) => `P(${name}) = ${share(row.p[c])}`).slice(0, 6).join(", ")}. ` +
      `Together the columns give ${signed(total)} nats of evidence for ${data.classes[a]} against ${data.classes[b]}.`;
    list.replaceChildren(...shown.map(({ term, value, odds: x }) => {
      const width = `${(50 * Math.min(1, Math.abs(x) / longest)).toFixed(1)}%`;
      return el("li", {}, el("span", { class: "what" }, value === null ? term : `${term} = ${value}`),
        el("span", { class: "track" }, el("span", { class: x < 0 ? "bar minus" : "bar plus", style: x < 0 ? `right: 50%; width: ${width}` : `left: 50%; width: ${width}` })),
        el("span", { class: "number" }, signed(x)));
    }));
    more.hidden = terms.length <= MOST;
    more.textContent = all ? `Only the ${MOST} strongest` : `All ${terms.length} terms`;
  }

  /* null stands for minus infinity, a value that a class never has. */
  function odds(a, b) {
    return a === b ? 0 : a === null ? -Infinity : b === null ? Infinity : a - b;
  }

  pair();
  show();
};
