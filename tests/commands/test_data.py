import pytest

from torchrank import cli
from torchrank.commands import data as module
from torchrank.data.download import Archive


def test_the_command_fetches_by_name(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        module, "fetch", lambda archive, out, progress: asked.append((archive, out)) or tmp_path / "ml-1m"
    )
    cli.main(["data", "movielens-1m", "--out", str(tmp_path)])
    archive, out = asked[0]
    assert isinstance(archive, Archive)
    assert archive.url == "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
    assert out == str(tmp_path)
    assert f"movielens-1m is in {tmp_path / 'ml-1m'}" in capsys.readouterr().out


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(SystemExit, match="did you mean 'movielens-1m'"):
        cli.main(["data", "movielens-1M"])


@pytest.mark.parametrize("name", ["kasandr", "netflix", "outbrain", "pandor"])
def test_what_has_no_checksum_is_told_and_not_fetched(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "fetch", None)
    cli.main(["data", name, "--out", str(tmp_path)])
    told = capsys.readouterr().out
    assert "https://" in told
    assert f"--dataset {name} --root" in told
    assert not list(tmp_path.iterdir())
