"""What axe-core, run inside a page, and the page's own size say against it."""

from __future__ import annotations

from typing import Any

from bed.npm import npm_modules
from history.browser.tab import Tab

_RUN = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations.map(
    each => ({rule: each.id, help: each.help, where: each.nodes.slice(0, 5).map(node => node.html.slice(0, 200))})))"""
_OVERFLOW = """(() => {
  const wide = document.documentElement.scrollWidth, seen = document.documentElement.clientWidth;
  if (wide <= seen) return "";
  const over = [...document.querySelectorAll("body *")].filter(
      each => each.getBoundingClientRect().right > seen + 1 && !each.closest(".wide"));
  return `${wide} px in a window of ${seen}: ${over.slice(0, 3).map(each => each.outerHTML.slice(0, 120)).join(" | ")}`;
})()"""


async def install_axe(tab: Tab) -> None:
    """Have axe-core in the page that is open; the browser's own door is not closed by the page's policy."""
    await tab.run((npm_modules("axe") / "axe-core" / "axe.min.js").read_text())


async def barriers_of(tab: Tab) -> list[str]:
    """One sentence for each rule that the page breaks as it is shown now."""
    violations: list[dict[str, Any]] = await tab.value_of(_RUN)
    return [f"{found['rule']}: {found['help']}: {found['where']}" for found in violations]


async def overflow_of(tab: Tab) -> list[str]:
    """What is wider than the window; only a table may be, inside a box of its own."""
    overflow = await tab.value_of(_OVERFLOW)
    return [f"overflow: {overflow}"] if overflow else []
