# Sourced by scripts/demo and scripts/test: make .venv and install torchrank with the extras in $1, once per change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
extras=$1
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "torchrank needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
stamp=.venv/installed-$extras
want=$(cat pyproject.toml scripts/constraints.txt scripts/setup.sh | cksum)
if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
  echo "== making .venv (a few minutes the first time): 1 of 2, torch"
  "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -c scripts/constraints.txt torch 2> >(grep -v "is ignored: it is neither" >&2)
  echo "== 2 of 2, torchrank[$extras]"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -c scripts/constraints.txt -e ".[$extras]" 2> >(grep -v "is ignored: it is neither" >&2)
  echo "$want" > "$stamp"
fi
export PATH="$PWD/.venv/bin:$PATH"
