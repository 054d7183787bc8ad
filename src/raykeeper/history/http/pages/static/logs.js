// What a script adds to the viewer of logs: filtering as one types, jumping between errors, and following.

const viewer = document.querySelector(".viewer");
const log = viewer?.querySelector(".log");
const told = viewer?.querySelector("[role=status]");
const box = viewer?.querySelector("input[name=filter]");
const ROWS_LIMIT = 5000;
const rows = () => [...log.querySelectorAll(".row:not([hidden])")];

// "#L123" of a line that is on another part of the file.
const wanted = /^#L(\d+)$/.exec(location.hash);
if (log && wanted && !document.getElementById(wanted[0].slice(1)) && !new URLSearchParams(location.search).has("line")) {
  location.replace(log.dataset.lineHref + wanted[1] + location.hash);
}

// Lines that are still being counted get their numbers as soon as they have some. Lines that came by following are on
// no page: where there may be some, all stay as they are.
async function number(tries) {
  if (source || isGrown) return;
  const answer = await fetch(location.href);
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".log");
  if (source || isGrown) return;
  if (next && !("counting" in next.dataset)) {
    log.replaceChildren(...next.childNodes);
    delete log.dataset.counting;
    told.textContent = "";
  } else if (tries) {
    setTimeout(() => number(tries - 1), 2000);
  }
}
if (log && "counting" in log.dataset) setTimeout(() => number(30), 1000);

box?.addEventListener("input", () => {
  const words = box.value.toLowerCase();
  const all = [...log.querySelectorAll(".row")];
  for (const row of all) row.hidden = !row.querySelector(".text").textContent.toLowerCase().includes(words);
  told.textContent = words ? `${rows().length} of ${all.length} lines here; Enter looks in the whole file` : "";
});

// The next or previous error on this page; beyond it, the link leads on.
function jump(step) {
  const all = rows();
  const at = all.findIndex((row) => row.matches(".current")) + 1 || all.findIndex((row) => row.matches(".here, :target")) + 1;
  const ahead = step > 0 ? all.slice(at) : all.slice(0, Math.max(0, at - 1)).reverse();
  const found = ahead.find((row) => row.matches(".error"));
  if (!found) return false;
  log.querySelector(".current")?.classList.remove("current");
  found.classList.add("current");
  found.scrollIntoView({ block: "center" });
  if (found.id) history.replaceState(null, "", `#${found.id}`);
  return true;
}
const next = viewer?.querySelector("[data-jumps=next]");
next?.addEventListener("click", (event) => { if (jump(1)) event.preventDefault(); });
log?.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "n" && !jump(1)) next.click();
  if (event.key === "p") jump(-1);
  if (event.key === "w") viewer.querySelector(".wraps").click();
  if (event.key === "f") { event.preventDefault(); box.focus(); }
});

// How lines are wrapped is remembered here and nowhere else.
const wraps = viewer?.querySelector(".wraps");
try { if (wraps) wraps.checked = localStorage.getItem("wrap") !== "off"; } catch { /* as it is */ }
wraps?.addEventListener("change", () => {
  try { localStorage.setItem("wrap", wraps.checked ? "on" : "off"); } catch { /* it lasts until the next page */ }
});

const follow = viewer?.querySelector("[data-follows]");
const FOLLOWING = "Following: new lines appear here.";
let source = null, isGrown = false;
function stop(words) {
  source?.close();
  source = null;
  follow.textContent = "Follow";
  told.textContent = words;
}
function start() {
  source = new EventSource(follow.dataset.follows);
  follow.textContent = "Stop following";
  told.textContent = FOLLOWING;
  source.addEventListener("message", (event) => {
    isGrown = true;
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 60;
    const part = document.createElement("template");
    part.innerHTML = JSON.parse(event.data).rows;
    log.querySelector(":scope > p")?.remove();
    log.append(part.content);
    while (log.children.length > ROWS_LIMIT) log.firstElementChild.remove();
    const [offset, line] = event.lastEventId.split(":");
    const address = new URL(follow.dataset.follows, location.href);
    address.searchParams.set("start", offset);
    address.searchParams.set("line", line);
    follow.dataset.follows = address.pathname + address.search;
    if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight);
  });
  source.addEventListener("open", () => { told.textContent = FOLLOWING; });
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CONNECTING) told.textContent = "The connection broke: trying again.";
    else stop("Not following: the server refused. It may be busy, or you may be signed out. Press Follow to try again.");
  });
  source.addEventListener("end", () => {
    stop("The session ended: this is all of the log.");
    follow.hidden = true;
  });
}
if (follow) {
  follow.hidden = false;
  follow.addEventListener("click", () => (source ? stop("") : start()));
  start();
}
