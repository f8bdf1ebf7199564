"use strict";
(() => {
  const make = (tag, props = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), props);
    made.append(...children);
    return made;
  };
  const told = document.getElementById("told");

  /* Button for the theme: that of the system, light or dark. */
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const theme = make("button", { type: "button", className: "theme" });
  const setTheme = (name) => {
    if (name === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", name);
    theme.textContent = `Colours: ${name}`;
    theme.value = name;
  };
  theme.addEventListener("click", () => {
    setTheme(themes[(themes.indexOf(theme.value) + 1) % themes.length]);
  });
  setTheme("auto");
  document.querySelector("header").append(theme);

  /* Tables: a click on a header sorts; filters select rows by words and by values. */
  const valueOf = (cell) =>
    "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
  const compare = (a, b) => {
    const kinds = [typeof a, typeof b];
    if (kinds[0] !== kinds[1]) return kinds[0] === "number" ? -1 : 1;
    return kinds[0] === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  };
  const sortBy = (table, column, head) => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const numeric = (row) => typeof valueOf(row.cells[column]) === "number";
    const rows = [...table.tBodies[0].rows].map((row, i) => [row, i]);
    rows.sort(([a, i], [b, j]) => {
      const order = compare(valueOf(a.cells[column]), valueOf(b.cells[column]));
      // Cells without a number stay last in both directions.
      return (numeric(a) === numeric(b) && !up ? -order : order) || i - j;
    });
    table.tBodies[0].append(...rows.map(([row]) => row));
    told.textContent = `Sorted by ${head.textContent}, ${up ? "ascending" : "descending"}`;
  };
  /* The details of a row are below the table: those of hidden rows are hidden with them. */
  const foldsOf = (row) =>
    [...row.querySelectorAll("a[href^='#']")].map((link) => document.getElementById(link.hash.slice(1)));
  const addFilters = (table, holder) => {
    const rows = [...table.tBodies[0].rows];
    const heads = [...table.tHead.rows[0].cells];
    if (rows.length < 4) return;
    const tools = make("div", { className: "tools" });
    const words = make("input", { type: "search", placeholder: "e.g. H100" });
    tools.append(make("label", {}, "Filter", words));
    const choices = [];
    heads.forEach((head, column) => {
      const values = [...new Set(rows.map((row) => row.cells[column].textContent.trim()))];
      if (!head.dataset.choice || values.length < 2 || values.length > 40) return;
      const choice = make("select");
      choice.append(make("option", { value: "", textContent: "all" }));
      values.sort((a, b) => compare(a, b));
      values.forEach((v, i) => choice.append(make("option", { value: String(i + 1), textContent: v })));
      choices.push([column, choice, values]);
      tools.append(make("label", {}, head.textContent, choice));
    });
    const count = make("span", { className: "hint" });
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const kept =
          wanted.every((word) => text.includes(word)) &&
          choices.every(([column, choice, values]) =>
            !choice.value || row.cells[column].textContent.trim() === values[choice.value - 1]);
        row.hidden = !kept;
        for (const fold of foldsOf(row)) fold.hidden = !kept;
        shown += kept;
      }
      count.textContent = `${shown} of ${rows.length} rows`;
      return count.textContent;
    };
    tools.addEventListener("input", () => { told.textContent = apply(); });
    const copy = make("button", { type: "button", textContent: "Copy table" });
    copy.addEventListener("click", () => {
      const lines = [table.tHead.rows[0], ...[...table.tBodies[0].rows].filter((r) => !r.hidden)];
      const cellText = (cell) => cell.textContent.trim();
      const text = lines.map((row) => [...row.cells].map(cellText).join("\t")).join("\n");
      navigator.clipboard.writeText(text).then(
        () => { told.textContent = copy.textContent = "Copied"; },
        () => { told.textContent = copy.textContent = "The browser refused to copy"; });
    });
    tools.append(copy, count);
    apply();
    holder.before(tools);
  };
  for (const table of document.querySelectorAll("table.grid")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => sortBy(table, column, head));
    });
    addFilters(table, table.parentElement);
  }

  /* Mark tables that are wider than their container, because they scroll. */
  const fit = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const holder = target.closest(".wide");
      holder.classList.toggle("scrolls", holder.scrollWidth > holder.clientWidth);
    }
  });
  for (const holder of document.querySelectorAll(".wide")) {
    fit.observe(holder);
    fit.observe(holder.firstElementChild);
  }

  /* A link in a row opens the details of that row. */
  for (const link of document.querySelectorAll("table.grid a")) {
    link.addEventListener("click", () => {
      document.getElementById(link.hash.slice(1)).open = true;
    });
  }

  /* Figures: buttons show and hide series, and enlarge the figure, which can then be dragged. */
  for (const figure of document.querySelectorAll("figure.picture")) {
    const svg = figure.querySelector("svg");
    const tools = make("div", { className: "tools" });
    JSON.parse(figure.dataset.series || "[]").forEach((name, i) => {
      const button = make("button", { type: "button", textContent: name, ariaPressed: "true" });
      button.addEventListener("click", () => {
        const shown = button.ariaPressed !== "true";
        button.ariaPressed = String(shown);
        for (const part of svg.querySelectorAll(`[data-series="${i}"]`))
          part.style.display = shown ? "" : "none";
      });
      tools.append(button);
    });
    const whole = svg.viewBox.baseVal;
    const [width, height] = [whole.width, whole.height];
    let scale = 1;
    const view = (x, y) => {
      const [w, h] = [width / scale, height / scale];
      const within = (at, most) => Math.max(0, Math.min(at, most));
      svg.setAttribute("viewBox", `${within(x, width - w)} ${within(y, height - h)} ${w} ${h}`);
      figure.classList.toggle("zoomed", scale > 1);
    };
    const zoom = (by) => {
      const { x, y, width: w, height: h } = svg.viewBox.baseVal;
      scale = Math.max(1, Math.min(8, scale * by));
      view(x + w / 2 - width / scale / 2, y + h / 2 - height / scale / 2);
      told.textContent = `Figure at ${scale} times its size`;
    };
    for (const [text, label, by] of [["+", "Enlarge the figure", 2], ["−", "Reduce the figure", 0.5]]) {
      const button = make("button", { type: "button", textContent: text, ariaLabel: label });
      button.addEventListener("click", () => zoom(by));
      tools.append(button);
    }
    let from = null;
    svg.addEventListener("pointerdown", (event) => {
      if (scale === 1) return;
      const { x, y } = svg.viewBox.baseVal;
      from = { x, y, left: event.clientX, top: event.clientY };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      const unit = svg.viewBox.baseVal.width / svg.clientWidth;
      view(from.x - (event.clientX - from.left) * unit, from.y - (event.clientY - from.top) * unit);
    });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { from = null; });
    figure.append(tools);
  }

  /* Figures: show the text of the point nearest to the pointer; arrow keys step through the points. */
  const NEAR = 24;
  for (const figure of document.querySelectorAll("figure.picture")) {
    const data = figure.querySelector("script.spots");
    if (!data) continue;
    const spots = JSON.parse(data.textContent);
    const frame = figure.querySelector(".frame");
    const svg = frame.querySelector("svg");
    const ring = make("div", { className: "ring", hidden: true });
    const tip = make("div", { className: "tip", hidden: true });
    frame.append(ring, tip);
    frame.setAttribute("aria-label", "Figure with points: arrow keys step through them");
    let current = -1;
    const place = (x, y) => {
      const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
      const box = frame.getBoundingClientRect();
      return [at.x - box.left + frame.scrollLeft, at.y - box.top];
    };
    const hide = () => { ring.hidden = tip.hidden = true; current = -1; };
    const show = (i, speak) => {
      current = i;
      const [x, y] = place(spots[i][0], spots[i][1]);
      ring.hidden = tip.hidden = false;
      if (speak && Math.abs(x - frame.scrollLeft - frame.clientWidth / 2) > frame.clientWidth / 2 - 20)
        frame.scrollLeft = x - frame.clientWidth / 2;
      ring.style.left = `${x}px`;
      ring.style.top = `${y}px`;
      tip.textContent = spots[i][2];
      const room = frame.scrollLeft + frame.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(frame.scrollLeft, Math.min(x + 12, room))}px`;
      tip.style.top = `${y > tip.offsetHeight + 16 ? y - tip.offsetHeight - 12 : y + 14}px`;
      if (speak) told.textContent = spots[i][2];
    };
    frame.addEventListener("pointermove", (event) => {
      const box = frame.getBoundingClientRect();
      let best = -1;
      let least = NEAR;
      spots.forEach((spot, i) => {
        const [x, y] = place(spot[0], spot[1]);
        const far = Math.hypot(
          event.clientX - box.left + frame.scrollLeft - x, event.clientY - box.top - y);
        if (far < least) { least = far; best = i; }
      });
      if (best < 0) hide();
      else if (best !== current) show(best, false);
    });
    frame.addEventListener("pointerleave", hide);
    frame.addEventListener("blur", hide);
    frame.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      show((current + step + spots.length + (current < 0 && step < 0 ? 1 : 0)) % spots.length, true);
    });
  }

  /* Open all folded parts for printing; fold them again afterwards. */
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
})();
