"""The first page (filled below)."""
POLICY = [("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:")]
def page(service, name): return "<p>soon</p>"
