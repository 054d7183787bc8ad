// What a script adds to pages that are whole without one. The bar for this file is 4 kB.

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Times in the reader's zone, with UTC at hand.
for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime);
  if (Number.isNaN(moment.valueOf())) continue;
  time.title = `${time.textContent} (shown in ${zone})`;
  time.textContent = local.format(moment);
}

// A table narrowed to the rows that have all typed words.
for (const box of document.querySelectorAll("input[data-narrows]")) {
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
