"""Bad inputs, one by one, and what comes back: the table behind docs/bad-inputs.md, which must hold what is seen here.

``python -m tests.test_bad_inputs`` writes the page anew.
"""

import contextlib
import io
import math
import os
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from torchrank import cli, data, losses, metrics, models, theory, training
from torchrank.errors import TorchRankError

PAGE = Path(__file__).resolve().parent.parent / "docs" / "bad-inputs.md"

INTRODUCTION = """# Bad inputs and what comes back

What torchrank does with inputs that are wrong, empty or extreme. A mistake is one error, raised where the value
enters, that says what was given and what to do: `TorchRankError`, or one of its kinds `DataError` and `ShapeError`,
each also a `ValueError`. A command ends with the error's line alone. What is extreme and still has a meaning gives a
value.

This page is written by its own test, `tests/test_bad_inputs.py`, and checked by it. The expressions start from

```text
{setup}
```
"""

SETUP = """\
T, nan, inf = torch.tensor, math.nan, math.inf
scores, relevance = T([[0.3, -1.0, 2.0]]), T([[2.0, 0.0, 1.0]])
nobody = torch.zeros(1, 3, dtype=torch.bool)   # a mask: all padding
log, _ = data.make_interactions(num_users=20, num_items=50, num_interactions=200)
seen = data.Catalogue.from_log(log)
scorer = models.Factorization(log.num_users, log.num_items, 4)
lists = data.make_queries(5, num_features=3).dataset
rows = {"user": [1, 1, 2], "item": [7, 8, 7], "feedback": [1, 0, 1], "time": [1, 2, 3]}"""


def made(**change):
    """A log of the three rows with some columns changed."""
    columns = {"user": [1, 1, 2], "item": [7, 8, 7], "feedback": [1, 0, 1], "time": [1, 2, 3]}
    return data.InteractionLog.from_frame(pl.DataFrame({**columns, **change}, strict=False), positive_at=1)


def file(text, name="f.txt"):
    """Write a file into the working directory and return its name."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def names():
    found = {
        "torch": torch, "np": np, "pl": pl, "math": math, "data": data, "losses": losses, "metrics": metrics,
        "models": models, "training": training, "theory": theory, "made": made, "file": file,
    }  # fmt: skip
    torch.manual_seed(0)
    exec(SETUP, found)
    return found


# section: expressions, or command lines
CASES = {
    "Losses": [
        "losses.slam_loss(torch.zeros(1, 0), torch.zeros(1, 0))",
        "losses.slam_loss(torch.zeros(0, 3), torch.zeros(0, 3))",
        "losses.softmax_loss(scores, relevance, nobody)",
        "losses.SLAMLoss()(scores, relevance, nobody)",
        "losses.slam_loss(scores, torch.zeros(1, 3))",
        "losses.slam_loss(scores, torch.ones(1, 3))",
        "losses.softmax_loss(scores, torch.zeros(1, 3))",
        "losses.slam_loss(torch.zeros(1, 3), relevance)",
        "losses.slam_loss(T([[nan, 0.0, 1.0]]), relevance)",
        "losses.softmax_loss(T([[inf, 0.0, 1.0]]), relevance)",
        "losses.structured_ndcg_loss(T([[inf, 0.0, 1.0]]), relevance)",
        "losses.slam_loss(scores, T([[nan, 0.0, 1.0]]))",
        "losses.slam_loss(scores, T([[-1.0, 0.0, 1.0]]))",
        "losses.softmax_loss(scores.half(), relevance).dtype",
        "losses.slam_loss(scores.half() * 3e4, relevance)",
        "losses.slam_loss(scores.long(), relevance)",
        "losses.slam_loss(scores, relevance[0])",
        "losses.slam_loss(scores, relevance, torch.ones(1, 3))",
        "losses.slam_loss(scores.numpy(), relevance)",
        "losses.slam_loss(scores, None)",
        "losses.slam_loss(T(1.0), T(1.0))",
        "losses.slam_loss(scores, relevance + 0j)",
        "losses.slam_loss(scores, relevance, k=0)",
        "losses.slam_loss(scores, relevance, k=4)",
        "losses.slam_loss(scores, relevance, k=2**31)",
        "losses.slam_loss(scores, relevance, k=2.0)",
        "losses.slam_loss(scores, relevance, measure='ncdg')",
        "losses.SLAMLoss(margin=-1)",
        "losses.SLAMLoss(reduction='men')",
        "losses.SLAMLoss()(scores, relevance, None, T([-1.0]))",
        "losses.slam_loss(scores, relevance, document_weights=T([[1.0, nan, 1.0]]))",
        "losses.bpr_loss(torch.zeros(2), torch.zeros(3))",
        "losses.BPRLoss()(torch.zeros(0), torch.zeros(0))",
        "losses.top1_loss(torch.zeros(2), torch.zeros(2, 0))",
        "losses.sampled_softmax_loss(torch.zeros(2), torch.zeros(3, 4))",
        "losses.in_batch_softmax_loss(torch.zeros(2, 3))",
        "losses.in_batch_softmax_loss(torch.zeros(2, 2), T([7, 7]))",
        "losses.crf_loss(torch.zeros(1, 2, 3), torch.zeros(3, 3), T([[0, 3]]))",
        "losses.structured_hinge_loss(torch.zeros(1, 2, 3), torch.zeros(2, 2), T([[0, 1]]))",
        "losses.projection_loss(torch.zeros(4, 3), torch.zeros(4, 2))",
    ],
    "Measures": [
        "metrics.ndcg(torch.zeros(1, 0), torch.zeros(1, 0))",
        "metrics.ndcg(scores, relevance, nobody)",
        "metrics.ndcg(scores, torch.zeros(1, 3))",
        "metrics.ndcg(scores, torch.zeros(1, 3), empty='skip')",
        "metrics.auc(scores, torch.ones(1, 3), empty='skip')",
        "metrics.ndcg(torch.zeros(1, 3), relevance, ties='mean')",
        "metrics.ndcg(torch.zeros(1, 3), relevance, ties='random')",
        "metrics.ndcg(T([[nan, 0.0, 1.0]]), relevance)",
        "metrics.ndcg(T([[inf, 0.0, -inf]]), relevance)",
        "metrics.ndcg(scores, T([[nan, 0.0, 1.0]]))",
        "metrics.ndcg(scores, T([[-1, 0, 1]]))",
        "metrics.ndcg(scores, T([[2000.0, 0.0, 1.0]]))",
        "metrics.err(scores, T([[5, 0, 1]]))",
        "metrics.ndcg(scores.half(), relevance.half())",
        "metrics.ndcg(scores, relevance, k=0)",
        "metrics.ndcg(scores, relevance, k=100)",
        "metrics.precision(scores, relevance, k=100)",
        "metrics.ndcg(scores, relevance, k=2**31)",
        "metrics.ndcg(scores, relevance, k=1.5)",
        "metrics.ndcg(scores, relevance.T)",
        "metrics.ndcg(scores, relevance, [True] * 3)",
        "metrics.ndcg([0.3, 0.1], relevance)",
        "metrics.NDCG(k=-1)",
        "metrics.paired_bootstrap(T([0.5, 0.7]), T([0.5]))",
        "metrics.paired_bootstrap(T([0.5, nan]), T([0.5, 0.5]))",
    ],
    "LETOR files": [
        "data.read_letor('none.txt')",
        "data.read_letor(file(''))",
        "data.read_letor(file('\\n# a comment\\n'))",
        "data.read_letor(file('x qid:1 1:0.5\\n'))",
        "data.read_letor(file('1 qid:1 1:0.5\\n-1 qid:1 1:1\\n'))",
        "data.read_letor(file('1 qid:1 1:nan\\n'))",
        "data.read_letor(file('1 qid:1 1:1e39\\n'))",
        "data.read_letor(file('1 1:0.5\\n'))",
        "data.read_letor(file('1 qid:1 2:1 1:1\\n'))",
        "data.read_letor(file('1 qid:1 0:1\\n'))",
        "data.read_letor(file('1 qid:1 9:1\\n'), num_features=4)",
        "data.read_letor(file('1 qid:1 2147483648:1\\n'))",
        "data.read_letor(file('1 qid:1 1:1\\n1 qid:2 1:1\\n0 qid:1 1:0\\n'))",
        "data.read_letor(file('1 qid:1\\n0 qid:1\\n'))",
        "data.read_letor(file(b'1 qid:1 1:\\xff\\n'))",
        "data.read_letor(file(b'\\x1f\\x8bno gzip'))",
        "data.read_letor(file('\\ufeff1 qid:1 1:0.5\\r\\n'))",
        "data.read_letor(5)",
        "data.read_letor('.')",
    ],
    "Logs": [
        "made(user=['a', 'a', None])",
        "made(user=[1.0, 2.0, nan])",
        "made(user=[[1], [2], [3]])",
        "made(feedback=['good', 'bad', 'good'])",
        "made(feedback=[1.0, nan, 0.0])",
        "made(feedback=[1.0, inf, 0.0])",
        "made(time=['monday', 'tuesday', 'friday'])",
        "made(time=[None, 1, 2])",
        "made(feedback=[0, 0, 0])",
        "data.build_blocks(made(feedback=[0, 0, 0]))",
        "data.InteractionLog.from_frame(pl.DataFrame(rows).clear(), positive_at=1)",
        "data.InteractionLog.from_frame(rows, positive_at=1)",
        "data.InteractionLog.from_frame(pl.DataFrame(rows).drop('time'), positive_at=1)",
        "data.InteractionLog.from_frame(pl.DataFrame(rows), positive_at=nan)",
        "data.InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1, duplicates='first')",
        "data.InteractionLog.from_csv(file('', 'log.csv'), positive_at=1)",
        "data.InteractionLog.from_csv(file('user,item,feedback,time\\n', 'log.csv'), positive_at=1)",
        "data.InteractionLog.from_csv(file('user,item,feedback,time\\n1,2,1,3,4\\n', 'log.csv'), positive_at=1)",
        "data.InteractionLog.from_csv(file('user,item,feedback,time\\n1,2,x,3\\n', 'log.csv'), positive_at=1)",
        "data.InteractionLog.from_csv(file('user,item,feedback,time\\n1,2,1,\\n', 'log.csv'), positive_at=1)",
        "data.InteractionLog.from_csv(file('user,item,user,feedback,time\\n1,2,3,1,5\\n', 'log.csv'), positive_at=1)",
        "data.InteractionLog.from_csv(file(b'user,item\\n\\xff,2\\n', 'log.csv'), positive_at=1)",
        "data.InteractionLog.from_parquet(file('no Parquet', 'log.parquet'), positive_at=1)",
        "data.read_log('log.xlsx', positive_at=1)",
        "data.read_log(file('', 'log.xlsx'), positive_at=1)",
        "data.read_movielens(file('1::2::5\\n', 'ratings.dat'))",
        "log.split_per_user(train=1.5)",
        "log.split_per_user(train=nan)",
        "log.where([True] * 200)",
        "data.make_interactions(num_users=0)",
        "data.build_blocks(log, rule='runs')",
    ],
    "Tables of attributes and sequences": [
        "data.read_table('none.csv', higher=['a'])",
        "data.read_table(file('a,b\\n1,2\\n', 't.csv'))",
        "data.read_table(file('a,b\\n1,2\\n', 't.csv'), higher=['c'])",
        "data.read_table(file('a,b\\n1,x\\n', 't.csv'), higher=['b'])",
        "data.read_table(file('a,b\\n1,inf\\n', 't.csv'), higher=['b'])",
        "data.read_table(file('a,b\\n', 't.csv'), higher=['b'])",
        "data.read_table(file('a;b\\n1;2,5\\n', 't.csv'), higher=['b'])",
        "data.read_table(file('a,a\\n1,2\\n', 't.csv'), higher=['a'])",
        "data.read_table(file('a,b\\n1,2\\n', 't.csv'), higher=['a'], lower=['a'])",
        "training.fit_curve(np.array([[1.0, 2.0]]), [1, 1])",
        "training.fit_curve(np.array([[1.0, nan], [2.0, 1.0], [3.0, 3.0]]), [1, 1])",
        "training.fit_curve(np.random.rand(9, 2), [1, 0])",
        "training.fit_curve(np.random.rand(9, 2), [1, 1, 1])",
        "data.read_sequences('none.npz')",
        "data.read_sequences(file('text', 'x.npz'))",
        "data.SequenceDataset(torch.rand(3, 2), T([0, 1, -1]), T([0, 3]))",
        "data.SequenceDataset(torch.rand(3, 2), T([0, 1, 1]), T([0, 0, 3]))",
        "data.SequenceDataset(torch.rand(3, 2), T([0, 1, 1]), T([0, 2]))",
        "data.SequenceDataset(torch.full((3, 2), nan), T([0, 1, 1]), T([0, 3]))",
    ],
    "Models and recommendation": [
        "models.LinearScorer(0)",
        "models.LinearScorer('3')",
        "models.LinearScorer(3)(torch.ones(2, 4, 5))",
        "models.LinearScorer(3)(torch.ones(2, 4, 3).half())",
        "models.LinearScorer(3)(torch.ones(2, 4, 3, dtype=torch.int64))",
        "models.LinearScorer(3)(torch.ones(2, 0, 3)).shape",
        "models.LinearScorer(3)(torch.full((1, 2, 3), nan), torch.zeros(1, 2, dtype=torch.bool))",
        "models.AttentionScorer(3, dim=8, heads=3)",
        "models.MLPScorer(3, dropout=1.0)",
        "models.Factorization(0, 5, 2)",
        "models.Factorization(2**62, 5, 2)",
        "scorer(T([-1]), T([0]))",
        "scorer(T([0]), T([50]))",
        "scorer(T([0.0]), T([1.0]))",
        "scorer(T([0, 1]), T([1]))",
        "training.recommend(scorer, seen, ['somebody'])",
        "training.recommend(scorer, seen, [10**12])",
        "training.recommend(scorer, seen, [10**12], unknown='item_rate', k=1).shape",
        "training.recommend(scorer, seen, k=0)",
        "training.recommend(scorer, seen, seen.user_ids[:1], k=1000).height < 50",
        "training.recommend(scorer, seen, seen.user_ids[:1], k=2**31).height < 50",
        "training.recommend(scorer, seen, [])",
        "training.recommend(lambda users, items: users * nan, seen)",
        "scorer.recommend(T([-1]), 3)",
        "scorer.recommend(T([0]), 0)",
        "training.evaluate_shown(scorer, log.where(np.zeros(len(log), bool)))",
        "training.evaluate_catalogue(scorer, log, made())",
        "models.LinearChain(3, 0)",
        "models.LinearChain(3, 2).decode(torch.ones(1, 0, 3))",
        "models.serve(models.EASE(2, 2, num_positives=1))",
        "models.serve(scorer, k=51)",
        "training.load('none.ckpt')",
        "training.load(file('no checkpoint', 'bad.ckpt'))",
        "training.fit_lists(lists, models.LinearScorer(4), losses.SLAMLoss())",
        "training.fit_lists(lists, models.LinearScorer(3), losses.SLAMLoss(), epochs=0)",
        "training.SAROSModule(dim=0)",
        "training.SAROSModule(eta=nan)",
        "training.BPRModule(batch_size=0)",
        "training.GRU4RecModule(dim=2.5)",
    ],
    "Commands": [
        "torchrank",
        "torchrank fitt",
        "torchrank fit",
        "torchrank fit --config none.yaml",
        "torchrank rank none.csv --higher a",
        "torchrank rank good.csv",
        "torchrank rank good.csv --higher c",
        "torchrank rank good.csv --higher name",
        "torchrank rank good.csv --higer a",
        "torchrank rank good.csv --higher a --lower b --bootstrap -1",
        "torchrank blocks none.csv --positive-at 1",
        "torchrank blocks good.csv --positive-at 1",
        "torchrank blocks log.csv --positive-at one",
        "torchrank blocks log.csv --positive-at 5",
        "torchrank data",
        "torchrank data movielens-2m",
        "torchrank data prepare log.csv --positive-at 1 --out out --memory 1MB",
        "torchrank export --ckpt none.ckpt --out model.onnx",
        "torchrank export --ckpt none.ckpt",
        "torchrank recommend --ckpt none.ckpt --out out.parquet",
        "torchrank recommend --ckpt bad.ckpt --out out.parquet",
        "torchrank demo --quik",
        "torchrank reproduce",
        "torchrank reproduce saros --log none.parquet",
        "torchrank tune --config none.yaml",
    ],
}
FILES = {
    "good.csv": "name,a,b\nx,1,2\ny,2,1\nz,3,5\n",
    "log.csv": "user,item,feedback,time\n1,2,1,3\n1,3,0,4\n2,3,1,1\n",
    "bad.ckpt": "no checkpoint",
}


def outcome(expression, found):
    """What an expression gives: its error or its value, in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = eval(expression, found)
    except TorchRankError as error:
        return f"`{type(error).__name__}`: {ours(' '.join(str(error).split()))}"
    text = " ".join(repr(value).split())
    return f"`{text if len(text) < 80 else text[:79] + '…'}`"


def ours(message):
    """A message without what another library adds to it, which changes with its release."""
    return re.sub(r"(does not read as \w+|is not Parquet|gzip stream is damaged or cut short)\b.*", r"\1 …", message)


def command(line):
    """What a command says, and its exit status."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(line.split()[1:])
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
            err.write("" if isinstance(ended.code, int) else str(ended.code))
    said = (err.getvalue() or out.getvalue()).strip().splitlines()
    assert len(said) <= 2 or status == 0, said
    return f"status {status}: {ours(said[0]) if said else ''}"


def written():
    """The page."""
    parts = [INTRODUCTION.format(setup=SETUP)]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for section, cases in CASES.items():
                found = names()
                for name, text in FILES.items():
                    Path(name).write_text(text)
                rows = []
                for case in cases:
                    got = command(case) if case.split()[0] == "torchrank" else outcome(case, found)
                    rows.append(f"| {cell(f'`{case}`')} | {cell(got.replace(folder + '/', ''))} |")
                parts.append(
                    "\n".join([f"\n## {section}\n", "| input | what comes back |", "| --- | --- |", *rows]) + "\n"
                )
        finally:
            os.chdir(before)
    return "".join(parts)


def cell(text):
    """Text as it stands in a table, whose columns bars part."""
    text = re.sub(r"(\d+\.\d{4})\d+", r"\1", text)  # further digits differ from machine to machine
    return text.replace("|", "\\|").replace("<", "&lt;") if "`" not in text else text.replace("|", "\\|")


@pytest.mark.slow
def test_the_page_says_what_comes_back():
    assert written() == PAGE.read_text(encoding="utf-8"), "python -m tests.test_bad_inputs writes the page anew"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
