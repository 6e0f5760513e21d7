// Tables: a click on a heading sorts by that column, another one turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const rising = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const number = head.classList.contains("number");
    const key = row => {
      const cell = row.cells[column];
      if (!number) return cell.textContent;
      return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    };
    const order = (a, b) => number ? a - b : a.localeCompare(b, undefined, { numeric: true });
    const rows = Array.from(table.tBodies[0].rows).map(row => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return rising ? order(a, b) : order(b, a);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
