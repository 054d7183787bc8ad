"""The frame of our own pages: no script, nothing from elsewhere. Pure."""

from __future__ import annotations

from html import escape

from starlette.responses import HTMLResponse

# Inline style is all a page needs; whatever else a name in a bucket might smuggle in is not run or loaded.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
_HEADERS = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1c2733 }
h1 { font-size: 1.4rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .45rem .8rem .45rem 0; border-bottom: 1px solid #dde3ea; vertical-align: top }
th { font-weight: 600; color: #5b6b7c }
a { color: #0b63ce; text-decoration: none }
a:hover { text-decoration: underline }
.state { border-radius: .8rem; padding: .1rem .6rem; font-size: .85rem; background: #e6ebf1 }
.running { background: #d6f3df }
.crashed { background: #fde0dd }
.note { background: #fff4d6; border-radius: .4rem; padding: .6rem .9rem }
.quiet { color: #5b6b7c }
h2 { font-size: 1.1rem; overflow-wrap: anywhere }
pre { background: #f4f6f9; padding: .6rem .9rem; white-space: pre-wrap; overflow-wrap: anywhere }
"""


def page_response(title: str, body: str, status: int = 200) -> HTMLResponse:
    """A whole page; `body` is HTML already."""
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )
    return HTMLResponse(html, status, _HEADERS)


def message_response(title: str, text: str, status: int) -> HTMLResponse:
    """A page that says one thing, with the way back to the list."""
    body = f'<h1>{escape(title)}</h1><p>{escape(text)}</p><p><a href="/">All sessions</a></p>'
    return page_response(title, body, status)
