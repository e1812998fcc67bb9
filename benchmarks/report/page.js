"use strict";
// Contents are open where there is room beside the text.
const contents = document.getElementById("contents");
const wide = matchMedia("(min-width: 64rem)");
const unfold = () => { contents.open = wide.matches; };
wide.addEventListener("change", unfold);
unfold();
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && !wide.matches) contents.open = false;
});

// A cell without a value goes last in either order, among numbers.
const valueOf = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
};
const compare = (column, sign) => (one, other) => {
  const [a, b] = [valueOf(one, column), valueOf(other, column)];
  if (a !== null && b !== null) return sign * (a - b);
  if (a !== null || b !== null) return a === null ? 1 : -1;
  return sign * one.cells[column].textContent.localeCompare(other.cells[column].textContent, "en", { numeric: true });
};
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const order = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of headers) other.setAttribute("aria-sort", other === header ? order : "none");
      const rows = [...table.tBodies[0].rows].sort(compare(column, order === "ascending" ? 1 : -1));
      table.tBodies[0].append(...rows);
    });
  });
}
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll(".fold")) fold.open = true; });
