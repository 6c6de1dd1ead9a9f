"""Write the generated pages of the reference: docs/reference/api/ and docs/reference/command-line/.

python tools/reference.py            # write the pages, and delete pages of names that are gone
python tools/reference.py --check    # print the pages that differ; exit 1 if there are any
"""

import argparse
import sys
from pathlib import Path

import api
import command_pages

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS = {"reference/api": api.pages, "reference/command-line": command_pages.pages}


def stale(docs: Path = DOCS) -> list[str]:
    """Return the generated pages that are not what the code says now: changed, missing, or of a name that is gone."""
    found = []
    for folder, make in FOLDERS.items():
        made, there = make(), {path.name: path.read_text(encoding="utf-8") for path in (docs / folder).glob("*.md")}
        found += [f"{folder}/{name}" for name in sorted({*made, *there}) if made.get(name) != there.get(name)]
    return found


def write(docs: Path = DOCS) -> None:
    """Write all pages, and delete what is in their folders beside them."""
    for folder, make in FOLDERS.items():
        (docs / folder).mkdir(parents=True, exist_ok=True)
        made = make()
        for path in (docs / folder).glob("*.md"):
            if path.name not in made:
                path.unlink()
        for name, text in made.items():
            (docs / folder / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Write the pages, or say which are stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    if not parser.parse_args().check:
        write()
        return 0
    found = stale()
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
