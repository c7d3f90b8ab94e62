// Sort a table by the column whose heading is pressed: numbers first down, names first up, pressed again the other way.
document.querySelectorAll("th button").forEach((button) => {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const body = heading.closest("table").tBodies[0];
    const place = heading.cellIndex;
    const text = heading.dataset.kind === "text";
    const was = heading.getAttribute("aria-sort");
    const down = was ? was === "ascending" : !text;
    const value = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const order = (a, b) => (text ? a.localeCompare(b) : Number(a) - Number(b));
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === ""); // unknown values stay at the end
      return down ? order(y, x) : order(x, y);
    });
    heading.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  });
});
