"""Make tools/theme/fonts/stix-two-math.woff2, the font of the site's formulas, from that of STIX Two Math.

    npm pack @fontsource/stix-two-math@5.3.0 && tar xzf fontsource-stix-two-math-5.3.0.tgz
    pip install fonttools brotli
    python tools/math_font.py package/files/stix-two-math-latin-400-normal.woff2

Kept are the characters that formulas use, with all their sizes. Large roots are made as narrow as the small one: a
browser that follows MathML Core reserves the width of the widest root for every root, which leaves gaps in sentences.
Both changes are what the license permits, tools/theme/fonts/OFL.txt.
"""

import sys
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.ttLib import TTFont

TARGET = Path(__file__).parent / "theme" / "fonts" / "stix-two-math.woff2"
ROOT_SIGN = 0x221A
KEPT = """0020-007E 00A0-00FF 0300-030C 0332 0338 0370-03FF 2000-206F 20D0-20D7 2102 210D 210E 2113 2115 2118-211A 211D
2124 2190-2199 21A6 21D0-21D4 2200-22FF 2308-230B 23B4-23B5 23DC-23DF 27E8-27EB 27F5-27FA 2A7D-2A7E 1D400-1D467
1D49C-1D4CF 1D538-1D56B 1D6A4-1D6A5 1D6A8-1D71B 1D7CE-1D7D7"""


def characters() -> set[int]:
    """Return the code points of KEPT."""
    ends = [[int(end, 16) for end in part.split("-")] for part in KEPT.split()]
    return {code for part in ends for code in range(part[0], part[-1] + 1)}


def narrow_roots(font: Any) -> None:
    """Give every size of the root sign the width of the smallest."""
    variants = font["MATH"].table.MathVariants
    smallest = font.getBestCmap()[ROOT_SIGN]
    sizes = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(smallest)]
    names = {record.VariantGlyph for record in sizes.MathGlyphVariantRecord}
    names |= {part.glyph for part in sizes.GlyphAssembly.PartRecords}
    width = font["hmtx"][smallest][0]
    for name in names - {smallest}:
        glyph, scale = font["glyf"][name], width / font["hmtx"][name][0]
        glyph.coordinates.scale((scale, 1.0))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, glyph.xMin)


def main() -> None:
    """Write the font."""
    font = TTFont(sys.argv[1])
    options = subset.Options(layout_features=["*"], hinting=False)
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=characters())
    chosen.subset(font)
    narrow_roots(font)
    font.flavor = "woff2"
    font.save(TARGET)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
