"""A curve as a layer: a few labelled lists bend a ranking curve, and dominance still decides.

    python docs/tutorials/curve_under_slam.py

A table of objects has no labels: the curve through its middle ranks them. Then an expert grades a few short lists, and
prefers differently. The curve's scores are differentiable in its control points, so the SLAM loss of the graded lists,
with the distance to the table as a regulariser, bends the curve towards the expert. Whatever the labels say, an object
that is at least as good in every attribute and better in one still scores higher.
"""

import torch

from torchrank.data import make_objects
from torchrank.losses import ProjectionLoss, SLAMLoss
from torchrank.metrics import ndcg
from torchrank.models import RankingCurve
from torchrank.training import fit_curve

DIRECTIONS = [1, 1, -1]


def expert_grades(points):
    """What the expert thinks: five grades, by a curve that turns to the first attribute late and to the third early."""
    expert = RankingCurve(DIRECTIONS)
    expert.set_control_points(torch.tensor([[0.0, 0.02, 0.05, 1.0], [0.0, 0.9, 0.95, 1.0], [1.0, 0.1, 0.05, 0.0]]))
    with torch.no_grad():
        scores = expert(points)
    return torch.bucketize(scores, torch.quantile(scores, torch.tensor([0.3, 0.6, 0.8, 0.95], dtype=scores.dtype)))


def dominance_violations(curve, *, pairs=100_000, seed=2):
    """Among random pairs of which one dominates, beyond the fitted box too, how often does it not score higher?"""
    generator = torch.Generator().manual_seed(seed)
    lower = torch.rand(pairs, 3, dtype=torch.float64, generator=generator) * 2 - 0.5
    gain = torch.rand(pairs, 3, dtype=torch.float64, generator=generator) * torch.tensor([1, 1, -1])
    with torch.no_grad():
        return int((curve(lower + gain) <= curve(lower)).sum())


def main(*, steps=300, lists=20, length=12):
    """Fit, bend, and compare on lists the curve has not seen."""
    points = torch.rand(4000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    points = torch.cat([make_objects(4000, noise=0.15, seed=0).points, points])
    grades = expert_grades(points).double()
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    seen = order[: lists * length].reshape(lists, length)
    unseen = order[lists * length : (lists + 300) * length].reshape(300, length)

    curve = fit_curve(points, DIRECTIONS)
    report = {"lists": lists, "explained_variance": curve.report.explained_variance}

    def held_out():
        with torch.no_grad():
            return float(ndcg(curve(points[unseen]), grades[unseen], k=5).mean())

    report["ndcg@5 before"] = held_out()
    slam, distance = SLAMLoss(), ProjectionLoss()
    table = curve.to_cube(points[order[:1000]])
    optimizer = torch.optim.Adam(curve.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        # Scores run from 0 to 1, and the hinge asks for a margin of 1: ten times the scores make that a tenth of the way.
        loss = slam(10 * curve(points[seen]), grades[seen]) + distance(table, curve.control_points)
        loss.backward()
        optimizer.step()
        curve.clip_parameters()
    report["ndcg@5 after"] = held_out()
    report["dominance violations"] = dominance_violations(curve)
    report["monotone"] = curve.monotone
    return report


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}")
