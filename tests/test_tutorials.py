"""Every tutorial runs, and shows what it says."""

import runpy
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


def test_a_few_labelled_lists_bend_a_curve_that_stays_monotone():
    tutorial = runpy.run_path(str(TUTORIALS / "curve_under_slam.py"))
    report = tutorial["main"](steps=150)
    assert report["ndcg@5 after"] > report["ndcg@5 before"] + 0.02
    assert report["dominance violations"] == 0
    assert report["monotone"]
