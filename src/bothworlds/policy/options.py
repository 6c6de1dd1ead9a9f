"""Error messages for unknown options of algorithms, with the option that was probably meant."""

import inspect
from difflib import get_close_matches
from typing import Any

# Options: a description, and their names in the literature and in other libraries.
SYNONYMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "width": ("its exploration width", ("alpha", "beta", "c", "exploration", "confidence")),
    "spread": ("the spread of its samples", ("alpha", "v", "nu", "sigma", "scale", "variance")),
    "ridge": ("its ridge penalty", ("lambda_", "lam", "lambd", "reg", "regularization", "l2", "l2_reg", "penalty")),
    "horizon": ("the number of rounds", ("T", "n_rounds", "rounds", "n_steps", "steps", "time_horizon")),
    "bound": ("the bound on its parameter", ("S", "norm", "norm_bound")),
    "tuning": ("the choice of its rates", ("eta", "gamma", "learning_rate", "exploration_rate", "lr")),
}
NOT_OPTIONS: dict[str, tuple[str, ...]] = {
    "the seed goes to start(problem, rng=...)": ("seed", "random_state", "rng"),
    "sizes and features are those of the problem, which goes to start(problem, rng=...)": (
        *("arms", "n_arms", "actions", "n_actions", "k", "K", "d", "dim", "dimension", "n_features", "context_dim"),
        *("problem", "features", "contexts", "n_contexts", "probabilities", "reward_range"),
    ),
}


def check_options(cls: type, args: tuple[Any, ...], given: dict[str, Any]) -> None:
    """Raise TypeError for unknown options of a class, and for positional options if they are keyword-only.

    >>> from bothworlds import LinUCB
    >>> check_options(LinUCB, (), {"alpha": 1})
    Traceback (most recent call last):
    TypeError: LinUCB has no option 'alpha'; its exploration width is width=
    """
    maker: Any = cls.__init__  # type: ignore[misc]
    parameters = [] if maker is object.__init__ else list(inspect.signature(maker).parameters.values())[1:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    options = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if args and all(p.kind is p.KEYWORD_ONLY for p in parameters):
        usage = f"takes its options by name: {cls.__name__}({options[0]}={args[0]!r:.40})" if options else None
        raise TypeError(f"{cls.__name__} {usage or 'has no options'}")
    unknown = next((name for name in given if name not in options), None)
    if unknown is not None:
        raise TypeError(f"{cls.__name__} has no option {unknown!r}; {_hint(unknown, options)}")


def _hint(name: str, options: list[str]) -> str:
    """Return a hint for an unknown option: the option that was probably meant, or where the value belongs."""
    for option in options:
        description, synonyms = SYNONYMS.get(option, ("", ()))
        if name in synonyms:
            return f"{description} is {option}="
    near = get_close_matches(name, options, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}=?"
    hint = next((sentence for sentence, names in NOT_OPTIONS.items() if name in names), None)
    if hint is not None:
        return hint
    return f"its options are {', '.join(f'{option}=' for option in options)}" if options else "it has no options"
