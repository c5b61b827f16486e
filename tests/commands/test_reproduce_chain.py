"""``torchrank reproduce chain``: the results' keys, figures that open, errors that name the fix."""

import json

import numpy as np
import pytest

from tests.real_data import REAL_DATA, needs_real_data
from torchrank import cli
from torchrank.commands.reproduce_chain import METHODS
from torchrank.data import make_sequences


def written_words(folder, *, folds=3):
    data = make_sequences(60, num_labels=5, length=(2, 6), noise=0.3, coupling=3.0).dataset
    arrays = {"features": data.features.numpy(), "label": data.labels.numpy(), "offset": data.offsets.numpy()}
    if folds:
        arrays["fold"] = np.arange(60) % folds
    folder.mkdir(exist_ok=True)
    np.savez(folder / "ocr_letters.npz", **arrays)
    return str(folder)


def check(folder, folds):
    results = json.loads((folder / "results.json").read_text())
    for setting in ("small", "large"):
        assert list(results[setting]) == ["unary", "chain_hinge", "chain_crf", "chain_perceptron"] == list(METHODS)
        for method, accuracy in results[setting].items():
            each = list(results["by_fold"][setting][method].values())
            assert len(each) == folds
            assert accuracy == pytest.approx(sum(each) / folds)
            assert 0 <= results["whole_words"][setting][method] <= accuracy <= 1
    text = (folder / "results.md").read_text()
    assert f"{results['large']['chain_hinge']:.4f}" in text
    for name in ("accuracy.png", "transitions.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert len(list(folder.iterdir())) == 4
    return results


def test_results_and_figures(tmp_path, capsys):
    words = written_words(tmp_path / "words")
    out = tmp_path / "deep" / "out"
    cli.main(["reproduce", "chain", "--data", words, "--out", str(out), "--epochs", "3", "--workers", "1"])
    results = check(out, 3)
    assert results["large"]["chain_hinge"] > results["large"]["unary"] - 0.05
    assert "chain_crf" in capsys.readouterr().out
    again = tmp_path / "again"
    cli.main(["reproduce", "chain", "--data", words, "--out", str(again), "--epochs", "3", "--workers", "1"])
    same = check(again, 3)
    assert (same["small"], same["large"]) == (results["small"], results["large"])


@pytest.mark.slow
def test_several_workers_give_the_same_results(tmp_path):
    (tmp_path / "all").mkdir()
    written_words(tmp_path / "all" / "ocr-letters")
    found = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        words = ["--data", str(tmp_path / "all"), "--out", str(out), "--epochs", "1", "--folds", "2"]
        cli.main(["reproduce", "chain", *words, "--workers", workers])
        found.append({key: value for key, value in check(out, 2).items() if "seconds" not in key})
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nowhere"], "there is no nowhere/ocr_letters.npz and no nowhere/ocr-letters/ocr_letters.npz"),
        (["--epochs", "0"], "epochs=0 must be at least 1"),
        (["--workers", "-1"], "workers=-1 at least 0"),
        (["--folds", "0"], "folds=0 must be at least 1"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(tmp_path, words, message):
    given = {"--data": written_words(tmp_path / "words"), "--out": str(tmp_path / "out"), words[0]: words[1]}
    with pytest.raises(SystemExit, match=message):
        cli.main(["reproduce", "chain", *(word for pair in given.items() for word in pair)])
    assert not (tmp_path / "out").exists()


def test_words_without_folds_and_a_file_as_folder_are_refused(tmp_path):
    bare = written_words(tmp_path / "bare", folds=0)
    with pytest.raises(SystemExit, match="no cross-validation folds"):
        cli.main(["reproduce", "chain", "--data", bare, "--out", str(tmp_path / "out")])
    (tmp_path / "file").write_text("")
    whole = written_words(tmp_path / "words")
    with pytest.raises(SystemExit, match="is a file; give a folder"):
        cli.main(["reproduce", "chain", "--data", whole, "--out", str(tmp_path / "file")])


@pytest.mark.slow
@needs_real_data
def test_one_fold_of_the_published_words_reaches_its_accuracy(tmp_path):
    out = str(tmp_path / "out")
    cli.main(["reproduce", "chain", "--data", str(REAL_DATA), "--out", out, "--folds", "1", "--epochs", "2"])
    results = check(tmp_path / "out", 1)
    assert results["small"]["chain_hinge"] > 0.70
    assert results["large"]["chain_hinge"] > 0.83
    assert results["large"]["unary"] < 0.80
