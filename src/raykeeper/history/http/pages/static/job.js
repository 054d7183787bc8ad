// What a script adds to the page of a job: copying its report, and a page that keeps up with a job that runs.

for (const link of document.querySelectorAll("a[data-copies-text]")) {
  if (!navigator.clipboard) continue; // then it is a link to the text
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    const answer = await fetch(link.href);
    if (!answer.ok) return;
    await navigator.clipboard.writeText(await answer.text());
    const words = link.textContent;
    link.textContent = "Copied";
    setTimeout(() => { link.textContent = words; }, 1500);
  });
}

const EVERY_MS = 5000;
const PARTS = [".job-head", ".tabs", ".tab"];
const isKeptByItself = (part) => part.querySelector("[data-timeline], .viewer"); // by a module of its own
const isUsed = (part) => part.contains(document.activeElement) || part.querySelector("details[open]")
  || [...part.querySelectorAll("input[data-narrows]")].some((box) => box.value)
  || (!getSelection().isCollapsed && getSelection().containsNode(part, true));
let isBehind = false; // something that is used was left as it was

// The page is asked for again while its job runs; what somebody reads or types in is left alone.
async function renew() {
  if (!isBehind && !document.querySelector(".job-head[data-live]")) return;
  if (document.visibilityState === "visible") {
    try {
      const answer = await fetch(location.href);
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the server is away: the next time */ }
  }
  setTimeout(renew, EVERY_MS);
}

function show(page) {
  isBehind = false;
  for (const name of PARTS) {
    const part = document.querySelector(name), next = page.querySelector(name);
    if (!part || !next || isKeptByItself(part)) continue;
    if (isUsed(part)) isBehind = true; else part.replaceWith(next);
  }
  document.dispatchEvent(new Event("keeper:shown"));
}
setTimeout(renew, EVERY_MS);
