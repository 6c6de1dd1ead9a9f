"""What a page of the dashboard shows, as it stands in its address."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode

from bothworlds.service.time_buckets import RANGES

OVERVIEW, ARMS, SERVICE = "overview", "arms", "service"
VIEWS: Mapping[str, str] = {OVERVIEW: "Overview", ARMS: "Arms and contexts", SERVICE: "Service"}
ALL = "all"


class View(NamedTuple):
    """A page: experiment (None: the first), decision, name of the view, range of time, and context."""

    experiment: str | None = None
    decision: str | None = None
    name: str = OVERVIEW
    range: str = ALL
    context: str | None = None

    @property
    def href(self) -> str:
        """The address of the page, escaped."""
        words = {
            "experiment": self.experiment,
            "decision": self.decision,
            "view": None if self.name == OVERVIEW else self.name,
            "range": None if self.range == ALL else self.range,
            "context": self.context,
        }
        given = {name: value for name, value in words.items() if value is not None}
        return escape(f"/?{urlencode(given)}" if given else "/")


def view_of(query: Mapping[str, Sequence[str]]) -> View:
    """Return the view that the query of an address asks for; unknown views and ranges stand for the default.

    >>> view_of({"view": ["arms"], "range": ["1 h"], "experiment": ["ads"]})
    View(experiment='ads', decision=None, name='arms', range='1 h', context=None)
    >>> view_of({"view": ["absent"], "range": ["1 year"]})
    View(experiment=None, decision=None, name='overview', range='all', context=None)
    """
    given = {name: values[0] for name, values in query.items()}
    name, span = given.get("view", OVERVIEW), given.get("range", ALL)
    return View(
        given.get("experiment"),
        given.get("decision"),
        name if name in VIEWS else OVERVIEW,
        span if span in RANGES else ALL,
        given.get("context"),
    )


def link(experiment: str, *, decision: str | None = None) -> str:
    """Return the address of the page of an experiment or of one of its decisions, escaped."""
    return View(experiment, decision).href


def choices(label: str, items: Sequence[tuple[str, str, bool]]) -> str:
    """Return links of which one is the current one: address, words, and whether it is."""
    links = [f'<a href="{href}"{" aria-current=page" if now else ""}>{word}</a>' for href, word, now in items]
    return f'<nav class="choices" aria-label="{escape(label)}">{"".join(links)}</nav>'
