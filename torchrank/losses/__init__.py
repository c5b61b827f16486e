"""Losses: a pure function and a thin module over it in one file each."""

from torchrank.losses.slam import SLAMLoss, slam_loss, slam_weights

# one name a line, sorted
__all__ = [
    "SLAMLoss",
    "slam_loss",
    "slam_weights",
]
