"use strict";
// Draws the swim lanes and adds copy buttons. Input text reaches the page through textContent and fillText only.
(() => {
  const byId = (id) => document.getElementById(id);

  // ---- copy buttons ----
  for (const box of document.querySelectorAll(".command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", async () => {
      const text = box.querySelector("code").textContent;
      let copied = true;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // Without the clipboard interface (an old browser, a plain-http host): select it for the person to copy.
        getSelection().selectAllChildren(box.querySelector("code"));
        copied = false;
      }
      button.textContent = copied ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
  }

  // A closed part would be missing on paper.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open]):not(.out)")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of closed) part.open = false; });

  // ---- swim lanes ----
  const canvas = byId("canvas");
  const data = JSON.parse(byId("lanes").textContent);
  if (!canvas || data.events.length === 0) return;
  byId("drawing").hidden = false;

  const [LANE, FROM, TO, AT, KIND, WHEN, WHO, WHERE, TEXT, NUMBER] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  const events = data.events;
  const curves = Object.entries(data.curves);
  const ROW = 26, CURVE = 46, AXIS = 24, MARKS = 20, LABEL_SHARE = 0.2;
  const end = Math.max(...marksAndEnds());
  const margin = Math.max(end * 0.02, 0.5);
  const whole = { from: -margin, to: end + margin };
  const trouble = data.kinds.map((kind) => /xid|died|dead|timeout|exception|oom_kill|error|fault|killed|lost|aer|mce|panic|lockup/.test(kind));
  let view = { ...whole };
  let chosen = -1;
  let pending = false;
  let shapes = [];

  function marksAndEnds() {
    let last = 0;
    for (const event of events) if (event[TO] > last) last = event[TO];
    return [last, ...data.marks.map((mark) => mark[0])];
  }

  const height = AXIS + data.lanes.length * ROW + curves.length * CURVE + MARKS;
  // Measured once a drawing: to ask the page for it at each event costs more than all the strokes.
  let measured = canvas.clientWidth;
  const labelWidth = () => Math.min(260, Math.round(measured * LABEL_SHARE));
  const across = () => measured - labelWidth() - 8;
  const toX = (second) => labelWidth() + ((second - view.from) / (view.to - view.from)) * across();
  const toSecond = (x) => view.from + ((x - labelWidth()) / across()) * (view.to - view.from);

  function clockText(second, precise) {
    const date = new Date((data.zero + second) * 1000 + data.zone * 60000);
    if (Number.isNaN(date.getTime())) return "";
    return date.toISOString().slice(11, precise ? 23 : 19);
  }
  const two = (number) => String(number).padStart(2, "0");
  const zoneText = data.clock ? data.clock : data.zone === 0 ? "UTC"
    : (data.zone < 0 ? "-" : "+") + two(Math.floor(Math.abs(data.zone) / 60)) + ":" + two(Math.abs(data.zone) % 60);

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    return { ink: get("--ink"), quiet: get("--quiet"), rule: get("--rule"), accent: get("--accent"),
      against: get("--against"), mark: get("--mark"), code: get("--code"), good: get("--for") };
  }

  function shortened(context, text, width) {
    if (context.measureText(text).width <= width) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1;
    }
    return text.slice(0, low) + "…";
  }

  function stepFor(range) {
    const rough = range / Math.max(across() / 110, 1);
    const steps = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
    return steps.find((step) => step >= rough) ?? Math.ceil(rough / 86400) * 86400;
  }

  function draw() {
    pending = false;
    const ratio = devicePixelRatio || 1;
    const width = measured = canvas.clientWidth;
    const [wide, tall] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== tall) {
      canvas.style.height = height + "px";
      canvas.width = wide;
      canvas.height = tall;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const colour = colours();
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    const left = labelWidth();
    context.fillStyle = colour.code;
    for (let lane = 0; lane < data.lanes.length; lane += 2) context.fillRect(0, AXIS + lane * ROW, width, ROW);
    drawAxis(context, colour, width);
    data.lanes.forEach((name, lane) => {
      const y = AXIS + lane * ROW;
      context.fillStyle = colour.ink;
      context.fillText(shortened(context, name, left - 14), 6, y + ROW / 2);
    });
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, height);
    context.clip();
    drawMarks(context, colour);
    drawPhases(context, colour);
    drawEvents(context, colour);
    context.restore();
    curves.forEach(([name, points], number) => drawCurve(context, colour, name, points, number, width));
    byId("window").textContent = `${clockText(view.from)} to ${clockText(view.to)} ${zoneText}`
      + (data.unplaced ? ` · ${data.unplaced} that this clock does not place: see the table` : "");
  }

  function drawAxis(context, colour, width) {
    const range = view.to - view.from;
    const step = stepFor(range);
    context.fillStyle = colour.quiet;
    context.strokeStyle = colour.rule;
    context.lineWidth = 1;
    const shift = (data.zero + data.zone * 60) % step;
    const first = Math.ceil((view.from + shift) / step) * step - shift;
    for (let second = first; second < view.to; second += step) {
      const x = toX(second);
      context.beginPath();
      context.moveTo(x, AXIS);
      context.lineTo(x, height - MARKS);
      context.stroke();
      if (x < width - 60) context.fillText(clockText(second, step < 1), x + 3, AXIS / 2);
    }
    context.fillText(zoneText, 6, AXIS / 2);
  }

  function drawMarks(context, colour) {
    context.strokeStyle = colour.mark;
    context.fillStyle = colour.mark;
    const ordered = [...data.marks].sort((one, other) => one[0] - other[0]);
    ordered.forEach(([second, name, from, to], number) => {
      const x = toX(second);
      // Between which instants it lies: a band behind the line.
      context.globalAlpha = 0.13;
      context.fillRect(toX(from), AXIS, Math.max(toX(to) - toX(from), 1), height - MARKS - AXIS);
      context.globalAlpha = 1;
      context.setLineDash(name === "onset" ? [] : [4, 3]);
      context.beginPath();
      context.moveTo(x, AXIS);
      context.lineTo(x, height);
      context.stroke();
      const onLeft = number === 0 && ordered.length > 1;
      context.textAlign = onLeft ? "right" : "left";
      context.fillText(name, x + (onLeft ? -4 : 4), height - MARKS / 2 + 1);
    });
    context.textAlign = "left";
    context.setLineDash([]);
  }

  // A phase is a band under the events of its lane, named where there is room.
  function drawPhases(context, colour) {
    context.save();
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    for (const [lane, from, to, name] of data.phases) {
      if (to < view.from || from > view.to) continue;
      const [x, y] = [toX(from), AXIS + lane * ROW];
      const wide = Math.max(toX(to) - x, 1);
      context.fillStyle = colour.accent;
      context.globalAlpha = 0.14;
      context.fillRect(x, y + 1, wide, ROW - 2);
      context.globalAlpha = 1;
      context.strokeStyle = colour.rule;
      context.strokeRect(x + 0.5, y + 1.5, Math.max(wide - 1, 0.5), ROW - 3);
      const left = Math.max(x, labelWidth());
      const room = Math.min(x + wide, measured) - left - 12;
      if (room < 24) continue;
      context.fillStyle = colour.quiet;
      context.fillText(shortened(context, name, room), left + 7, y + ROW / 2);
    }
    context.restore();
  }

  // At most one shape of a sort in each place of a lane, so ten thousand events cost what the screen is wide.
  function drawEvents(context, colour) {
    shapes = [];
    const last = new Map();
    events.forEach((event, number) => {
      if (event[TO] < view.from || event[FROM] > view.to) return;
      const x = toX(event[FROM]);
      const wide = Math.max(toX(event[TO]) - x, 0);
      const y = AXIS + event[LANE] * ROW;
      const bad = trouble[event[KIND]];
      const row = event[LANE] * 2 + (bad ? 1 : 0);
      const slot = Math.round(x / (bad ? 4 : 2));
      if (wide < 2 && number !== chosen && last.get(row) === slot) {
        shapes.push([x, y, 0, number]);
        return;
      }
      last.set(row, slot);
      if (wide >= 2) {
        context.globalAlpha = 0.3;
        context.fillStyle = bad ? colour.against : colour.accent;
        context.fillRect(x, y + 5, wide, ROW - 10);
        context.globalAlpha = 1;
      }
      const at = event[AT] === null ? null : toX(event[AT]);
      context.fillStyle = bad ? colour.against : colour.accent;
      if (at !== null) {
        // Shape says it too: trouble is a diamond, the rest are bars.
        if (bad) {
          context.beginPath();
          context.moveTo(at, y + 4); context.lineTo(at + 5, y + ROW / 2);
          context.lineTo(at, y + ROW - 4); context.lineTo(at - 5, y + ROW / 2);
          context.fill();
        } else context.fillRect(at - 1, y + 5, 2.5, ROW - 10);
      }
      if (number === chosen) {
        context.strokeStyle = colour.ink;
        context.lineWidth = 2;
        context.strokeRect((at ?? x) - 7, y + 2, (at === null ? wide : 0) + 14, ROW - 4);
        context.lineWidth = 1;
      }
      shapes.push([at ?? x, y, at === null ? wide : 0, number]);
    });
  }

  function drawCurve(context, colour, name, points, number, width) {
    const top = AXIS + data.lanes.length * ROW + number * CURVE;
    const most = points.reduce((high, point) => Math.max(high, point[1]), 0) || 1;
    context.fillStyle = colour.ink;
    const [quantity, who] = name.split(" · ", 2);
    context.fillText(shortened(context, quantity, labelWidth() - 14), 6, top + 14);
    context.fillStyle = colour.quiet;
    const range = `0 to ${Number(most.toPrecision(6))}` + (who ? `, ${who}` : "");
    context.fillText(shortened(context, range, labelWidth() - 14), 6, top + 30);
    context.save();
    context.beginPath();
    context.rect(labelWidth(), top, width - labelWidth(), CURVE);
    context.clip();
    context.strokeStyle = colour.good;
    context.lineWidth = 1.5;
    const toY = (value) => top + CURVE - 6 - (value / most) * (CURVE - 12);
    // The points in the window with one neighbour on each side; where they are denser than pixels, a bar from the
    // lowest to the highest of each column, which is what the line would fill.
    const first = Math.max(points.findIndex((point) => point[0] >= view.from) - 1, 0);
    const after = points.findIndex((point) => point[0] > view.to);
    const shown = points.slice(first, after < 0 ? points.length : after + 1);
    context.fillStyle = colour.good;
    if (shown.length > across() / 2) {
      const columns = new Map();
      for (const [second, value] of shown) {
        const [x, y] = [Math.round(toX(second)), toY(value)];
        const span = columns.get(x);
        if (span) { span[0] = Math.min(span[0], y); span[1] = Math.max(span[1], y); } else columns.set(x, [y, y]);
      }
      let before = null;
      for (const [x, [high, low]] of columns) {
        const [from, to] = before ? [Math.min(high, before[1]), Math.max(low, before[0])] : [high, low];
        context.fillRect(x - 0.5, from - 0.75, 1.25, to - from + 1.5);
        before = [high, low];
      }
    } else {
      context.beginPath();
      shown.forEach(([second, value], index) => {
        if (index === 0) context.moveTo(toX(second), toY(value)); else context.lineTo(toX(second), toY(value));
      });
      context.stroke();
      if (shown.length < across() / 6) {
        for (const [second, value] of shown) context.fillRect(toX(second) - 1.5, toY(value) - 1.5, 3, 3);
      }
    }
    context.restore();
  }

  function redraw() {
    if (!pending) { pending = true; requestAnimationFrame(draw); }
  }

  function zoom(factor, around) {
    const range = Math.min(Math.max((view.to - view.from) * factor, 0.01), whole.to - whole.from);
    const share = (around - view.from) / (view.to - view.from);
    moveTo(around - share * range, range);
  }

  function moveTo(from, range) {
    const start = Math.min(Math.max(from, whole.from), whole.to - range);
    view = { from: start, to: start + range };
    redraw();
  }

  function choose(number, show) {
    if (number < 0 || number >= events.length) return;
    chosen = number;
    const event = events[number];
    if (show && (event[FROM] < view.from || event[FROM] > view.to)) {
      moveTo(event[FROM] - (view.to - view.from) / 2, view.to - view.from);
    }
    const head = document.createElement("div");
    head.textContent = [`${number + 1} of ${events.length}`, event[WHEN], data.kinds[event[KIND]], event[WHO], event[WHERE]]
      .filter(Boolean).join("  ·  ");
    const text = document.createElement("pre");
    text.textContent = event[TEXT];
    byId("event").replaceChildren(head, text);
    redraw();
  }

  // To the record in the table below; an event beyond the rows that the page came with gets its row now.
  function goToRecord(number) {
    if (number < 0) return;
    const event = events[number];
    const body = byId("event-rows");
    let row = body.rows[event[NUMBER]] ?? byId(`event-${event[NUMBER]}`);
    if (!row) {
      row = body.insertRow();
      row.id = `event-${event[NUMBER]}`;
      for (const text of [event[WHEN], data.kinds[event[KIND]], event[WHO], `${event[WHERE]}  ${event[TEXT]}`]) {
        row.insertCell().textContent = text;
      }
    }
    for (const other of body.querySelectorAll(".chosen")) other.classList.remove("chosen");
    row.classList.add("chosen");
    row.tabIndex = -1;
    byId("records").open = true;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
  }

  function nearest(x, y) {
    let best = -1, distance = 12;
    for (const [left, top, wide, number] of shapes) {
      if (y < top || y > top + ROW) continue;
      const away = x < left ? left - x : Math.max(x - left - wide, 0);
      if (away < distance) { distance = away; best = number; }
    }
    return best;
  }

  // Zooming keeps the chosen event in sight when it is in the window.
  const middle = () => {
    const at = chosen < 0 ? null : events[chosen][FROM];
    return at !== null && at >= view.from && at <= view.to ? at : (view.from + view.to) / 2;
  };
  byId("zoom-in").addEventListener("click", () => zoom(0.5, middle()));
  byId("zoom-out").addEventListener("click", () => zoom(2, middle()));
  byId("zoom-all").addEventListener("click", () => { view = { ...whole }; redraw(); });
  const onset = data.marks.at(-1);
  byId("zoom-onset").disabled = !onset;
  byId("zoom-onset").addEventListener("click", () => {
    const range = Math.min(120, whole.to - whole.from);
    moveTo(onset[0] - range / 2, range);
  });
  byId("event-back").addEventListener("click", () => choose(chosen < 0 ? events.length - 1 : chosen - 1, true));
  byId("event-on").addEventListener("click", () => choose(chosen + 1, true));
  byId("event-record").addEventListener("click", () => goToRecord(chosen < 0 ? 0 : chosen));

  canvas.addEventListener("keydown", (press) => {
    const range = view.to - view.from;
    const act = {
      ArrowLeft: () => moveTo(view.from - range / 8, range),
      ArrowRight: () => moveTo(view.from + range / 8, range),
      "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()),
      "0": () => { view = { ...whole }; redraw(); },
      ",": () => choose(chosen < 0 ? events.length - 1 : chosen - 1, true), ".": () => choose(chosen + 1, true),
      Enter: () => goToRecord(chosen),
      Home: () => choose(0, true), End: () => choose(events.length - 1, true),
    }[press.key];
    if (!act || press.ctrlKey || press.metaKey || press.altKey) return;
    press.preventDefault();
    act();
  });
  canvas.addEventListener("wheel", (turn) => {
    // Zooms with Ctrl only, or a page could not be scrolled past the drawing.
    if (!turn.ctrlKey) return;
    turn.preventDefault();
    zoom(turn.deltaY > 0 ? 1.25 : 0.8, toSecond(turn.offsetX));
  }, { passive: false });
  let drag = null, dragged = false;
  canvas.addEventListener("pointerdown", (press) => { drag = { x: press.offsetX, from: view.from, moved: false }; });
  canvas.addEventListener("pointermove", (move) => {
    if (drag && move.buttons) {
      if (Math.abs(move.offsetX - drag.x) > 3) drag.moved = true;
      const range = view.to - view.from;
      if (drag.moved) moveTo(drag.from - ((move.offsetX - drag.x) / across()) * range, range);
      return;
    }
    const found = nearest(move.offsetX, move.offsetY);
    if (found >= 0 && found !== chosen) choose(found, false);
  });
  canvas.addEventListener("click", (press) => {
    if (dragged) return;
    const found = nearest(press.offsetX, press.offsetY);
    if (found >= 0) { choose(found, false); goToRecord(found); }
  });
  addEventListener("pointerup", () => { dragged = drag !== null && drag.moved; drag = null; });
  addEventListener("resize", redraw);
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
  draw();
})();
