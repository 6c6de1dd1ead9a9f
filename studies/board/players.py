"""The players of the scoreboard: LC-Tsallis-INF in its tunings, and rivals, each in several usual tunings."""

from typing import Any

import bothworlds as bw

RETIRED = ("LC-Tsallis-INF adaptive",)  # existing results still count


def ours() -> dict[str, Any]:
    """Return the rows of LC-Tsallis-INF; c = 1/8 is the paper's constant."""
    tunings: list[Any] = [bw.Paper(), bw.Certified(), bw.Matched()]
    return {
        **{f"LC-Tsallis-INF {type(tuning).__name__.lower()}": bw.LCTsallisINF(tuning=tuning) for tuning in tunings},
        "LC-Tsallis-INF certified, c = 1/8": bw.LCTsallisINF(tuning=bw.Certified(c=0.125)),
    }


def rivals(horizon: int) -> dict[str, Any]:
    """Return the rivals; the horizon is an option of some."""
    return {
        **{f"LinUCB {width:g}": bw.LinUCB(width=width) for width in (0.1, 0.25, 0.5, 1.0)},
        **{f"LinTS {spread:g}": bw.LinTS(spread=spread, draws=1) for spread in (0.1, 0.3, 0.6)},
        **{f"D-LinUCB {discount:g}": bw.DLinUCB(discount=discount) for discount in (0.999, 0.995, 0.98)},
        **{f"SW-LinUCB {window:,}": bw.SWLinUCB(window=window) for window in (300, 1_000, 3_000)},
        "SquareCB": bw.SquareCB(),
        "OFUL": bw.OFUL(delta=1.0 / horizon),
        "RealLinExp3": bw.RealLinExp3(horizon=horizon, features="arm-dependent"),
        "RealFTRL": bw.RealFTRL(horizon=horizon),
        "Tsallis-INF per context": bw.PerContextTsallisINF(),
    }
