// The timeline on a canvas. The server sends bins for the visible range, so a million tasks cost as much as a hundred.
// Whatever comes from a session becomes text or a colour, never markup.

const LANE = 30, AXIS = 30, LABEL = 200, NARROW = 600, MOVED = 4, WAIT = 70, LEAST = 0.02, UNREAD = 3000; // pixels, milliseconds
const KINDS = ["finished", "failed", "running"];

/** Milliseconds since 1970, with the microseconds that Date drops. */
export const moment = (text) => {
  const micros = /\.\d{3}(\d{1,3})/.exec(text ?? "");
  return Date.parse(text ?? "") + (micros ? +micros[1].padEnd(3, "0") / 1000 : 0);
};

/** The same the other way. */
export const iso = (ms) => {
  const all = Math.round(ms * 1000), micros = all % 1000;
  return new Date((all - micros) / 1000).toISOString().replace("Z", `${String(micros).padStart(3, "0")}Z`);
};
const number = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const counted = (count, noun) => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;

/** How long something is, in the unit that fits. */
export function span(ms) {
  const size = Math.abs(ms);
  if (size < 1) return `${+(ms * 1000).toFixed(0)} µs`;
  if (size < 1000) return `${+ms.toPrecision(3)} ms`;
  if (size < 60000) return `${+(ms / 1000).toPrecision(3)} s`;
  const [large, small, units] = size < 3600000 ? [60000, 1000, ["min", "s"]] : [3600000, 60000, ["h", "min"]];
  const total = Math.round(ms / small), rest = total % (large / small);
  return `${Math.floor(total / (large / small))} ${units[0]}${rest ? ` ${rest} ${units[1]}` : ""}`;
}

const ROUND = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((one) => one * 1000);

/** Distances of a ruler's marks: round numbers of minutes and hours, else 1, 2 or 5 times a power of ten. */
export function step(length, marks) {
  const rough = length / marks, power = 10 ** Math.floor(Math.log10(rough));
  const round = rough > 10000 && ROUND.find((one) => one >= rough);
  return round || [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
}

/** For each task the first track that is free when it begins. */
export function tracks(begins, ends) {
  const free = [];
  return begins.map((begin, place) => {
    let track = free.findIndex((end) => end <= begin);
    if (track < 0) track = free.length;
    free[track] = Math.max(ends[place], begin);
    return track;
  });
}

function element(name, text, attributes = {}, children = []) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

class Timeline {
  constructor(root) {
    this.root = root;
    this.find = (selector) => root.querySelector(selector);
    this.canvas = this.find("canvas");
    this.pen = this.canvas.getContext("2d");
    this.form = this.find("form");
    this.status = this.find("[role=status]");
    this.tip = this.find(".tip");
    this.panel = this.find(".opened");
    this.view = null;
    this.lane = 0; // that the keyboard is on
    this.task = null; // in that lane
    this.offset = 0;
    this.rows = 2; // that there is room for
    this.pointers = new Map();
    const asked = new URLSearchParams(location.search);
    const [start, end] = ["start", "end"].map((name) => moment(asked.get(name)));
    [this.begin, this.end] = start < end ? [start, end] : [NaN, NaN]; // NaN: all there is
    for (const part of root.querySelectorAll("[data-scripted]")) part.hidden = false;
    this.resized();
    this.listen();
    this.load();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    for (const kind of ["down", "move", "up", "cancel", "leave"]) {
      canvas.addEventListener(`pointer${kind}`, (event) => this[kind](event));
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const kind of ["focus", "blur"]) canvas.addEventListener(kind, () => this.draw());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("change", () => { this.offset = 0; this.rows = 2; this.lane = 0; this.task = null; this.load(); });
    for (const button of this.root.querySelectorAll("button[data-does]")) {
      button.addEventListener("click", () => this.act(button.dataset.does));
    }
    document.addEventListener("keeper:shown", () => this.keepUp());
    new ResizeObserver(() => this.resized()).observe(this.find(".stage"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  act(what) {
    const middle = (this.begin + this.end) / 2;
    const all = { in: () => this.zoom(0.5, middle), out: () => this.zoom(2, middle), earlier: () => this.pan(-0.25),
      later: () => this.pan(0.25), reset: () => this.reset(), before: () => this.page(-1), behind: () => this.page(1),
      close: () => this.close() };
    all[what]?.();
  }

  // What is asked of the server.

  /** Whether all there is is shown: more may come. */
  get isWhole() { return !(this.begin < this.end) || (this.begin === this.first && this.end === this.last); }

  get group() { return this.form.elements.group.value; }

  params(more) {
    const params = new URLSearchParams({ group: this.group, internals: this.form.elements.internals.checked, ...more });
    return params;
  }

  async ask(path, params, signal) {
    const answer = await fetch(`${this.root.dataset.api}${path}?${params}`, { signal });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error ?? answer.statusText);
    return body;
  }

  load(wait = 0) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetch(), wait);
  }

  /** The page of a job that runs was renewed: more may have come. What somebody looks at closely stays. */
  keepUp() {
    if (this.isWhole && !this.drag && this.panel.hidden && !this.root.contains(document.activeElement)) this.load();
  }

  async fetch() {
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const params = this.params({ width: Math.max(60, Math.min(4000, Math.round(this.plot))), offset: this.offset });
    if (!this.isWhole) { params.set("start", iso(this.begin)); params.set("end", iso(this.end)); }
    this.root.setAttribute("aria-busy", "true");
    try {
      const view = await this.ask(this.root.dataset.scope, params, asking.signal);
      if (asking === this.asking) this.show(view);
    } catch (error) {
      if (error.name !== "AbortError" && asking === this.asking) this.say(`The timeline could not be read: ${error.message}`);
    } finally {
      if (asking === this.asking) this.root.removeAttribute("aria-busy");
    }
  }

  show(view) {
    const began = moment(view.begin), { isWhole } = this;
    for (const lane of view.lanes) {
      if (lane.tasks) {
        lane.tasks.tracks = tracks(lane.tasks.begins_ms, lane.tasks.ends_ms);
        lane.height = Math.max(1, ...lane.tasks.tracks.map((track) => track + 1));
      } else lane.height = Math.max(1, ...lane.bins.running);
    }
    this.view = view;
    this.began = began;
    this.width = view.bin_seconds * 1000;
    this.first = moment(view.first);
    this.last = Math.max(moment(view.last), this.first + LEAST);
    if (isWhole) [this.begin, this.end] = [this.first, this.last];
    this.lane = Math.min(this.lane, Math.max(0, view.lanes.length - 1));
    this.remember();
    this.resized();
    this.tell();
    if (view.unread_bytes) this.load(UNREAD);
    performance.mark("timeline shown");
    this.root.dataset.shown = String(+(this.root.dataset.shown ?? 0) + 1); // how often: tests wait for it
  }

  remember() {
    const address = new URL(location.href);
    for (const [name, value] of [["start", this.begin], ["end", this.end]]) {
      if (this.isWhole) address.searchParams.delete(name); else address.searchParams.set(name, iso(value));
    }
    address.searchParams.set("group", this.group);
    history.replaceState(history.state, "", address);
  }

  // Words: a line for everybody, and the lanes as a table.

  say(words) { this.status.textContent = words; }

  tell() {
    const { view } = this, from = view.lanes_before, shown = view.lanes.length, all = from + shown + view.lanes_left_out;
    const failed = view.lanes.reduce((sum, lane) => sum + lane.failed, 0);
    const lanes = all ? `lanes ${shown ? from + 1 : from}–${from + shown} of ${number.format(all)}` : "nothing here";
    const waiting = view.waiting ? `, ${number.format(view.waiting)} never started` : "";
    this.say(`${span(this.end - this.begin)} shown: ${counted(view.attempts, "task attempt")}` +
      `${failed ? `, ${number.format(failed)} failed in these lanes` : ""}${waiting}; ${lanes}.${view.unread_bytes ? " The session is still being read." : ""}`);
    this.find("[data-does=before]").disabled = !from;
    this.find("[data-does=behind]").disabled = !view.lanes_left_out;
    const rows = view.lanes.map((lane) => {
      const show = element("button", "Show tasks", { type: "button", "aria-label": `Show tasks of ${lane.label}` });
      show.addEventListener("click", () => this.brush(this.begin, this.end, [lane]));
      const cells = [number.format(lane.attempts), number.format(lane.failed), span(lane.busy_seconds * 1000)];
      return element("tr", "", {}, [
        element("th", "", { scope: "row" }, [lane.label, " ", element("span", lane.note, { class: "quiet" })]),
        ...cells.map((cell) => element("td", cell, { class: "number" })), element("td", "", {}, [show]),
      ]);
    });
    this.find(".told tbody").replaceChildren(...rows);
    const marks = view.marks.map((mark) => element("li", "", {}, [
      element("time", clock.format(new Date(mark.at)), { datetime: mark.at }), ` ${mark.about}: ${mark.title}`]));
    if (view.marks_left_out) marks.push(element("li", `${counted(view.marks_left_out, "more event")} not shown`));
    this.find(".marks ul").replaceChildren(...marks);
    this.find(".marks").hidden = !marks.length;
  }

  // Places.

  resized() {
    const { clientWidth } = this.find(".stage"), ratio = devicePixelRatio || 1;
    this.isNarrow = clientWidth < NARROW;
    this.left = this.isNarrow ? 0 : LABEL;
    this.rowHeight = this.isNarrow ? LANE + 16 : LANE;
    const before = this.plot;
    this.plot = Math.max(60, clientWidth - this.left);
    this.rows = Math.max(this.rows, this.view?.lanes.length ?? 4); // does not shrink under the pointer while one zooms
    const height = AXIS + this.rows * this.rowHeight;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
    if (this.view && before && Math.abs(before - this.plot) > 50) this.load(WAIT);
  }

  x(ms) { return this.left + ((ms - this.begin) / (this.end - this.begin)) * this.plot; }
  time(x) { return this.begin + ((x - this.left) / this.plot) * (this.end - this.begin); }
  top(row) { return AXIS + row * this.rowHeight + (this.isNarrow ? 16 : 0); }
  row(y) { return Math.floor((y - AXIS) / this.rowHeight); }

  // Drawing.

  ink(name) { return getComputedStyle(this.find(`.swatch.${name}`)).backgroundColor; }

  draw() {
    if (!this.view || !this.plot) return;
    const { pen } = this, { color, font } = getComputedStyle(this.canvas);
    this.inks = Object.fromEntries([...KINDS, "warning", "normal", "line", "label", "focus"].map((name) => [name, this.ink(name)]));
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.font = font;
    pen.textBaseline = "middle";
    this.ruler(color);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.plot, this.canvas.height);
    pen.clip();
    this.view.lanes.forEach((lane, row) => (lane.tasks ? this.singles(lane, row) : this.bars(lane, row)));
    this.lines();
    if (this.brushing) this.selection();
    pen.restore();
    this.view.lanes.forEach((lane, row) => this.label(lane, row, color));
  }

  ruler(color) {
    const { pen, view } = this, length = this.end - this.begin;
    const apart = step(length, Math.max(2, this.plot / 110));
    pen.strokeStyle = this.inks.line;
    pen.fillStyle = color;
    pen.lineWidth = 1;
    pen.textAlign = "center";
    const bottom = AXIS + view.lanes.length * this.rowHeight;
    for (let at = Math.ceil((this.begin - this.first) / apart) * apart; at <= this.end - this.first; at += apart) {
      const x = Math.round(this.x(this.first + at)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, AXIS - 6);
      pen.lineTo(x, bottom);
      pen.stroke();
      const words = at < 0 ? `−${span(-at)}` : `+${span(at)}`, half = pen.measureText(words).width / 2;
      if (x - half > this.left && x + half < this.left + this.plot) pen.fillText(words, x, AXIS / 2 - 2);
    }
    view.lanes.forEach((lane, row) => {
      const y = AXIS + (row + 1) * this.rowHeight - 0.5;
      pen.beginPath();
      pen.moveTo(0, y);
      pen.lineTo(this.left + this.plot, y);
      pen.stroke();
    });
  }

  label(lane, row, color) {
    const { pen } = this, y = AXIS + row * this.rowHeight, room = this.isNarrow ? this.plot : LABEL - 12;
    if (row === this.lane && document.activeElement === this.canvas) {
      pen.strokeStyle = this.inks.focus;
      pen.lineWidth = 2;
      pen.strokeRect(1, y + 1, this.left + this.plot - 2, this.rowHeight - 2);
    }
    pen.textAlign = "left";
    pen.fillStyle = lane.failed ? this.inks.label : color;
    pen.fillText(fitted(pen, `${lane.failed ? "✗ " : ""}${lane.label}`, room), 4, y + (this.isNarrow ? 10 : LANE / 2));
  }

  bars(lane, row) {
    const { pen } = this, bottom = this.top(row) + LANE - 4, high = LANE - 8;
    const { running, finished, failed } = lane.bins;
    for (let bin = 0; bin < running.length; bin += 1) {
      if (!running[bin] && !finished[bin] && !failed[bin]) continue;
      const left = this.x(this.began + bin * this.width), right = this.x(this.began + (bin + 1) * this.width);
      if (right < this.left || left > this.left + this.plot) continue;
      const height = Math.max(2, (running[bin] / lane.height) * high), wide = Math.max(1, right - left);
      pen.fillStyle = this.inks.finished;
      pen.fillRect(left, bottom - height, wide, height);
      if (failed[bin]) {
        const share = failed[bin] / (failed[bin] + finished[bin]);
        pen.fillStyle = this.inks.failed;
        pen.fillRect(left, bottom - high, Math.max(2, wide), Math.max(5, share * high));
      }
    }
  }

  singles(lane, row) {
    const { pen } = this, { tasks } = lane, high = (LANE - 8) / lane.height, top = this.top(row) + 4;
    tasks.ids.forEach((_, place) => {
      const left = this.x(this.began + tasks.begins_ms[place]), right = this.x(this.began + tasks.ends_ms[place]);
      if (right < this.left - 2 || left > this.left + this.plot) return;
      const wide = Math.max(2, right - left - 0.5), y = top + tasks.tracks[place] * high, tall = Math.max(1, high - (high > 4 ? 1 : 0));
      pen.fillStyle = this.inks[KINDS[tasks.kinds[place]]];
      pen.fillRect(left, y, wide, tall);
      if (row === this.lane && place === this.task) {
        pen.strokeStyle = this.inks.focus;
        pen.lineWidth = 2;
        pen.strokeRect(left - 1, y - 1, wide + 2, tall + 2);
      }
    });
  }

  lines() {
    const { pen } = this, bottom = AXIS + this.view.lanes.length * this.rowHeight;
    for (const mark of this.view.marks) {
      const x = Math.round(this.x(moment(mark.at))) + 0.5;
      pen.strokeStyle = pen.fillStyle = this.inks[mark.kind];
      pen.lineWidth = mark.kind === "normal" ? 1 : 1.5;
      pen.setLineDash(mark.kind === "normal" ? [2, 4] : [6, 3]);
      pen.beginPath();
      pen.moveTo(x, AXIS - 8);
      pen.lineTo(x, bottom);
      pen.stroke();
      pen.setLineDash([]);
      pen.beginPath();
      pen.moveTo(x - 5, AXIS - 14);
      pen.lineTo(x + 5, AXIS - 14);
      pen.lineTo(x, AXIS - 5);
      pen.fill();
    }
  }

  selection() {
    const { pen, brushing: [from, to] } = this, [left, right] = [from.x, to.x].sort((a, b) => a - b);
    const [first, last] = [this.row(from.y), this.row(to.y)].sort((a, b) => a - b);
    const top = AXIS + Math.max(0, first) * this.rowHeight, height = (last - Math.max(0, first) + 1) * this.rowHeight;
    pen.globalAlpha = 0.15;
    pen.fillStyle = this.inks.focus;
    pen.fillRect(left, top, right - left, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = this.inks.focus;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, top + 0.5, right - left, height - 1);
  }

  // Moving.

  move_to(begin, end) {
    const length = Math.max(LEAST, Math.min(end - begin, (this.last - this.first) * 1.5)), slack = (this.last - this.first) / 4;
    const start = Math.max(this.first - slack, Math.min(begin, this.last + slack - length));
    [this.begin, this.end] = [start, start + length];
    this.draw();
    this.load(WAIT);
  }

  zoom(factor, at) {
    if (!this.view) return;
    this.move_to(at - (at - this.begin) * factor, at + (this.end - at) * factor);
  }

  pan(share) {
    if (!this.view) return;
    const by = (this.end - this.begin) * share;
    this.move_to(this.begin + by, this.end + by);
  }

  reset() {
    [this.begin, this.end] = [NaN, NaN];
    if (this.view) [this.begin, this.end] = [this.first, this.last];
    this.draw();
    this.load();
  }

  page(by) {
    this.offset = Math.max(0, this.offset + by * 24);
    this.lane = 0;
    this.task = null;
    this.load();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  wheel(event) {
    if (!this.view) return;
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) this.pan(sideways / this.plot);
    else this.zoom(Math.exp(Math.max(-100, Math.min(100, event.deltaY)) / 300), this.time(this.place(event).x));
  }

  down(event) {
    if (!this.view || event.button) return;
    const at = this.place(event);
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size > 1) { this.pinch(); return; }
    this.canvas.setPointerCapture?.(event.pointerId);
    this.drag = { from: at, begin: this.begin, end: this.end, isBrush: event.shiftKey, isMoved: false };
  }

  pinch() {
    const [one, other] = [...this.pointers.values()];
    const apart = Math.max(10, Math.abs(one.x - other.x)), middle = (one.x + other.x) / 2;
    if (this.apart) this.zoom(this.apart / apart, this.time(middle));
    this.apart = apart;
    this.drag = null;
  }

  move(event) {
    if (!this.view) return;
    const at = this.place(event), { drag } = this;
    if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, at);
    if (this.pointers.size > 1) { this.pinch(); return; }
    if (!drag) { this.hover(at); return; }
    if (Math.hypot(at.x - drag.from.x, at.y - drag.from.y) > MOVED) drag.isMoved = true;
    if (!drag.isMoved) return;
    this.tip.hidden = true;
    if (drag.isBrush) { this.brushing = [drag.from, at]; this.draw(); return; }
    const by = ((drag.from.x - at.x) / this.plot) * (drag.end - drag.begin);
    this.move_to(drag.begin + by, drag.end + by);
  }

  up(event) {
    const { drag } = this, at = this.place(event);
    this.cancel(event);
    if (!drag) return;
    if (!drag.isMoved) { this.click(at); return; }
    if (!drag.isBrush) return;
    const [left, right] = [drag.from.x, at.x].sort((a, b) => a - b), [first, last] = [this.row(drag.from.y), this.row(at.y)].sort((a, b) => a - b);
    const lanes = this.view.lanes.slice(Math.max(0, first), last + 1);
    if (lanes.length) this.brush(this.time(Math.max(left, this.left)), this.time(right), lanes);
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.apart = 0;
    this.drag = null;
    this.brushing = null;
    this.draw();
  }

  leave() { this.tip.hidden = true; }

  // What is at a place.

  hit({ x, y }) {
    const row = this.row(y), lane = this.view.lanes[row], at = this.time(x);
    if (!lane || y < AXIS || x < this.left) return { row, lane: y < AXIS ? undefined : lane };
    if (lane.bins) return { row, lane, bin: Math.floor((at - this.began) / this.width) };
    const { tasks } = lane, slack = 3 * (this.end - this.begin) / this.plot, high = (LANE - 8) / lane.height;
    const track = Math.floor((y - this.top(row) - 4) / high);
    const near = tasks.ids.map((_, place) => place).filter((place) =>
      this.began + tasks.begins_ms[place] - slack <= at && at <= this.began + tasks.ends_ms[place] + slack);
    const task = near.find((place) => tasks.tracks[place] === track) ?? near[0];
    return { row, lane, task };
  }

  words({ lane, task, bin }) {
    if (task !== undefined) {
      const { tasks } = lane, long = tasks.ends_ms[task] - tasks.begins_ms[task];
      return `${this.view.functions[tasks.functions[task]]}: ${KINDS[tasks.kinds[task]]}, ${span(long)}`;
    }
    if (bin >= 0 && bin < lane?.bins?.running.length) {
      const { running, finished, failed } = lane.bins;
      return `${span(this.width)}: about ${+running[bin].toPrecision(3)} at a time, ${number.format(finished[bin])} finished, ${number.format(failed[bin])} failed`;
    }
    return "";
  }

  hover(at) {
    const apart = (mark) => Math.abs(this.x(moment(mark.at)) - at.x);
    const mark = this.view.marks.filter((one) => apart(one) < 5).sort((a, b) => apart(a) - apart(b))[0];
    const found = this.hit(at), label = at.x < this.left && found.lane ? `${found.lane.label} ${found.lane.note}` : "";
    const words = mark ? `${mark.about}: ${mark.title}` : label || this.words(found);
    this.tip.textContent = words;
    this.tip.hidden = !words;
    const room = this.find(".stage").clientWidth;
    this.tip.style.left = `${Math.max(0, Math.min(at.x + 12, room - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${at.y + 16}px`;
  }

  click(at) {
    const found = this.hit(at);
    if (!found.lane) return;
    this.lane = found.row;
    this.task = found.task ?? null;
    this.draw();
    if (found.task !== undefined) this.open(found.lane.tasks.ids[found.task], found.lane.tasks.attempts[found.task]);
    else if (found.bin !== undefined) {
      const begin = this.began + found.bin * this.width;
      this.brush(begin, begin + this.width, [found.lane]);
    }
  }

  // The keyboard.

  key(event) {
    if (!this.view || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), ArrowUp: () => this.walk(-1),
      ArrowDown: () => this.walk(1), "+": () => this.act("in"), "=": () => this.act("in"), "-": () => this.act("out"),
      0: () => this.reset(), n: () => this.next(1), p: () => this.next(-1), Enter: () => this.enter(), Escape: () => this.close() };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  walk(by) {
    const { lanes } = this.view;
    if (!lanes.length) return;
    this.lane = Math.max(0, Math.min(lanes.length - 1, this.lane + by));
    this.task = null;
    const lane = lanes[this.lane];
    this.say(`${lane.label}: ${counted(lane.attempts, "task attempt")}, ${number.format(lane.failed)} failed. Enter shows them${lane.tasks ? ", n goes to the next one" : ""}.`);
    this.draw();
  }

  next(by) {
    const lane = this.view.lanes[this.lane];
    if (!lane?.tasks) return;
    const last = lane.tasks.ids.length - 1, from = this.task ?? (by > 0 ? -1 : last + 1);
    this.task = Math.max(0, Math.min(last, from + by));
    this.say(`${this.words({ lane, task: this.task })}. Enter opens it.`);
    this.draw();
  }

  enter() {
    const lane = this.view.lanes[this.lane];
    if (!lane) return;
    if (lane.tasks && this.task !== null) this.open(lane.tasks.ids[this.task], lane.tasks.attempts[this.task]);
    else this.brush(this.begin, this.end, [lane]);
  }

  // What is opened below.

  async opened(title, make) {
    this.opening?.abort();
    const opening = this.opening = new AbortController(); // its own: zooming meanwhile asks for another view, not for another card
    const heading = element("h3", title, { tabindex: "-1" });
    const body = element("div", "", {}, [element("p", "Loading…", { class: "quiet" })]);
    const close = element("button", "Close", { type: "button" });
    close.addEventListener("click", () => this.close());
    this.panel.replaceChildren(element("header", "", {}, [heading, close]), body);
    this.panel.hidden = false;
    heading.focus({ preventScroll: true });
    try {
      const parts = await make(heading, opening.signal);
      if (opening === this.opening) body.replaceChildren(...parts);
    } catch (error) {
      if (opening === this.opening) body.replaceChildren(element("p", `That could not be read: ${error.message}`, { class: "note bad" }));
    }
  }

  close() {
    this.opening?.abort();
    this.opening = null;
    this.panel.hidden = true;
    this.panel.replaceChildren();
    this.canvas.focus({ preventScroll: true });
  }

  open(id, attempt) {
    return this.opened("Task", async (heading, signal) => {
      const card = await this.ask(`tasks/${encodeURIComponent(id)}`, new URLSearchParams({ attempt }), signal);
      heading.textContent = `${card.name} · ${card.state.toLowerCase()}`;
      const took = card.started_at && card.ended_at ? span(moment(card.ended_at) - moment(card.started_at)) : "";
      const facts = [["Started", when(card.started_at)], ["Ended", when(card.ended_at)], ["Ran for", took],
        ["Attempt", `${card.attempt_number + 1} of ${card.attempts.length}`], ["Asked for", Object.entries(card.resources).map(([name, value]) => `${name} ${value}`).join(", ")],
        ["Worker", card.worker_pid ? `pid ${card.worker_pid}` : ""], ["Node", card.node_id], ["Actor", card.actor_id], ["Task", card.task_id], ["Called at", card.call_site]];
      const list = element("dl", "", {}, facts.filter(([, value]) => value).map(([name, value]) =>
        element("div", "", {}, [element("dt", name), element("dd", value)])));
      const error = card.error_message || card.error_type;
      return [list, ...(error ? [element("h4", card.error_type ?? "Error"), element("pre", error, { class: "error", tabindex: "0" })] : []), ...logs(card.logs),
        ...(card.logs.length ? [] : [element("p", "It wrote nothing that is kept.", { class: "quiet" })])];
    });
  }

  brush(begin, end, lanes) {
    return this.opened("Tasks", async (heading, signal) => {
      const params = this.params({ start: iso(begin), end: iso(Math.max(end, begin + LEAST)), lanes: lanes.map((lane) => lane.id).join(",") });
      const found = await this.ask(`${this.root.dataset.scope}/tasks`, params, signal);
      heading.textContent = `${counted(found.total, "task attempt")} in ${span(end - begin)}${lanes.length === 1 ? ` of ${lanes[0].label}` : ` of ${lanes.length} lanes`}`;
      this.root.dataset.brushed = String(found.total);
      const left = [found.left_out ? `${number.format(found.left_out)} attempts are not listed` : "",
        found.log_bytes_left_out ? `${number.format(found.log_bytes_left_out)} bytes of their logs are left out` : "",
        found.without_output ? `${number.format(found.without_output)} have no log lines of their own` : ""].filter(Boolean);
      const items = found.tasks.map((task) => {
        const button = element("button", `${task.name} · ${task.state.toLowerCase()}`, { type: "button", class: task.state === "FAILED" ? "bad" : null });
        button.addEventListener("click", () => this.open(task.task_id, task.attempt_number));
        const long = task.end ? `, ${span(moment(task.end) - moment(task.begin))}` : "";
        return element("li", "", {}, [button, element("span", ` +${span(moment(task.begin) - this.first)}${long} ${task.error}`, { class: "quiet" }), ...logs(task.logs)]);
      });
      return [...(left.length ? [element("p", `${left.join("; ")}.`, { class: "quiet" })] : []), element("ol", "", { class: "brushed" }, items)];
    });
  }
}

const when = (text) => (text ? clock.format(new Date(text)) : "");

function logs(all) {
  return all.map((log) => element("div", "", { class: "log" }, [
    element("p", "", {}, [element("a", log.file, { href: log.href }), log.is_own ? "" : " · the end of what its worker wrote",
      log.left_out_bytes ? ` · ${number.format(log.left_out_bytes)} bytes before this` : ""]),
    element("pre", log.lines.join("\n"), { class: log.stream === "err" ? "error" : null, tabindex: "0" }),
  ]));
}

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle; else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

for (const root of document.querySelectorAll("[data-timeline]")) new Timeline(root);
