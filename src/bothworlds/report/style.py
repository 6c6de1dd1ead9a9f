"""Style of the page: plain text that goes into it, nothing is fetched."""

from bothworlds.report.palette import DARK, LIGHT

BASE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f7f7f5;--ink:#1c1d1f;--soft:#5d6066;--rule:#d9d9d4;--grid:#e4e4df;
--good:#e2f1ea;--link:#00639b;--shade:#0003}
@media (prefers-color-scheme:dark){:root{--paper:#15171a;--card:#1d2024;--ink:#e9e9e6;--soft:#a7abb2;--rule:#3a3e45;
--grid:#2c3036;--good:#16382c;--link:#7cc0f2;--shade:#000a}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:clamp(1.5rem,4vw,2.1rem);line-height:1.2;margin:.5rem 0}
h2{font-size:1.35rem;margin:2.8rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}
h3{font-size:1.02rem;margin:1.4rem 0 .4rem}
p{max-width:75ch;margin:.5rem 0}
a{color:var(--link)}
.lead{font-size:1.08rem}
.soft,figcaption,caption,.caption,small{color:var(--soft)}
figcaption,caption,.small,.caption{font-size:.88rem}
nav{margin:.8rem 0;font-size:.95rem}
nav a{display:inline-block;margin-right:1rem}
h1,h2,nav,.legend,.lead,.regimes,.plainly,figcaption,tbody,tbody th,code{overflow-wrap:anywhere}
.caption{margin:.9rem 0 0}
.scroll{overflow-x:auto;max-width:100%;margin:.2rem 0 .6rem;
background:linear-gradient(to left,var(--paper) 2rem,transparent) right/4rem 100% no-repeat local,
linear-gradient(to left,var(--shade),transparent) right/1.1rem 100% no-repeat scroll}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.2rem 0 .5rem;caption-side:top}
th,td{padding:.38rem .8rem .38rem .3rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--paper)}
thead th{font-weight:600;vertical-align:bottom;white-space:normal;line-height:1.25;border-bottom:2px solid var(--rule)}
thead th+th{min-width:4.4rem}
tbody th{font-weight:500;white-space:normal;min-width:8rem;max-width:21rem}
td small{display:block;line-height:1.2}
td.best{background:var(--good);font-weight:650}
.key{display:inline-block;width:30px;height:12px;vertical-align:-1px;margin-right:.45rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:1rem;margin:.6rem 0}
figure{margin:0;background:var(--card);border-radius:10px;padding:.7rem .7rem .5rem}
figure svg{width:100%;height:auto;display:block}
figure{position:relative}figure.strip{max-width:900px}
figure svg:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:6px}
.cross{stroke:var(--soft);stroke-width:1;fill:none}
.dot{fill:var(--c);stroke:var(--card);stroke-width:1}.whisker{stroke:var(--c);opacity:.55;fill:none}
svg text.end{fill:var(--c);font-size:12px;font-weight:600}svg text.name{font-size:11.5px}
.tip{position:absolute;top:2.2rem;right:.8rem;max-width:72%;background:var(--paper);border:1px solid var(--rule);
border-radius:8px;padding:.4rem .6rem;font-size:.8rem;line-height:1.35;pointer-events:none;
box-shadow:0 2px 8px var(--shade)}
.tip.left{right:auto;left:3.2rem}.tip dl{display:grid;grid-template-columns:auto auto;gap:0 .7rem;margin:.2rem 0 0}
.tip dt{color:var(--c);font-weight:600;overflow-wrap:anywhere}.tip dd{margin:0;text-align:right;white-space:nowrap}
button.sort{font:inherit;color:inherit;background:none;border:0;padding:0;margin:0;cursor:pointer;text-align:inherit}
button.sort:focus-visible{outline:2px solid var(--link);outline-offset:2px}
th[aria-sort]{white-space:nowrap}th[aria-sort] button::after{content:" \\25B2";font-size:.7em}
th[aria-sort=descending] button::after{content:" \\25BC"}
.plainly{font-size:1.02rem;margin:.3rem 0}
.legend{display:flex;flex-wrap:wrap;gap:.3rem .5rem;margin:.4rem 0;padding:0;list-style:none}
.legend button{font:inherit;font-size:.9rem;color:inherit;background:none;border:1px solid var(--rule);
border-radius:1.1rem;padding:.15rem .7rem .15rem .5rem;cursor:pointer;text-align:left}
.legend button:focus-visible{outline:2px solid var(--link);outline-offset:1px}
.legend button[aria-pressed=false]{opacity:.4;text-decoration:line-through}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
svg .note{font-size:11px;paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.axis{stroke:var(--soft);fill:none}.grid{stroke:var(--grid);fill:none}
.line{fill:none;stroke:var(--c);stroke-width:2.1;stroke-linejoin:round}
.thin{stroke-width:1.6;stroke-linecap:round}
.band{fill:var(--c);opacity:.14}
.mark{fill:var(--soft);opacity:.15}
.rule{stroke:var(--c,var(--soft));stroke-dasharray:2 3;fill:none}
.off{display:none}
.policies{display:flex;flex-wrap:wrap;gap:1rem 1.6rem;overflow-x:auto}
.policies table{font-size:.82rem}
.policies td,.policies th{padding:.15rem .45rem;text-align:center;border:1px solid var(--paper);min-width:0}
.policies td{min-width:2.9rem}.charts table{font-size:.86rem}.charts th,.charts td{padding-right:.55rem}
.policies caption{font-weight:600;color:var(--ink)}
.policies td{background:color-mix(in srgb,var(--c) calc(var(--p)*45%),var(--card))}
.policies td.star::after{content:"\\2009\\2605"}
details{margin:.8rem 0}summary{cursor:pointer;font-weight:600}
pre{background:var(--card);border-radius:10px;padding:.8rem 1rem;overflow-x:auto;
font:.85rem/1.45 ui-monospace,monospace}
.bar{display:inline-block;height:.7em;background:var(--c);border-radius:2px;vertical-align:baseline;margin-left:.5rem}
.bars td:last-child{text-align:left;min-width:9rem}
.warn{border-left:4px solid var(--c);background:var(--card);padding:.5rem .9rem;border-radius:0 8px 8px 0}
@media (max-width:600px){main{padding:.8rem .8rem 3rem}th,td{padding:.34rem .6rem .34rem .2rem;font-size:.9rem}
tbody th{max-width:8.5rem;min-width:6rem;line-height:1.25}.headline .key{display:block}
svg text{font-size:16px}svg .note,svg text.name{font-size:14.5px}svg text.end{font-size:15px}
.tip{font-size:.75rem;max-width:88%}}
@page{margin:14mm 13mm}
@media print{:root{color-scheme:light}html{font-size:11.5px}body{font-size:1rem}main{max-width:none;padding:0}
nav,.downloads,.tip,.cursor,.hint,.legend button[aria-pressed=false],.charts>div:empty{display:none}
figure,table,tr,.charts{break-inside:avoid}figure.strip{max-width:36rem}h2,h3,summary,.caption,.legend,section>.soft,details>.small{break-after:avoid}
.charts{grid-template-columns:1fr 1fr}figure{padding:0}
.legend{display:block;break-inside:avoid}.legend li{display:inline-block;margin:0 .6rem .3rem 0}
.policies{display:block;overflow:visible}.policies table{display:inline-table;margin:0 6mm 3mm 0;vertical-align:top}
.scroll{overflow:visible;background:none}th,td{padding:.2rem .5rem .2rem .2rem}p{max-width:none;orphans:4;widows:4}
td.best,.policies td,.mark,.bar{print-color-adjust:exact;-webkit-print-color-adjust:exact}pre{white-space:pre-wrap}}
"""

PRINT_PALETTE = (
    "@media print{:root{--paper:#fff;--card:#f7f7f5;--ink:#000;--soft:#444;--rule:#ccc;--grid:#ddd;--good:#e2f1ea;"
)


def stylesheet() -> str:
    """Return the style of the page: light, dark, and for print."""
    light = "".join(f"--c{i}:{colour};" for i, colour in enumerate(LIGHT))
    dark = "".join(f"--c{i}:{colour};" for i, colour in enumerate(DARK))
    classes = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(len(LIGHT)))
    night = f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{{light}}}{night}{BASE}{PRINT_PALETTE}{light}}}}}{classes}"
