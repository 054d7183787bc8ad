// Keeps lists on a page current: asks for their JSON, and where that has changed takes them from the page itself.
// Nobody looks: nothing is asked. The page is whole without this file.

const EVERY_MS = 5_000;
const source = document.querySelector("[data-live]")?.dataset.live;
let known = ""; // nobody knows what the page was made from, so the first look always shows

async function look() {
  if (document.hidden) return;
  const answer = await fetch(source, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const told = await answer.text();
  const isRunning = /"outcome":"running/.test(told);
  const isWaiting = document.querySelector("[data-unknown]"); // numbers that were not counted yet
  if ((isWaiting || told !== known || isRunning) && !(await show())) return;
  known = told;
}

async function show() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-fresh]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh || fresh.innerHTML === part.innerHTML) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceChildren(...fresh.childNodes);
    if (focused) part.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus(); // a keyboard stays where it was
  }
  document.dispatchEvent(new Event("keeper:shown"));
  return true;
}

if (source) setInterval(() => look().catch(() => { /* the server is away: the next look may find it */ }), EVERY_MS);
