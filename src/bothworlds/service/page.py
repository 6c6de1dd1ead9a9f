"""The first page: how every experiment is doing, on one page without scripts."""

from html import escape

from bothworlds.service.service import Service

POLICY = [("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'")]


def page(service: Service, name: str | None) -> str:
    """Return the page of an experiment."""
    return f"<!doctype html><title>{escape(service.of(name).name)}</title>"
