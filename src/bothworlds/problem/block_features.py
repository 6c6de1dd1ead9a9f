"""Theorem 4.5: conversion between arm-independent and arm-dependent features.

P.Indep(d, K, T): one vector x per context, the loss of arm a is <x, theta_a>. P.Dep: one vector per (context, arm),
one theta. Block features convert the first into the second, stacking converts the second into the first;
both have d K dimensions.
"""

import warnings

import numpy as np

from bothworlds.arrays import Floats


class DegenerateProblemWarning(UserWarning):
    """The transformed problem is valid, but the guarantees stated for it are empty."""


def block_features(context_features: Floats, n_arms: int) -> Floats:
    """Return phi(a, x) = (0, .., x, .., 0) with x in block a; shape (S, K, K d).

    >>> block_features(np.array([[1.0, 2.0]]), 2).tolist()
    [[[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]]
    """
    S, d = context_features.shape
    blocks = np.einsum("ab,xi->xabi", np.eye(n_arms), context_features)
    return np.ascontiguousarray(blocks.reshape(S, n_arms, n_arms * d))


def block_parameters(thetas: Floats) -> Floats:
    """Return theta (K d,) of the block problem from one theta per arm (K, d).

    >>> block_parameters(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return np.asarray(thetas, dtype=np.float64).reshape(-1)


def stacked_parameters(theta: Floats, n_arms: int) -> Floats:
    """Return one theta per arm (K, d K) for the stacked features: theta in block a, zero elsewhere.

    >>> stacked_parameters(np.array([5.0, 6.0]), 2).tolist()
    [[5.0, 6.0, 0.0, 0.0], [0.0, 0.0, 5.0, 6.0]]
    """
    return np.asarray(np.kron(np.eye(n_arms), theta), dtype=np.float64)


def undo_blocks(features: Floats) -> Floats | None:
    """Return the context features (S, d) if features have the block form, else None."""
    K, width = features.shape[1:]
    if width % K:
        return None
    context_features = features[:, 0, : width // K]
    if np.count_nonzero(features) != K * np.count_nonzero(context_features):
        return None
    diagonal = np.einsum("xaai->xai", features.reshape(len(features), K, K, width // K))
    return context_features if (diagonal == context_features[:, None, :]).all() else None


def stacked_features(features: Floats) -> Floats:
    """Return x = (phi(1, x), ..., phi(K, x)) in d K dimensions, shape (S, d K).

    Their second-moment matrix has rank at most S. Where S < d K it is singular, and bounds for arm-independent features
    that divide by its smallest eigenvalue are empty; a DegenerateProblemWarning is given.
    """
    S, K, d = features.shape
    if d * K > S:
        warnings.warn(
            f"the stacked problem has {d * K} dimensions but only {S} contexts: its covariance is singular, so "
            "guarantees in terms of its smallest eigenvalue do not apply, and contexts share little information",
            DegenerateProblemWarning,
            stacklevel=3,
        )
    return features.reshape(S, K * d)
