// What a script adds to pages that are whole without one. The bar for this file is 4 kB.

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Times in the reader's zone, with UTC at hand; how long ago something was goes on while the page is open.
const units = [[86400, "d"], [3600, "h"], [60, "min"]];
const ago = (moment) => {
  const seconds = (Date.now() - moment) / 1000;
  const [size, name] = units.find(([least]) => seconds >= least) ?? [];
  return size ? `${Math.floor(seconds / size)}\u00a0${name} ago` : "just now";
};
const tellTimes = () => {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.valueOf())) continue;
    const isAgo = "ago" in time.dataset;
    if (!time.dataset.utc) {
      time.dataset.utc = isAgo ? time.title : time.textContent;
      time.title = isAgo ? `${local.format(moment)} (${time.title})` : `${time.dataset.utc} (shown in ${zone})`;
      if (!isAgo) time.textContent = local.format(moment);
    }
    if (isAgo) time.textContent = ago(moment);
  }
};
setInterval(tellTimes, 15_000);

// A table narrowed to the rows that have all typed words.
const narrow = () => {
  for (const box of document.querySelectorAll("[hidden] > input[data-narrows]")) {
    const rows = document.getElementById(box.dataset.narrows)?.tBodies[0]?.rows;
    if (!rows) continue;
    const told = box.parentElement.querySelector("[role=status]");
    box.parentElement.hidden = false;
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      told.textContent = words.length ? `${shown} of ${rows.length}` : "";
    });
  }
};
for (const dress of [tellTimes, narrow]) {
  dress();
  document.addEventListener("keeper:shown", dress); // a module has put something new on the page
}

// Buttons that copy an address relative to this page.
for (const button of document.querySelectorAll("button[data-copies]")) {
  if (!navigator.clipboard) continue; // only pages from localhost or over TLS may write it
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(new URL(button.dataset.copies, location.href).href);
    const words = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 1500);
  });
}

// The switch between light and dark; what was chosen is remembered here and nowhere else.
const root = document.documentElement;
for (const button of document.querySelectorAll("button[data-switches=theme]")) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const tell = () => {
    button.textContent = isDark() ? "☀" : "☾";
    button.ariaLabel = button.title = isDark() ? "Light theme" : "Dark theme";
  };
  tell();
  system.addEventListener("change", tell);
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* it lasts until the next page */ }
    tell();
  });
}

// "/" leads to the search box from wherever nothing is typed.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest?.("input, textarea, select")) return;
  event.preventDefault();
  document.querySelector(".find input")?.focus();
});
