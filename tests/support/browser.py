"""A browser without a window, for tests that look at pages."""

CHROMIUM = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu"]
BROWSER = [*CHROMIUM, "--enable-logging=stderr", "--dump-dom"]  # prints a page as its scripts have left it
