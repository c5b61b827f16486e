"""Every tutorial runs, and shows what it says."""

import runpy
from pathlib import Path

from torchrank.data import make_interactions

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


def test_a_few_labelled_lists_bend_a_curve_that_stays_monotone():
    tutorial = runpy.run_path(str(TUTORIALS / "curve_under_slam.py"))
    report = tutorial["main"](steps=150)
    assert report["ndcg@5 after"] > report["ndcg@5 before"] + 0.02
    assert report["dominance violations"] == 0
    assert report["monotone"]


def run(name, **options):
    return runpy.run_path(str(TUTORIALS / f"{name}.py"))["main"](**options)


def test_two_towers_of_ones_own_learn_from_saros_blocks():
    report = run("two_towers_under_saros", epochs=4)
    assert report["auc after"] > report["auc before"] + 0.1
    assert report["auc, items never shown"] > 0.6


def test_two_losses_summed_order_and_keep_the_scale():
    report = run("two_losses", queries=80, epochs=4)
    assert report["ndcg@10, sum"] > 0.7
    assert report["error in grades, sum"] < report["error in grades, SLAM"]


def test_slam_learns_from_logs():
    log, _ = make_interactions(num_users=60, num_items=60, num_interactions=1800, seed=0)
    report = run("slam_on_logs", log=log, epochs=3)
    assert all(0 < report[f"auc, {name}"] < 1 for name in ("item rates", "SLAM-MAP", "SAROS"))
    assert report["auc, SLAM-MAP"] > 0.6


def test_the_bound_of_a_measure_of_ones_own_holds():
    report = run("own_measure_in_slam", queries=60, epochs=3, rounds=10)
    assert report["least slack of the bound, random scores"] > 0
    assert report["least slack, SLAM-M"] > 0
    assert report["M, SLAM-M"] > report["M before"] + 0.1


def test_a_perceptron_learns_on_frozen_features():
    report = run("perceptron_on_features", queries=100, epochs=5)
    frozen, raw = (report[f"ndcg@10, perceptron on {name}"] for name in ("frozen features", "raw features"))
    assert frozen > raw + 0.1


def test_an_index_of_vectors_finds_what_the_model_recommends():
    report = run("approximate_search", items=1300, epochs=1)
    assert report["exact"] == report["32 of 32 cells"] == 1
    assert report["1 of 32 cells"] < report["4 of 32 cells"] <= 1
