// Sort a table by the column whose heading is pressed: numbers first down, names first up, pressed again the other way.
document.querySelectorAll("table.sorted th button").forEach((button) => {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const body = heading.closest("table").tBodies[0];
    const place = heading.cellIndex;
    const text = heading.dataset.kind === "text";
    const was = heading.getAttribute("aria-sort");
    const down = was ? was === "ascending" : !text;
    const number = (shown) => (shown === "–" ? NaN : Number(shown.replaceAll(",", "")));
    const value = (row) => (text ? row.cells[place].textContent : number(row.cells[place].textContent));
    const order = (a, b) => (text ? a.localeCompare(b) : a - b);
    const rows = [...body.rows].map((row) => [value(row), row]).sort(([x], [y]) => {
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // unknown values stay at the end
      return down ? order(y, x) : order(x, y);
    });
    heading.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  });
});
