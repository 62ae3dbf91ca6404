// Tables sort by the buttons in their heads, and long ones can be filtered. Without this script
// they stand as they are.
"use strict";
{
  const LONG = 10; // rows; longer tables get a filter
  const MARKS = { none: "ascending", ascending: "descending", descending: "none" };
  const words = new Intl.Collator("en", { numeric: true });
  const start = /^(?:about |fewer than |less than |more than )?([-+\u2212]?[\d,]*\.?\d+(?:e[-+]?\d+)?)/i;

  // the number a text begins with; not a number where it says in words that there is none
  const numberOf = (text) => {
    const found = start.exec(text);
    return found ? Number(found[1].replaceAll(",", "").replace("\u2212", "-")) : NaN;
  };

  const sortRows = (rows, column, numeric, falling) => {
    const keyed = rows.map((row) => {
      const cell = row.cells[column];
      const text = cell.dataset.order ?? cell.textContent.trim();
      return { row, key: numeric ? numberOf(text) : text };
    });
    const missing = (one) => (numeric ? Number.isNaN(one.key) : one.key === "");
    const compare = numeric ? (a, b) => a.key - b.key : (a, b) => words.compare(a.key, b.key);
    const present = keyed.filter((one) => !missing(one));
    present.sort(falling ? (a, b) => compare(b, a) : compare);
    return [...present, ...keyed.filter(missing)].map((one) => one.row);
  };

  const makeSortable = (table, rows) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const direction = MARKS[head.getAttribute("aria-sort") ?? "none"];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (direction !== "none") head.setAttribute("aria-sort", direction);
        const numeric = head.classList.contains("number");
        const falling = direction === "descending";
        // the third press brings back the order in which the table was given
        const next = direction === "none" ? rows : sortRows(rows, column, numeric, falling);
        table.tBodies[0].append(...next);
      });
    });
  };

  const makeFilter = (box, rows) => {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const found = document.createElement("output");
    input.type = "search";
    input.autocomplete = "off"; // a text that the browser brings back would not have been applied
    input.setAttribute("aria-label", `Filter: ${box.getAttribute("aria-label")}`);
    label.append("Filter rows ", input);
    const line = document.createElement("div");
    line.className = "filter";
    line.append(label, found);
    if (box.parentElement.matches(".pair")) {
      // a child of its own would take the place of the next one in the grid
      const both = document.createElement("div");
      box.replaceWith(both);
      both.append(box);
    }
    box.before(line);
    const texts = rows.map((row) =>
      Array.from(row.cells, (cell) => cell.textContent).join("\n").toLowerCase(),
    );
    input.addEventListener("input", () => {
      const parts = input.value.toLowerCase().split(/\s+/);
      rows.forEach((row, i) => (row.hidden = !parts.every((part) => texts[i].includes(part))));
      const left = rows.filter((row) => !row.hidden).length;
      found.textContent = input.value.trim() ? `${left} of ${rows.length} rows` : "";
    });
  };

  // a table that does not fit its column goes across both
  const columns = matchMedia("screen and (min-width: 75rem)");
  const widen = () => {
    if (!columns.matches) return;
    for (const box of document.querySelectorAll("main .scroll")) {
      if (box.closest("details:not([open])") || box.scrollWidth <= box.clientWidth) continue;
      (box.closest(".pair > *, .halves > *") ?? box.closest("details") ?? box).classList.add("wide");
    }
  };

  // a stop for the keyboard, and a name, only where there is something to scroll
  const markScrollers = () => {
    for (const box of document.querySelectorAll(".scroll, .picture")) {
      if (box.scrollWidth > box.clientWidth) {
        box.tabIndex = 0;
        box.setAttribute("role", "group");
      } else {
        box.removeAttribute("tabindex");
        box.removeAttribute("role");
      }
    }
  };

  for (const box of document.querySelectorAll(".scroll")) {
    const table = box.querySelector("table");
    const rows = [...table.tBodies[0].rows];
    if (box.classList.contains("sort") && rows.length > 2) makeSortable(table, rows);
    if (rows.length > LONG) makeFilter(box, rows);
  }
  new ResizeObserver(() => {
    widen();
    markScrollers();
  }).observe(document.body);
}
