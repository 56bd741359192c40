"use strict";

// Everything is there without this script, which adds bubbles, arrow keys and sorting.

const visible = (node) => node.getClientRects().length > 0;

// A bubble with a point's description, where the pointer or the keyboard is.
const bubble = document.createElement("div");
bubble.className = "bubble";
bubble.hidden = true;
bubble.setAttribute("aria-hidden", "true");
document.body.append(bubble);

function showBubble(point) {
  bubble.textContent = point.getAttribute("aria-label");
  bubble.hidden = false;
  const place = point.querySelector(".marker").getBoundingClientRect();
  const page = document.documentElement.clientWidth;
  const left = Math.min(Math.max(12, place.left + place.width / 2 - bubble.offsetWidth / 2),
    page - bubble.offsetWidth - 12);
  const above = place.top - bubble.offsetHeight - 10;
  bubble.style.left = `${left + window.scrollX}px`;
  bubble.style.top = `${(above > 0 ? above : place.bottom + 10) + window.scrollY}px`;
}

function hideBubble() {
  bubble.hidden = true;
}

// One stop of the tabulator key per chart; arrows lead along a line, and from line to line.
function neighbour(chart, point, key) {
  const lines = [...chart.querySelectorAll(".series")]
    .map((line) => [...line.querySelectorAll(".point")])
    .filter((points) => points.length > 0 && visible(points[0]));
  const row = lines.findIndex((points) => points.includes(point));
  if (row < 0) {
    return undefined;
  }
  const column = lines[row].indexOf(point);
  if (key === "ArrowRight" || key === "ArrowLeft") {
    return lines[row][column + (key === "ArrowRight" ? 1 : -1)];
  }
  const next = lines[row + (key === "ArrowDown" ? 1 : -1)];
  return next && next[Math.min(column, next.length - 1)];
}

function enter(chart, point) {
  for (const other of chart.querySelectorAll(".point")) {
    other.setAttribute("tabindex", other === point ? "0" : "-1");
  }
}

function enterFirstVisible(chart) {
  const points = [...chart.querySelectorAll(".point")];
  const current = points.find((point) => point.getAttribute("tabindex") === "0" && visible(point));
  enter(chart, current || points.find(visible));
}

for (const chart of document.querySelectorAll(".chart")) {
  for (const point of chart.querySelectorAll(".point")) {
    // The browser's own bubble would come on top of this one.
    point.querySelector("title").remove();
    point.addEventListener("pointerenter", () => showBubble(point));
    point.addEventListener("pointerleave", hideBubble);
    point.addEventListener("focus", () => showBubble(point));
    point.addEventListener("blur", hideBubble);
  }
  enter(chart, chart.querySelector(".point"));
  chart.addEventListener("keydown", (event) => {
    const point = event.target.closest(".point");
    if (event.key === "Escape") {
      hideBubble();
    }
    if (!point || !event.key.startsWith("Arrow")) {
      return;
    }
    event.preventDefault();
    const next = neighbour(chart, point, event.key);
    if (next) {
      enter(chart, next);
      next.focus();
    }
  });
}

document.addEventListener("change", () => {
  hideBubble();
  document.querySelectorAll(".chart").forEach(enterFirstVisible);
});

// Sorting by a click on a column's head; what is missing comes last either way.
function sortValue(row, column) {
  const value = row.cells[column].dataset.value;
  return value === "" ? null : (Number.isNaN(Number(value)) ? value : Number(value));
}

function sortTable(table, column, ascending) {
  const compare = (one, other) => {
    const [left, right] = [sortValue(one, column), sortValue(other, column)];
    if (left === null || right === null) {
      return (left === null) - (right === null);
    }
    const order = typeof left === "string" ? left.localeCompare(right) : left - right;
    return ascending ? order : -order;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortTable(table, column, ascending);
    });
  });
}
