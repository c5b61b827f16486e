"""Boosted trees on MQ2008: LambdaMART of LightGBM and XGBoost beside the same trees on our list losses.

    python scripts/benchmarks/boosting.py --data FOLDER --out results/boosting.json

Step size .05, 7 or 15 leaves (XGBoost: 3 or 4 deep), at least 50 documents a leaf (XGBoost: none asked), half of the
features a tree; the size and the number of trees, up to 300, are chosen by the validation part's MAP for every row from
the same grid. Means over the five folds of LETOR and the seeds; a query with nothing relevant counts 0. "seconds" is a
fold's mean for one size, all trees.
"""

import argparse
import time
from pathlib import Path

import lightgbm
import numpy as np
import torch
import xgboost
from common import print_table, write_results

from torchrank.commands.slam_folds import fold_of, measure, read_parts
from torchrank.losses import SLAMLoss, SoftmaxLoss
from torchrank.training import lightgbm_objective, xgboost_objective

SUM = {"reduction": "sum"}
OURS = {
    "SLAM-NDCG": SLAMLoss(**SUM),
    "SLAM-NDCG, graded margin": SLAMLoss(graded_margin=True, **SUM),
    "SLAM-MAP": SLAMLoss(measure="map", **SUM),
    "softmax": SoftmaxLoss(target="relevance", **SUM),
}


def lightgbm_trees(fold, seed, leaves, trees, objective):
    options = {
        "objective": objective,
        "num_leaves": leaves,
        "learning_rate": 0.05,
        "min_data_in_leaf": 50,
        "min_sum_hessian_in_leaf": 0 if callable(objective) else 1e-3,
        "feature_fraction": 0.5,
        "num_threads": 1,
        "deterministic": True,
        "seed": seed,
        "verbose": -1,
    }
    train = fold.train
    lists = lightgbm.Dataset(train.features.numpy(), train.relevance.numpy(), group=train.lengths.numpy())
    model = lightgbm.train(options, lists, num_boost_round=trees)
    return lambda part, count: model.predict(part.features.numpy(), num_iteration=count)


def xgboost_trees(fold, seed, leaves, trees, objective):
    options = {
        "max_depth": {7: 3, 15: 4}[leaves],
        "eta": 0.05,
        "colsample_bytree": 0.5,
        "nthread": 1,
        "seed": seed,
        "base_score": 0,
        "min_child_weight": 0,
    }
    matrix = xgboost.DMatrix(fold.train.features.numpy(), fold.train.relevance.numpy())
    matrix.set_group(fold.train.lengths.numpy())
    if callable(objective):
        model = xgboost.train(options, matrix, num_boost_round=trees, obj=objective)
    else:
        model = xgboost.train({**options, "objective": objective}, matrix, num_boost_round=trees)
    return lambda part, count: model.predict(xgboost.DMatrix(part.features.numpy()), iteration_range=(0, count))


def methods(hessians):
    yield "LightGBM lambdarank", lightgbm_trees, "lambdarank"
    for name, loss in OURS.items():
        for hessian in hessians:
            yield f"LightGBM, {name}, {hessian}", lightgbm_trees, lightgbm_objective(loss, hessian=hessian)
    yield "XGBoost rank:ndcg", xgboost_trees, "rank:ndcg"
    for name, loss in OURS.items():
        for hessian in hessians:
            yield f"XGBoost, {name}, {hessian}", xgboost_trees, xgboost_objective(loss, hessian=hessian)


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--data", required=True, help="the folder with S1.txt.gz … S5.txt.gz of MQ2008")
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--hessians", nargs="+", default=["magnitude"])
    parser.add_argument("--only", default="", help="methods whose name has this part")
    args = parser.parse_args()
    torch.set_num_threads(1)
    parts = read_parts(Path(args.data))
    cuts = range(10, args.trees + 1, 10)
    rows = []
    for name, grow, objective in methods(args.hessians):
        if args.only not in name:
            continue
        found, seconds = [], []
        for number in range(args.folds):
            fold = fold_of(parts, number)
            for seed in range(args.seeds):
                tried = []
                for leaves in (7, 15):
                    began = time.perf_counter()
                    scores = grow(fold, seed, leaves, args.trees, objective)
                    seconds.append(time.perf_counter() - began)
                    curve = [measure(fold.val, np.float32(scores(fold.val, cut))).map for cut in cuts]
                    best = int(np.argmax(curve))
                    tried.append((curve[best], np.float32(scores(fold.test, cuts[best]))))
                val, test = max(tried, key=lambda one: one[0])
                found.append((val, *measure(fold.test, test)))
        val, *test = np.mean(found, 0).tolist()
        measures = dict(zip(("MAP", "MeanNDCG", "NDCG@10"), test, strict=True))
        rows.append({"trees": name, "validation MAP": val, **measures, "seconds": float(np.mean(seconds))})
        print(rows[-1], flush=True)
    print_table(f"MQ2008, boosted trees, {args.folds} folds, {args.seeds} seeds", rows)
    if args.out:
        write_results(args.out, rows, packages=["lightgbm", "xgboost"])


if __name__ == "__main__":
    main()
