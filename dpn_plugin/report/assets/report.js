"use strict";
(() => {
  const table = document.querySelector("#standings");
  const body = table?.tBodies[0];
  const filters = document.querySelector("#filters");
  const count = document.querySelector("#count");
  const rows = body ? [...body.rows] : [];

  const shown = (row, choices) =>
    choices.every(([name, value]) => value === "" || row.dataset[name] === value);

  const applyFilters = () => {
    const choices = [...filters.querySelectorAll("select")].map((s) => [s.name, s.value]);
    for (const row of rows) row.hidden = !shown(row, choices);
    const visible = rows.filter((row) => !row.hidden).length;
    count.textContent = `${visible} of ${rows.length} rows`;
  };

  // Missing values are last in either direction.
  const compare = (a, b, direction) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    return direction * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y);
  };

  const sortBy = (head) => {
    const first = head.dataset.first;
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const key = (row) => row.cells[head.cellIndex].dataset.value ?? "";
    const direction = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => compare(key(a), key(b), direction));
    body.append(...rows);
  };

  if (table && filters) {
    filters.hidden = false;
    filters.addEventListener("change", applyFilters);
    filters.addEventListener("reset", () => setTimeout(applyFilters));
    for (const button of table.querySelectorAll("th button")) {
      button.addEventListener("click", () => sortBy(button.closest("th")));
    }
    applyFilters();
  }

  // Folded tables are printed too.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });

  // A link to a folded table unfolds it.
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target?.closest("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
