// Before anything is painted: the theme that somebody chose here. Without one, or without a script, the system's counts.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* storage is switched off: the system's theme counts */ }
